//! What callers ask for and what they are told.

use super::{
    AckType, DeliveryState, Effects, Outcome, Partition, PendingAck, SharePartitionKey, StateBatch,
    Transition,
};

/// A request to the store. Keys are valid by construction; everything else is judged by
/// [`decide`](super::decide()).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Start a share partition anew (semantics section 2).
    Initialize {
        /// Share partition.
        key: SharePartitionKey,
        /// State epoch.
        state_epoch: i32,
        /// Start offset, -1 = not known yet.
        start_offset: i64,
    },
    /// Merge plain state batches.
    Write {
        /// Share partition.
        key: SharePartitionKey,
        /// State epoch that the leader knows.
        state_epoch: i32,
        /// Leader epoch.
        leader_epoch: i32,
        /// Start offset, -1 = leave it.
        start_offset: i64,
        /// Delivery-complete count, -1 = unknown.
        delivery_complete_count: i32,
        /// Changed batches, in any order.
        batches: Vec<StateBatch>,
    },
    /// Read the whole state as a partition leader; a higher leader epoch fences older leaders.
    Read {
        /// Share partition.
        key: SharePartitionKey,
        /// Leader epoch.
        leader_epoch: i32,
    },
    /// Read epochs, start offset and count only.
    Summary {
        /// Share partition.
        key: SharePartitionKey,
    },
    /// Drop a share partition.
    Delete {
        /// Share partition.
        key: SharePartitionKey,
    },
    /// Stage transactional acks (semantics section 4.3).
    Stage(Stage),
    /// A transaction marker (semantics section 4.4).
    Marker(Marker),
    /// End one open epoch by hand (semantics section 4.5).
    ForceResolve {
        /// Producer id.
        producer_id: i64,
        /// The open epoch.
        epoch: i16,
        /// Outcome.
        outcome: Outcome,
    },
    /// Forget those of these producers that have nothing pending and were not used for the
    /// configured time.
    ExpireProducers {
        /// Candidates.
        producer_ids: Vec<i64>,
    },
    /// Set a share partition to exactly this state. Refused when it exists, unless `replace`.
    Import {
        /// Share partition.
        key: SharePartitionKey,
        /// Its state; `pending` must be empty, `last_lsn` is ignored.
        partition: Box<Partition>,
        /// Replace an existing share partition.
        replace: bool,
    },
}

/// See [`Command::Stage`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// Share partition.
    pub key: SharePartitionKey,
    /// State epoch that the leader knows.
    pub state_epoch: i32,
    /// Leader epoch.
    pub leader_epoch: i32,
    /// Producer id.
    pub producer_id: i64,
    /// Producer epoch.
    pub producer_epoch: i16,
    /// Part of an external two-phase commit (KIP-939).
    pub two_phase: bool,
    /// Transaction version; below 2 is refused.
    pub transaction_version: i8,
    /// Transactional id.
    pub transactional_id: String,
    /// Share consumer.
    pub member_id: String,
    /// Its epoch.
    pub member_epoch: i32,
    /// What to stage.
    pub acks: Vec<AckRange>,
}

/// One range of a stage call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckRange {
    /// First offset, inclusive.
    pub first_offset: i64,
    /// Last offset, inclusive.
    pub last_offset: i64,
    /// What is acknowledged how.
    pub ack_type: AckType,
    /// State after a commit.
    pub commit_target: DeliveryState,
    /// State after an abort.
    pub abort_target: DeliveryState,
    /// Delivery count of the acquired records.
    pub delivery_count: i16,
}

/// See [`Command::Marker`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker {
    /// Producer id.
    pub producer_id: i64,
    /// Producer epoch; under transaction version 2 one above that of the acks.
    pub producer_epoch: i16,
    /// Epoch of the transaction coordinator.
    pub coordinator_epoch: i32,
    /// Outcome.
    pub outcome: Outcome,
    /// Transaction version, 0 = not carried.
    pub transaction_version: i8,
}

/// What a command comes to: a change to log and apply, or none, and what the caller is told once it
/// is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The change. A refused marker can have one too: a higher coordinator epoch is remembered
    /// whatever follows.
    pub transition: Option<Transition>,
    /// The answer; parts that only [`apply`](super::apply()) knows are filled in by
    /// [`Answer::with_effects`].
    pub answer: Result<Answer, Rejection>,
}

/// A successful answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// To initialize, write, delete and import: the pending acks that were dropped with it.
    Done {
        /// Dropped acks, clipped to the dropped offsets.
        dropped: Vec<PendingAck>,
    },
    /// To a read.
    Read(Box<ReadAnswer>),
    /// To a summary.
    Summary(SummaryAnswer),
    /// To a stage.
    Staged {
        /// What is newly staged: sorted offset ranges, both ends inclusive. Empty for a repeated
        /// call.
        staged: Vec<(i64, i64)>,
    },
    /// To a marker and to a forced resolution.
    Resolved {
        /// Per share partition, the resolved offset ranges, both ends inclusive. Keys ascending.
        resolved: Vec<(SharePartitionKey, Vec<(i64, i64)>)>,
        /// The success contradicts the remembered outcome (counted and warned about, semantics
        /// section 4.4).
        contradicts: bool,
        /// The success left an open epoch below the marker's orphaned.
        orphans: bool,
    },
    /// To an expiry.
    Expired {
        /// The ids that were forgotten, ascending.
        producer_ids: Vec<i64>,
    },
}

