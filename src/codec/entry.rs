//! Log entries: one frozen body per entry kind and version.

use bincode::{Decode, Encode};

use super::frozen::{
    AckV1, BatchV1, KeyV1, batches_from_v1, batches_to_v1, outcome_from_byte, outcome_to_byte,
};
use super::{CodecError, decode_all, encode_into};
use crate::model::{
    AckRange, ForceResolveTransition, MarkerTransition, Partition, StageTransition, Transition,
    WriteTransition,
};

/// The kinds of log entries, as numbered on disk. Numbers are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
#[allow(missing_docs)] // named after the transitions
pub enum EntryKind {
    Initialize = 1,
    Write = 2,
    LeaderEpoch = 3,
    Delete = 4,
    Stage = 5,
    Marker = 6,
    ForceResolve = 7,
    ExpireProducers = 8,
    Import = 9,
}

impl EntryKind {
    const ALL: [Self; 9] = [
        Self::Initialize,
        Self::Write,
        Self::LeaderEpoch,
        Self::Delete,
        Self::Stage,
        Self::Marker,
        Self::ForceResolve,
        Self::ExpireProducers,
        Self::Import,
    ];

    /// The kind with this number, if this release knows it.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u16 == number)
    }

    /// The kind of a transition.
    #[must_use]
    pub fn of(transition: &Transition) -> Self {
        match transition {
            Transition::Initialize { .. } => Self::Initialize,
            Transition::Write(_) => Self::Write,
            Transition::LeaderEpoch { .. } => Self::LeaderEpoch,
            Transition::Delete { .. } => Self::Delete,
            Transition::Stage(_) => Self::Stage,
            Transition::Marker(_) => Self::Marker,
            Transition::ForceResolve(_) => Self::ForceResolve,
            Transition::ExpireProducers { .. } => Self::ExpireProducers,
            Transition::Import { .. } => Self::Import,
        }
    }
}

/// The version that this release writes, of every kind.
pub(super) const ENTRY_VERSION: u8 = 1;

#[derive(Encode, Decode)]
struct InitializeV1 {
    key: KeyV1,
    state_epoch: i32,
    start_offset: i64,
    time_ms: i64,
}

#[derive(Encode, Decode)]
struct WriteV1 {
    key: KeyV1,
    start_offset: i64,
    delivery_complete_count: i32,
    time_ms: i64,
    batches: Vec<BatchV1>,
}

#[derive(Encode, Decode)]
struct LeaderEpochV1 {
    key: KeyV1,
    leader_epoch: i32,
}

#[derive(Encode, Decode)]
struct DeleteV1 {
    key: KeyV1,
}

#[derive(Encode, Decode)]
struct StageV1 {
    key: KeyV1,
    producer_id: i64,
    producer_epoch: i16,
    two_phase: bool,
    transactional_id: String,
    member_id: String,
    member_epoch: i32,
    state_epoch: i32,
    leader_epoch: i32,
    time_ms: i64,
    acks: Vec<AckV1>,
}

#[derive(Encode, Decode)]
struct MarkerV1 {
    producer_id: i64,
    producer_epoch: i16,
    coordinator_epoch: i32,
    transaction_version: i8,
    outcome: u8,
    resolves: Option<i16>,
    completes: Option<i16>,
    time_ms: i64,
}

#[derive(Encode, Decode)]
struct ForceResolveV1 {
    producer_id: i64,
    epoch: i16,
    outcome: u8,
    completes: Option<i16>,
    time_ms: i64,
}

#[derive(Encode, Decode)]
struct ExpireProducersV1 {
    producer_ids: Vec<i64>,
}

#[derive(Encode, Decode)]
struct ImportV1 {
    key: KeyV1,
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
}

