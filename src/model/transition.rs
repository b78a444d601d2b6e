//! Accepted changes. What the log stores and [`apply`](super::apply()) carries out; self-contained:
//! a transition holds every timestamp and decided value that its effect depends on.

use std::fmt;

use super::{AckRange, Outcome, Partition, SharePartitionKey, StateBatch};

/// One accepted change of state: exactly one log entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transition {
    /// A share partition starts anew; its batches and pending acks are dropped.
    Initialize {
        /// Share partition.
        key: SharePartitionKey,
        /// Its new state epoch.
        state_epoch: i32,
        /// Its new start offset, -1 = not known yet.
        start_offset: i64,
        /// When, in ms since the Unix epoch.
        time_ms: i64,
    },
    /// Plain state batches are merged in.
    Write(WriteTransition),
    /// A new partition leader has read the state: leader epoch and fence rise to this value.
    LeaderEpoch {
        /// Share partition.
        key: SharePartitionKey,
        /// The reader's leader epoch.
        leader_epoch: i32,
    },
    /// A share partition is dropped, pending acks included.
    Delete {
        /// Share partition.
        key: SharePartitionKey,
    },
    /// Acks join a producer's transaction.
    Stage(StageTransition),
    /// A transaction marker.
    Marker(MarkerTransition),
    /// An operator ended one open epoch by hand.
    ForceResolve(ForceResolveTransition),
    /// Producers that were not used for long are forgotten.
    ExpireProducers {
        /// Their ids, ascending.
        producer_ids: Vec<i64>,
    },
    /// A share partition is set to exactly this state, as brought from another store or from
    /// Kafka's log. Its `pending` is empty and its `last_lsn` is ignored; pending acks of the
    /// replaced state are dropped.
    Import {
        /// Share partition.
        key: SharePartitionKey,
        /// Its state.
        partition: Box<Partition>,
    },
}

/// See [`Transition::Write`]. The values are the decided ones, not the requested ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteTransition {
    /// Share partition.
    pub key: SharePartitionKey,
    /// Start offset after the write.
    pub start_offset: i64,
    /// Delivery-complete count after the write.
    pub delivery_complete_count: i32,
    /// The batches to merge: sorted, disjoint, clipped at `start_offset`, without the stale parts
    /// over pending acks.
    pub batches: Vec<StateBatch>,
    /// When, in ms since the Unix epoch.
    pub time_ms: i64,
}

/// See [`Transition::Stage`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageTransition {
    /// Share partition.
    pub key: SharePartitionKey,
    /// Producer id.
    pub producer_id: i64,
    /// Producer epoch.
    pub producer_epoch: i16,
    /// Part of an external two-phase commit.
    pub two_phase: bool,
    /// Transactional id.
    pub transactional_id: String,
    /// Share consumer.
    pub member_id: String,
    /// Its epoch.
    pub member_epoch: i32,
    /// State epoch of the share partition.
    pub state_epoch: i32,
    /// Leader epoch of the staging broker.
    pub leader_epoch: i32,
    /// When, in ms since the Unix epoch.
    pub time_ms: i64,
    /// What is newly staged: sorted, disjoint, clipped at the start offset; never empty.
    pub acks: Vec<AckRange>,
}

/// See [`Transition::Marker`]. Constant in size: the producer's own row names the share partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkerTransition {
    /// Producer id.
    pub producer_id: i64,
    /// Epoch that the marker carried.
    pub producer_epoch: i16,
    /// Epoch of the transaction coordinator that sent it; remembered when higher.
    pub coordinator_epoch: i32,
    /// Transaction version that it carried, 0 = none.
    pub transaction_version: i8,
    /// Outcome.
    pub outcome: Outcome,
    /// The open epoch that it resolves, if any.
    pub resolves: Option<i16>,
    /// The epoch remembered as last completed (with `outcome`), if it changes.
    pub completes: Option<i16>,
    /// When, in ms since the Unix epoch.
    pub time_ms: i64,
}

/// See [`Transition::ForceResolve`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForceResolveTransition {
    /// Producer id.
    pub producer_id: i64,
    /// The open epoch that ends.
    pub epoch: i16,
    /// How it ends.
    pub outcome: Outcome,
    /// The epoch remembered as last completed (with `outcome`, by an operator), if it changes.
    pub completes: Option<i16>,
    /// When, in ms since the Unix epoch.
    pub time_ms: i64,
}

/// Names a row of the state.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RowId {
    /// A share partition.
    Partition(SharePartitionKey),
    /// A producer id.
    Producer(i64),
}

impl Transition {
    /// The share partition that it names; a marker's are named by the producer's row.
    #[must_use]
    pub fn key(&self) -> Option<&SharePartitionKey> {
        match self {
            Self::Initialize { key, .. }
            | Self::LeaderEpoch { key, .. }
            | Self::Delete { key }
            | Self::Import { key, .. } => Some(key),
            Self::Write(write) => Some(&write.key),
            Self::Stage(stage) => Some(&stage.key),
            Self::Marker(_) | Self::ForceResolve(_) | Self::ExpireProducers { .. } => None,
        }
    }

    /// The producer id that it names, if it names exactly one.
    #[must_use]
    pub fn producer_id(&self) -> Option<i64> {
        match self {
            Self::Stage(stage) => Some(stage.producer_id),
            Self::Marker(marker) => Some(marker.producer_id),
            Self::ForceResolve(force) => Some(force.producer_id),
            _ => None,
        }
    }

    /// Its name in dumps, errors and metrics.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Initialize { .. } => "initialize",
            Self::Write(_) => "write",
            Self::LeaderEpoch { .. } => "leader-epoch",
            Self::Delete { .. } => "delete",
            Self::Stage(_) => "stage",
            Self::Marker(_) => "marker",
            Self::ForceResolve(_) => "force-resolve",
            Self::ExpireProducers { .. } => "expire-producers",
            Self::Import { .. } => "import",
        }
    }
}

impl fmt::Display for RowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Partition(key) => write!(f, "share partition {key}"),
            Self::Producer(producer_id) => write!(f, "producer {producer_id}"),
        }
    }
}
