//! Snapshot rows: a version byte, then one frozen struct.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bincode::{Decode, Encode};

use super::frozen::{
    BatchV1, ack_type_from_byte, ack_type_to_byte, batches_from_v1, batches_to_v1,
    outcome_from_byte, outcome_to_byte, state_from_byte, state_to_byte,
};
use super::{CodecError, decode_all, encode_into};
use crate::model::{Completed, OpenEpoch, Partition, PendingAck, Producer, StageCall};
use crate::seeded;

/// The row version that this release writes.
pub(super) const ROW_VERSION: u8 = 1;

#[derive(Encode, Decode)]
struct PartitionRowV1 {
    last_lsn: u64,
    state_epoch: i32,
    leader_epoch: i32,
    leader_fence: i32,
    start_offset: i64,
    init_start_offset: i64,
    delivery_complete_count: i32,
    snapshot_epoch: i32,
    create_time_ms: i64,
    write_time_ms: i64,
    batches: Vec<BatchV1>,
    calls: Vec<CallV1>,
    pending: Vec<PendingV1>,
}

#[derive(Encode, Decode)]
struct CallV1 {
    lsn: u64,
    producer_id: i64,
    producer_epoch: i16,
    two_phase: bool,
    transactional_id: String,
    member_id: String,
    member_epoch: i32,
    state_epoch: i32,
    leader_epoch: i32,
    stage_time_ms: i64,
}

#[derive(Encode, Decode)]
struct PendingV1 {
    first_offset: i64,
    last_offset: i64,
    ack_type: u8,
    commit_target: u8,
    abort_target: u8,
    delivery_count: i16,
    /// Index into `calls`.
    call: u32,
}

#[derive(Encode, Decode)]
struct ProducerRowV1 {
    last_lsn: u64,
    highest_stage_epoch: Option<i16>,
    last_completed: Option<CompletedV1>,
    coordinator_epoch: Option<i32>,
    last_used_ms: i64,
    open: Vec<OpenEpochV1>,
}

#[derive(Encode, Decode)]
struct CompletedV1 {
    epoch: i16,
    outcome: u8,
    operator: bool,
}

#[derive(Encode, Decode)]
struct OpenEpochV1 {
    epoch: i16,
    two_phase: bool,
    superseded_by: Option<i16>,
    /// Rows that column family `producer_key` holds for this epoch.
    keys: u32,
}

/// A decoded producer row. Its share partitions are rows of their own: [`ProducerRow::keys`] says
/// how many to expect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProducerRow {
    /// The producer, with empty key sets.
    pub producer: Producer,
    /// Number of share partitions per open epoch.
    pub keys: BTreeMap<i16, u32>,
}

/// Encodes a share partition row.
///
/// # Errors
/// [`CodecError::Value`] for content that no decoder would accept.
pub fn encode_partition(partition: &Partition) -> Result<Vec<u8>, CodecError> {
    let mut calls: Vec<CallV1> = Vec::new();
    let mut index_of: BTreeMap<u64, u32> = BTreeMap::new();
    let mut pending = Vec::with_capacity(partition.pending.len());
    for ack in &partition.pending {
        let next = u32::try_from(calls.len())
            .map_err(|_| CodecError::Encode("too many stage calls in a row".to_owned()))?;
        let call = *index_of.entry(ack.call.lsn).or_insert_with(|| {
            calls.push(call_to_v1(&ack.call));
            next
        });
        pending.push(PendingV1 {
            first_offset: ack.first_offset,
            last_offset: ack.last_offset,
            ack_type: ack_type_to_byte(ack.ack_type),
            commit_target: state_to_byte(ack.commit_target)?,
            abort_target: state_to_byte(ack.abort_target)?,
            delivery_count: ack.delivery_count,
            call,
        });
    }
    let row = PartitionRowV1 {
        last_lsn: partition.last_lsn,
        state_epoch: partition.state_epoch,
        leader_epoch: partition.leader_epoch,
        leader_fence: match seeded::bug("KAFKA-19337") {
            true => partition.leader_epoch,
            false => partition.leader_fence,
        },
        start_offset: partition.start_offset,
        init_start_offset: partition.init_start_offset,
        delivery_complete_count: partition.delivery_complete_count,
        snapshot_epoch: partition.snapshot_epoch,
        create_time_ms: partition.create_time_ms,
        write_time_ms: partition.write_time_ms,
        batches: batches_to_v1(&partition.batches)?,
        calls,
        pending,
    };
    let mut out = vec![ROW_VERSION];
    encode_into(&row, &mut out)?;
    Ok(out)
}

/// Decodes a share partition row.
///
/// # Errors
/// [`CodecError`]; an unknown version is [`CodecError::NewerRow`], not damage.
pub fn decode_partition(bytes: &[u8]) -> Result<Partition, CodecError> {
    let row: PartitionRowV1 = decode_all(body_of(bytes)?)?;
    check_calls(&row)?;
    let calls: Vec<Arc<StageCall>> = row.calls.into_iter().map(call_from_v1).collect();
    let mut pending = Vec::with_capacity(row.pending.len());
    for ack in row.pending {
        let call = usize::try_from(ack.call).ok().and_then(|at| calls.get(at));
        let bad_call = CodecError::Value { field: "pending.call", found: ack.call.into() };
        pending.push(PendingAck {
            first_offset: ack.first_offset,
            last_offset: ack.last_offset,
            ack_type: ack_type_from_byte(ack.ack_type)?,
            commit_target: state_from_byte(ack.commit_target)?,
            abort_target: state_from_byte(ack.abort_target)?,
            delivery_count: ack.delivery_count,
            call: Arc::clone(call.ok_or(bad_call)?),
        });
    }
    Ok(Partition {
        state_epoch: row.state_epoch,
        leader_epoch: row.leader_epoch,
        leader_fence: row.leader_fence,
        start_offset: row.start_offset,
        init_start_offset: row.init_start_offset,
        delivery_complete_count: row.delivery_complete_count,
        snapshot_epoch: row.snapshot_epoch,
        create_time_ms: row.create_time_ms,
        write_time_ms: row.write_time_ms,
        batches: batches_from_v1(row.batches)?,
        pending,
        last_lsn: row.last_lsn,
    })
}