/// See [`Answer::Read`]. The state is that after the read: leader epoch and fence are the reader's
/// when it raised them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadAnswer {
    /// The whole row.
    pub partition: Partition,
}

/// See [`Answer::Summary`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SummaryAnswer {
    /// State epoch, 0 when the key is not initialised.
    pub state_epoch: i32,
    /// Leader epoch, 0 when the key is not initialised.
    pub leader_epoch: i32,
    /// Start offset, -1 when not known or not initialised.
    pub start_offset: i64,
    /// Delivery-complete count, -1 when not known or not initialised.
    pub delivery_complete_count: i32,
}

/// A refusal: the caller's request, not the store, is at fault. Nothing changed (but see
/// [`Decision::transition`]).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// `INVALID_REQUEST` (42).
    #[error("invalid request: {0}")]
    InvalidRequest(&'static str),
    /// `FENCED_LEADER_EPOCH` (74).
    #[error("leader epoch {sent} is below the fence {fence}")]
    FencedLeaderEpoch {
        /// The caller's.
        sent: i32,
        /// The highest that has read the state.
        fence: i32,
    },
    /// `FENCED_STATE_EPOCH` (124).
    #[error("state epoch {sent} does not fit the stored {stored}")]
    FencedStateEpoch {
        /// The caller's.
        sent: i32,
        /// The stored one.
        stored: i32,
    },
    /// `INVALID_RECORD_STATE` (121).
    #[error("offset {offset}: {reason}")]
    InvalidRecordState {
        /// The first offset at fault.
        offset: i64,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// `INVALID_PRODUCER_EPOCH` (47).
    #[error("producer epoch {sent} is over, the producer is at {current}")]
    InvalidProducerEpoch {
        /// The caller's.
        sent: i16,
        /// The remembered one.
        current: i16,
    },
    /// `UNSUPPORTED_VERSION` (35).
    #[error("transaction version {0} is below 2: acks cannot be staged under it")]
    UnsupportedVersion(i8),
    /// `TRANSACTION_COORDINATOR_FENCED` (52).
    #[error("coordinator epoch {sent} is below the remembered {remembered}")]
    TransactionCoordinatorFenced {
        /// The marker's.
        sent: i32,
        /// The highest seen.
        remembered: i32,
    },
    /// An operator named an epoch that is not open. No Kafka code.
    #[error("producer {producer_id} has nothing pending at epoch {epoch}")]
    NothingPending {
        /// Producer id.
        producer_id: i64,
        /// Epoch.
        epoch: i16,
    },
    /// The change would pass a bound of [`limits`](crate::limits). `UNKNOWN_SERVER_ERROR` (-1), as
    /// Kafka answers what is too large.
    #[error("{what}: {found} is over the bound of {bound}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// How large it would be.
        found: usize,
        /// How large it may be.
        bound: usize,
    },
    /// An import names a share partition that exists. `INVALID_REQUEST` (42).
    #[error("share partition {0} exists already")]
    Exists(SharePartitionKey),
}

impl Rejection {
    /// Kafka's error code, where one exists.
    #[must_use]
    pub fn kafka_code(&self) -> Option<i16> {
        Some(match self {
            Self::InvalidRequest(_) | Self::Exists(_) => 42,
            Self::FencedLeaderEpoch { .. } => 74,
            Self::FencedStateEpoch { .. } => 124,
            Self::InvalidRecordState { .. } => 121,
            Self::InvalidProducerEpoch { .. } => 47,
            Self::UnsupportedVersion(_) => 35,
            Self::TransactionCoordinatorFenced { .. } => 52,
            Self::NothingPending { .. } => return None,
            Self::TooLarge { .. } => -1,
        })
    }
}

impl Answer {
    /// The answer with what only [`apply`](super::apply()) could tell: the dropped acks or the
    /// resolved ranges.
    #[must_use]
    pub fn with_effects(self, effects: Effects) -> Self {
        match self {
            Self::Done { .. } => Self::Done { dropped: effects.dropped },
            Self::Resolved { contradicts, orphans, .. } => {
                Self::Resolved { resolved: effects.resolved, contradicts, orphans }
            }
            Self::Read(_) | Self::Summary(_) | Self::Staged { .. } | Self::Expired { .. } => self,
        }
    }
}

impl From<Stage> for Command {
    fn from(stage: Stage) -> Self {
        Self::Stage(stage)
    }
}

impl From<Marker> for Command {
    fn from(marker: Marker) -> Self {
        Self::Marker(marker)
    }
}