/// Appends the body of `transition` to `out`; answers its kind and version.
///
/// # Errors
/// [`CodecError::Value`] for content that no decoder would accept.
pub fn encode_transition(
    transition: &Transition,
    out: &mut Vec<u8>,
) -> Result<(EntryKind, u8), CodecError> {
    match transition {
        Transition::Initialize { key, state_epoch, start_offset, time_ms } => {
            let (state_epoch, start_offset, time_ms) = (*state_epoch, *start_offset, *time_ms);
            let key = key.into();
            encode_into(&InitializeV1 { key, state_epoch, start_offset, time_ms }, out)?;
        }
        Transition::Write(write) => encode_into(&write_to_v1(write)?, out)?,
        Transition::LeaderEpoch { key, leader_epoch } => {
            encode_into(&LeaderEpochV1 { key: key.into(), leader_epoch: *leader_epoch }, out)?;
        }
        Transition::Delete { key } => encode_into(&DeleteV1 { key: key.into() }, out)?,
        Transition::Stage(stage) => encode_into(&stage_to_v1(stage)?, out)?,
        Transition::Marker(marker) => encode_into(&marker_to_v1(marker), out)?,
        Transition::ForceResolve(resolve) => encode_into(&force_resolve_to_v1(resolve), out)?,
        Transition::ExpireProducers { producer_ids } => {
            encode_into(&ExpireProducersV1 { producer_ids: producer_ids.clone() }, out)?;
        }
        Transition::Import { key, partition } => {
            encode_into(&import_to_v1(key.into(), partition)?, out)?;
        }
    }
    Ok((EntryKind::of(transition), ENTRY_VERSION))
}

/// Decodes an entry body.
///
/// # Errors
/// [`CodecError`]; an unknown kind or version is [`CodecError::NewerEntry`], not damage.
pub fn decode_transition(kind: u16, version: u8, body: &[u8]) -> Result<Transition, CodecError> {
    let newer = CodecError::NewerEntry { kind, version };
    let known = EntryKind::from_number(kind).filter(|_| version == ENTRY_VERSION).ok_or(newer)?;
    Ok(match known {
        EntryKind::Initialize => {
            let v1: InitializeV1 = decode_all(body)?;
            Transition::Initialize {
                key: v1.key.try_into()?,
                state_epoch: v1.state_epoch,
                start_offset: v1.start_offset,
                time_ms: v1.time_ms,
            }
        }
        EntryKind::Write => Transition::Write(write_from_v1(decode_all(body)?)?),
        EntryKind::LeaderEpoch => {
            let v1: LeaderEpochV1 = decode_all(body)?;
            Transition::LeaderEpoch { key: v1.key.try_into()?, leader_epoch: v1.leader_epoch }
        }
        EntryKind::Delete => {
            Transition::Delete { key: decode_all::<DeleteV1>(body)?.key.try_into()? }
        }
        EntryKind::Stage => Transition::Stage(stage_from_v1(decode_all(body)?)?),
        EntryKind::Marker => Transition::Marker(marker_from_v1(&decode_all(body)?)?),
        EntryKind::ForceResolve => {
            Transition::ForceResolve(force_resolve_from_v1(&decode_all(body)?)?)
        }
        EntryKind::ExpireProducers => Transition::ExpireProducers {
            producer_ids: decode_all::<ExpireProducersV1>(body)?.producer_ids,
        },
        EntryKind::Import => import_from_v1(decode_all(body)?)?,
    })
}

fn write_to_v1(write: &WriteTransition) -> Result<WriteV1, CodecError> {
    Ok(WriteV1 {
        key: (&write.key).into(),
        start_offset: write.start_offset,
        delivery_complete_count: write.delivery_complete_count,
        time_ms: write.time_ms,
        batches: batches_to_v1(&write.batches)?,
    })
}

fn write_from_v1(v1: WriteV1) -> Result<WriteTransition, CodecError> {
    Ok(WriteTransition {
        key: v1.key.try_into()?,
        start_offset: v1.start_offset,
        delivery_complete_count: v1.delivery_complete_count,
        time_ms: v1.time_ms,
        batches: batches_from_v1(v1.batches)?,
    })
}

