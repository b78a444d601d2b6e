//! Share partitions, prepared acks, producers and log entries as JSON, one object per line.
//!
//! A share partition's line holds every field of semantics section 1, so that an export brought
//! into another store gives the same export again:
//!
//! ```json
//! {"group_id":"g","topic_id":"b5…","partition":0,"state_epoch":1,"leader_epoch":0,
//!  "leader_fence":2,"start_offset":5,"init_start_offset":0,"delivery_complete_count":3,
//!  "snapshot_epoch":0,"create_time_ms":1,"write_time_ms":2,"batches":[[5,9,2,1]],"pending":[]}
//! ```
//!
//! A batch is `[first offset, last offset, delivery state, delivery count]`, with Kafka's numbers
//! for the states. 64-bit numbers are JSON numbers; a reader that keeps them as floating point
//! loses the last digits of offsets above 2^53.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::{
    AckType, DeliveryState, KeyError, Lsn, Partition, PendingAck, SharePartitionKey, StageCall,
    StateBatch,
};

mod entry;
mod pending;

pub use entry::EntryJson;
pub use pending::{
    CompletedJson, OpenEpochJson, PendingEntryJson, PendingTotalsJson, ProducerJson, RangeJson,
    ResolvedJson, ResolvedPartitionJson,
};

/// `[first offset, last offset, delivery state, delivery count]`.
pub type BatchJson = (i64, i64, i8, i16);

/// A share partition as a JSON object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // the fields of `Partition`
pub struct PartitionJson {
    pub group_id: String,
    pub topic_id: String,
    pub partition: i32,
    pub state_epoch: i32,
    pub leader_epoch: i32,
    pub leader_fence: i32,
    pub start_offset: i64,
    pub init_start_offset: i64,
    pub delivery_complete_count: i32,
    pub snapshot_epoch: i32,
    pub create_time_ms: i64,
    pub write_time_ms: i64,
    pub batches: Vec<BatchJson>,
    #[serde(default)]
    pub pending: Vec<PendingJson>,
    /// LSN of the last change. Of this store only, so exports leave it out and imports ignore it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_lsn: Option<Lsn>,
}

/// A range of staged acks as a JSON object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // the fields of `PendingAck` and `StageCall`
pub struct PendingJson {
    pub first_offset: i64,
    pub last_offset: i64,
    pub ack_type: i8,
    pub commit_target: i8,
    pub abort_target: i8,
    pub delivery_count: i16,
    pub lsn: Lsn,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub two_phase: bool,
    pub transactional_id: String,
    pub member_id: String,
    pub member_epoch: i32,
    pub state_epoch: i32,
    pub leader_epoch: i32,
    pub stage_time_ms: i64,
}

/// Why a JSON object is no share partition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldError {
    /// The three parts make no key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The topic id is not a UUID.
    #[error("topic_id `{0}` is not a UUID")]
    Topic(String),
    /// There is no such ack type.
    #[error("ack_type {0} does not exist")]
    AckType(i8),
}

impl PartitionJson {
    /// A share partition, without what only its own store knows of it.
    #[must_use]
    pub fn new(key: &SharePartitionKey, row: &Partition) -> Self {
        Self {
            group_id: key.group_id().to_owned(),
            topic_id: key.topic_id().to_string(),
            partition: key.partition(),
            state_epoch: row.state_epoch,
            leader_epoch: row.leader_epoch,
            leader_fence: row.leader_fence,
            start_offset: row.start_offset,
            init_start_offset: row.init_start_offset,
            delivery_complete_count: row.delivery_complete_count,
            snapshot_epoch: row.snapshot_epoch,
            create_time_ms: row.create_time_ms,
            write_time_ms: row.write_time_ms,
            batches: batches(&row.batches),
            pending: row.pending.iter().map(PendingJson::new).collect(),
            last_lsn: None,
        }
    }

    /// The share partition that the object describes. Whether a store would take it is for
    /// [`decide`](crate::model::decide()) to say.
    ///
    /// # Errors
    /// [`FieldError`].
    pub fn into_partition(self) -> Result<(SharePartitionKey, Partition), FieldError> {
        let topic_id = uuid::Uuid::parse_str(&self.topic_id)
            .map_err(|_| FieldError::Topic(self.topic_id.clone()))?;
        let key = SharePartitionKey::new(self.group_id, topic_id, self.partition)?;
        let batch = |(first_offset, last_offset, state, delivery_count): BatchJson| StateBatch {
            first_offset,
            last_offset,
            delivery_state: DeliveryState(state),
            delivery_count,
        };
        let partition = Partition {
            state_epoch: self.state_epoch,
            leader_epoch: self.leader_epoch,
            leader_fence: self.leader_fence,
            start_offset: self.start_offset,
            init_start_offset: self.init_start_offset,
            delivery_complete_count: self.delivery_complete_count,
            snapshot_epoch: self.snapshot_epoch,
            create_time_ms: self.create_time_ms,
            write_time_ms: self.write_time_ms,
            batches: self.batches.into_iter().map(batch).collect(),
            pending: pending(self.pending)?,
            last_lsn: self.last_lsn.unwrap_or(0),
        };
        Ok((key, partition))
    }
}