/// A row has one form: every call once, used, and in the order in which the pending acks come to
/// them.
fn check_calls(row: &PartitionRowV1) -> Result<(), CodecError> {
    let mut met = 0_u32;
    for ack in &row.pending {
        match ack.call.cmp(&met) {
            Ordering::Less => {}
            Ordering::Equal => met = met.saturating_add(1),
            Ordering::Greater => {
                return Err(CodecError::Value { field: "pending.call", found: ack.call.into() });
            }
        }
    }
    if usize::try_from(met) != Ok(row.calls.len()) {
        let found = i64::try_from(row.calls.len()).unwrap_or(i64::MAX);
        return Err(CodecError::Value { field: "number of calls", found });
    }
    let mut lsns = BTreeSet::new();
    match row.calls.iter().find(|call| !lsns.insert(call.lsn)) {
        None => Ok(()),
        Some(twice) => Err(CodecError::Value { field: "call.lsn", found: twice.lsn.cast_signed() }),
    }
}

/// Encodes a producer row; its share partitions are rows of column family `producer_key`.
///
/// # Errors
/// [`CodecError::Encode`] when it cannot be encoded.
pub fn encode_producer(producer: &Producer) -> Result<Vec<u8>, CodecError> {
    let mut open = Vec::with_capacity(producer.open.len());
    for (epoch, state) in &producer.open {
        open.push(OpenEpochV1 {
            epoch: *epoch,
            two_phase: state.two_phase,
            superseded_by: state.superseded_by,
            keys: u32::try_from(state.keys.len())
                .map_err(|_| CodecError::Encode("too many keys in a producer".to_owned()))?,
        });
    }
    let row = ProducerRowV1 {
        last_lsn: producer.last_lsn,
        highest_stage_epoch: producer.highest_stage_epoch,
        last_completed: producer.last_completed.map(|completed| CompletedV1 {
            epoch: completed.epoch,
            outcome: outcome_to_byte(completed.outcome),
            operator: completed.operator,
        }),
        coordinator_epoch: producer.coordinator_epoch,
        last_used_ms: producer.last_used_ms,
        open,
    };
    let mut out = vec![ROW_VERSION];
    encode_into(&row, &mut out)?;
    Ok(out)
}

/// Decodes a producer row.
///
/// # Errors
/// [`CodecError`]; an unknown version is [`CodecError::NewerRow`], not damage.
pub fn decode_producer(bytes: &[u8]) -> Result<ProducerRow, CodecError> {
    let row: ProducerRowV1 = decode_all(body_of(bytes)?)?;
    let last_completed = match row.last_completed {
        None => None,
        Some(v1) => Some(Completed {
            epoch: v1.epoch,
            outcome: outcome_from_byte(v1.outcome)?,
            operator: v1.operator,
        }),
    };
    let mut open = BTreeMap::new();
    let mut keys = BTreeMap::new();
    for v1 in row.open {
        let epoch = OpenEpoch {
            two_phase: v1.two_phase,
            superseded_by: v1.superseded_by,
            keys: BTreeSet::new(),
        };
        if open.last_key_value().is_some_and(|(last, _)| *last >= v1.epoch) {
            return Err(CodecError::Value { field: "open.epoch", found: v1.epoch.into() });
        }
        open.insert(v1.epoch, epoch);
        keys.insert(v1.epoch, v1.keys);
    }
    let producer = Producer {
        highest_stage_epoch: row.highest_stage_epoch,
        last_completed,
        coordinator_epoch: row.coordinator_epoch,
        open,
        last_used_ms: row.last_used_ms,
        last_lsn: row.last_lsn,
    };
    Ok(ProducerRow { producer, keys })
}

/// Checks the version byte of a row and answers what follows it.
fn body_of(bytes: &[u8]) -> Result<&[u8], CodecError> {
    match bytes.split_first() {
        Some((&ROW_VERSION, body)) => Ok(body),
        Some((&version, _)) if version > ROW_VERSION => Err(CodecError::NewerRow { version }),
        Some((&version, _)) => {
            Err(CodecError::Value { field: "row version", found: version.into() })
        }
        None => Err(CodecError::Body("the row is empty".to_owned())),
    }
}

fn call_to_v1(call: &StageCall) -> CallV1 {
    CallV1 {
        lsn: call.lsn,
        producer_id: call.producer_id,
        producer_epoch: call.producer_epoch,
        two_phase: call.two_phase,
        transactional_id: call.transactional_id.clone(),
        member_id: call.member_id.clone(),
        member_epoch: call.member_epoch,
        state_epoch: call.state_epoch,
        leader_epoch: call.leader_epoch,
        stage_time_ms: call.stage_time_ms,
    }
}

fn call_from_v1(v1: CallV1) -> Arc<StageCall> {
    Arc::new(StageCall {
        lsn: v1.lsn,
        producer_id: v1.producer_id,
        producer_epoch: v1.producer_epoch,
        two_phase: v1.two_phase,
        transactional_id: v1.transactional_id,
        member_id: v1.member_id,
        member_epoch: v1.member_epoch,
        state_epoch: v1.state_epoch,
        leader_epoch: v1.leader_epoch,
        stage_time_ms: v1.stage_time_ms,
    })
}

#[cfg(test)]
mod tests;