fn stage_to_v1(stage: &StageTransition) -> Result<StageV1, CodecError> {
    Ok(StageV1 {
        key: (&stage.key).into(),
        producer_id: stage.producer_id,
        producer_epoch: stage.producer_epoch,
        two_phase: stage.two_phase,
        transactional_id: stage.transactional_id.clone(),
        member_id: stage.member_id.clone(),
        member_epoch: stage.member_epoch,
        state_epoch: stage.state_epoch,
        leader_epoch: stage.leader_epoch,
        time_ms: stage.time_ms,
        acks: stage.acks.iter().map(AckV1::try_from).collect::<Result<_, _>>()?,
    })
}

fn stage_from_v1(v1: StageV1) -> Result<StageTransition, CodecError> {
    Ok(StageTransition {
        key: v1.key.try_into()?,
        producer_id: v1.producer_id,
        producer_epoch: v1.producer_epoch,
        two_phase: v1.two_phase,
        transactional_id: v1.transactional_id,
        member_id: v1.member_id,
        member_epoch: v1.member_epoch,
        state_epoch: v1.state_epoch,
        leader_epoch: v1.leader_epoch,
        time_ms: v1.time_ms,
        acks: v1.acks.into_iter().map(AckRange::try_from).collect::<Result<_, _>>()?,
    })
}

fn marker_to_v1(marker: &MarkerTransition) -> MarkerV1 {
    MarkerV1 {
        producer_id: marker.producer_id,
        producer_epoch: marker.producer_epoch,
        coordinator_epoch: marker.coordinator_epoch,
        transaction_version: marker.transaction_version,
        outcome: outcome_to_byte(marker.outcome),
        resolves: marker.resolves,
        completes: marker.completes,
        time_ms: marker.time_ms,
    }
}

fn marker_from_v1(v1: &MarkerV1) -> Result<MarkerTransition, CodecError> {
    Ok(MarkerTransition {
        producer_id: v1.producer_id,
        producer_epoch: v1.producer_epoch,
        coordinator_epoch: v1.coordinator_epoch,
        transaction_version: v1.transaction_version,
        outcome: outcome_from_byte(v1.outcome)?,
        resolves: v1.resolves,
        completes: v1.completes,
        time_ms: v1.time_ms,
    })
}

fn force_resolve_to_v1(resolve: &ForceResolveTransition) -> ForceResolveV1 {
    ForceResolveV1 {
        producer_id: resolve.producer_id,
        epoch: resolve.epoch,
        outcome: outcome_to_byte(resolve.outcome),
        completes: resolve.completes,
        time_ms: resolve.time_ms,
    }
}

fn force_resolve_from_v1(v1: &ForceResolveV1) -> Result<ForceResolveTransition, CodecError> {
    Ok(ForceResolveTransition {
        producer_id: v1.producer_id,
        epoch: v1.epoch,
        outcome: outcome_from_byte(v1.outcome)?,
        completes: v1.completes,
        time_ms: v1.time_ms,
    })
}

fn import_to_v1(key: KeyV1, partition: &Partition) -> Result<ImportV1, CodecError> {
    Ok(ImportV1 {
        key,
        state_epoch: partition.state_epoch,
        leader_epoch: partition.leader_epoch,
        leader_fence: partition.leader_fence,
        start_offset: partition.start_offset,
        init_start_offset: partition.init_start_offset,
        delivery_complete_count: partition.delivery_complete_count,
        snapshot_epoch: partition.snapshot_epoch,
        create_time_ms: partition.create_time_ms,
        write_time_ms: partition.write_time_ms,
        batches: batches_to_v1(&partition.batches)?,
    })
}

fn import_from_v1(v1: ImportV1) -> Result<Transition, CodecError> {
    Ok(Transition::Import {
        key: v1.key.try_into()?,
        partition: Box::new(Partition {
            state_epoch: v1.state_epoch,
            leader_epoch: v1.leader_epoch,
            leader_fence: v1.leader_fence,
            start_offset: v1.start_offset,
            init_start_offset: v1.init_start_offset,
            delivery_complete_count: v1.delivery_complete_count,
            snapshot_epoch: v1.snapshot_epoch,
            create_time_ms: v1.create_time_ms,
            write_time_ms: v1.write_time_ms,
            batches: batches_from_v1(v1.batches)?,
            pending: Vec::new(),
            last_lsn: 0,
        }),
    })
}