impl PendingJson {
    fn new(ack: &PendingAck) -> Self {
        let call = &ack.call;
        Self {
            first_offset: ack.first_offset,
            last_offset: ack.last_offset,
            ack_type: ack.ack_type as i8,
            commit_target: ack.commit_target.0,
            abort_target: ack.abort_target.0,
            delivery_count: ack.delivery_count,
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
}

fn batches(batches: &[StateBatch]) -> Vec<BatchJson> {
    let batch =
        |b: &StateBatch| (b.first_offset, b.last_offset, b.delivery_state.0, b.delivery_count);
    batches.iter().map(batch).collect()
}

/// Ranges of one stage call share it again.
fn pending(ranges: Vec<PendingJson>) -> Result<Vec<PendingAck>, FieldError> {
    let mut calls: HashMap<Lsn, Arc<StageCall>> = HashMap::new();
    let mut acks = Vec::with_capacity(ranges.len());
    for range in ranges {
        let ack_type = AckType::from_raw(range.ack_type);
        let call = calls.entry(range.lsn).or_insert_with(|| {
            Arc::new(StageCall {
                lsn: range.lsn,
                producer_id: range.producer_id,
                producer_epoch: range.producer_epoch,
                two_phase: range.two_phase,
                transactional_id: range.transactional_id,
                member_id: range.member_id,
                member_epoch: range.member_epoch,
                state_epoch: range.state_epoch,
                leader_epoch: range.leader_epoch,
                stage_time_ms: range.stage_time_ms,
            })
        });
        acks.push(PendingAck {
            first_offset: range.first_offset,
            last_offset: range.last_offset,
            ack_type: ack_type.ok_or(FieldError::AckType(range.ack_type))?,
            commit_target: DeliveryState(range.commit_target),
            abort_target: DeliveryState(range.abort_target),
            delivery_count: range.delivery_count,
            call: Arc::clone(call),
        });
    }
    Ok(acks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_survives_the_way_through_json() {
        let key = SharePartitionKey::new("a:\"b\\\n\u{1F600}", uuid::Uuid::from_u128(9), i32::MAX);
        let key = key.unwrap();
        let call = |lsn| {
            Arc::new(StageCall {
                lsn,
                producer_id: i64::MAX,
                producer_epoch: 32_766,
                two_phase: true,
                transactional_id: "t\t".into(),
                member_id: String::new(),
                member_epoch: 8,
                state_epoch: 1,
                leader_epoch: 2,
                stage_time_ms: -5,
            })
        };
        let ack = |first_offset, call: &Arc<StageCall>| PendingAck {
            first_offset,
            last_offset: first_offset + 1,
            ack_type: AckType::Reject,
            commit_target: DeliveryState::ARCHIVING,
            abort_target: DeliveryState::AVAILABLE,
            delivery_count: 3,
            call: Arc::clone(call),
        };
        let (first, second) = (call(7), call(u64::MAX));
        let row = Partition {
            state_epoch: 1,
            leader_epoch: 2,
            leader_fence: 3,
            start_offset: -1,
            init_start_offset: 4,
            delivery_complete_count: -1,
            snapshot_epoch: 6,
            create_time_ms: i64::MIN,
            write_time_ms: i64::MAX,
            batches: vec![StateBatch {
                first_offset: 0,
                last_offset: i64::MAX - 1,
                delivery_state: DeliveryState::ARCHIVED,
                delivery_count: i16::MAX,
            }],
            pending: vec![ack(1, &first), ack(5, &second), ack(9, &first)],
            last_lsn: 0,
        };
        let line = serde_json::to_string(&PartitionJson::new(&key, &row)).unwrap();
        assert_eq!(line.lines().count(), 1);
        let read: PartitionJson = serde_json::from_str(&line).unwrap();
        let (key_read, row_read) = read.into_partition().unwrap();
        assert_eq!((key_read, &row_read), (key, &row));
        assert!(Arc::ptr_eq(&row_read.pending[0].call, &row_read.pending[2].call));
    }
}
