//! What is remembered of a producer id (semantics section 4.2).
//!
//! Owns the shape of a producer row and which open epoch a marker speaks of. Knows nothing of share
//! partitions but their keys.

use std::collections::{BTreeMap, BTreeSet};

use super::{Lsn, SharePartitionKey};
use crate::seeded;

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Staged acks become final.
    Commit,
    /// Staged acks are undone.
    Abort,
}

/// The last completed marker of a producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Completed {
    /// Epoch that the marker carried.
    pub epoch: i16,
    /// Its outcome.
    pub outcome: Outcome,
    /// Whether an operator was behind it.
    pub operator: bool,
}

/// An epoch of a producer whose transaction is still open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenEpoch {
    /// The transaction takes part in an external two-phase commit (KIP-939).
    pub two_phase: bool,
    /// The first later epoch at which the producer staged; such an epoch is *orphaned*.
    pub superseded_by: Option<i16>,
    /// Share partitions that hold its pending acks. Never empty.
    pub keys: BTreeSet<SharePartitionKey>,
}

/// Everything remembered of one producer id.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Producer {
    /// Highest epoch at which it staged, also after those acks are resolved or dropped.
    pub highest_stage_epoch: Option<i16>,
    /// The last completed marker.
    pub last_completed: Option<Completed>,
    /// The highest coordinator epoch seen in a marker.
    pub coordinator_epoch: Option<i32>,
    /// Epochs with pending acks.
    pub open: BTreeMap<i16, OpenEpoch>,
    /// When an entry last named this producer, in ms since the Unix epoch.
    pub last_used_ms: i64,
    /// LSN of the entry that last changed this row.
    pub last_lsn: Lsn,
}

impl Producer {
    /// The open epoch that a marker of epoch `marker` speaks of (semantics section 4.4): the one
    /// right below it (KIP-890 bumps the epoch once per transaction), or a two-phase one further
    /// below that nothing superseded before that epoch (a KIP-939 recovery bumps more than once).
    /// At most one matches.
    #[must_use]
    pub fn matching(&self, marker: i16) -> Option<i16> {
        self.open
            .iter()
            .find(|(epoch, open)| open.matches(**epoch, marker))
            .map(|(epoch, _)| *epoch)
    }

    /// Whether an epoch is open although its producer went on without it: a later epoch staged, or
    /// a later marker completed. Only its own marker or an operator can still resolve it.
    #[must_use]
    pub fn orphaned(&self, epoch: i16) -> bool {
        let completed_later = self.last_completed.is_some_and(|last| last.epoch > epoch);
        self.open.get(&epoch).is_some_and(|open| open.superseded_by.is_some() || completed_later)
    }

    /// The lowest epoch at which the producer may still stage: below it, its transactions are over.
    #[must_use]
    pub fn current_epoch(&self) -> Option<i16> {
        self.highest_stage_epoch.max(self.last_completed.map(|last| last.epoch))
    }

    /// Roughly how much memory the row takes. Cheap, for it is asked after every change: group ids,
    /// which the share partitions' rows hold too, are taken to be short.
    #[must_use]
    pub fn approx_bytes(&self) -> usize {
        const KEY_BYTES: usize = size_of::<SharePartitionKey>() + 64;
        let keys = self.open.values().map(|open| open.keys.len());
        let keys = keys.fold(0, usize::saturating_add).saturating_mul(KEY_BYTES);
        size_of::<Self>()
            .saturating_add(self.open.len().saturating_mul(size_of::<(i16, OpenEpoch)>()))
            .saturating_add(keys)
    }
}

impl OpenEpoch {
    fn matches(&self, epoch: i16, marker: i16) -> bool {
        let follows = epoch.checked_add(1) == Some(marker);
        let recovered = self.two_phase
            && marker > epoch
            && self.superseded_by.is_none_or(|later| later >= marker);
        follows || recovered || (epoch <= marker && seeded::bug("KAFKA-17754"))
    }
}
