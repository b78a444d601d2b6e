//! The only code that changes state.
//!
//! Owns how an accepted [`Transition`] is carried out, live and in replay. Decides nothing:
//! whatever a transition could depend on is in it or in the rows that [`touches`] names. A
//! transition that the state cannot have led to is typed corruption, found before anything changes.

mod loss;
mod marker;
mod plain;
mod producers;
mod stage;

use std::sync::Arc;

use super::{Lsn, Partition, PendingAck, Producer, RowId, SharePartitionKey, State, Transition};

/// What a transition did, beyond what it says itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Effects {
    /// Every row that was changed, created or removed: ascending, each once.
    pub touched: Vec<RowId>,
    /// Pending acks that went with a share partition or fell below its start offset, clipped to the
    /// dropped offsets; ascending.
    pub dropped: Vec<PendingAck>,
    /// Per share partition, the resolved offset ranges, both ends inclusive. Keys and ranges
    /// ascending.
    pub resolved: Vec<(SharePartitionKey, Vec<(i64, i64)>)>,
}

/// A transition that no state which it was decided on can have led to: log or snapshot are damaged,
/// or a row that [`touches`] names was not resident. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("entry {lsn} ({transition}) is impossible: {row}: {reason}")]
#[non_exhaustive]
pub struct ApplyError {
    /// LSN of the entry.
    pub lsn: Lsn,
    /// [`Transition::name`].
    pub transition: &'static str,
    /// The row that it does not fit.
    pub row: RowId,
    /// Why.
    pub reason: Impossible,
}

/// Why a transition is impossible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Impossible {
    /// The row was changed by this entry or by a later one already.
    #[error("the entry is not newer than the row")]
    NotNewer,
    /// The row must exist.
    #[error("there is no such row")]
    NoRow,
    /// A value or the order of values that no decision produces.
    #[error("the entry's content is malformed")]
    Malformed,
    /// The transition changes nothing, so it would not have been logged.
    #[error("the entry changes nothing")]
    NoChange,
    /// Leader, state, producer or coordinator epoch or the start offset would go back.
    #[error("an epoch or the start offset goes back")]
    GoesBack,
    /// Offsets cannot be staged, or are written although they are pending.
    #[error("the offsets are taken")]
    Taken,
    /// The epoch of the producer is not open, or not in the way that the transition or another row
    /// says.
    #[error("the producer's epoch is not open as the entry says")]
    NotOpen,
    /// The producer still holds pending acks.
    #[error("the producer has pending acks")]
    Pending,
}

/// Carries a transition out.
///
/// The rows that [`touches`] names must be resident. Total: whatever the state and the transition,
/// the answer is an effect or an error, and an error leaves the state as it was.
///
/// # Errors
/// [`ApplyError`] when this state cannot have led to the transition.
pub fn apply(state: &mut State, lsn: Lsn, transition: &Transition) -> Result<Effects, ApplyError> {
    let entry = Entry { lsn, transition };
    match transition {
        Transition::Initialize { key, state_epoch, start_offset, time_ms } => {
            plain::initialize(state, entry, key, *state_epoch, *start_offset, *time_ms)
        }
        Transition::Write(write) => plain::write(state, entry, write),
        Transition::LeaderEpoch { key, leader_epoch } => {
            plain::leader_epoch(state, entry, key, *leader_epoch)
        }
        Transition::Delete { key } => plain::delete(state, entry, key),
        Transition::Import { key, partition } => plain::import(state, entry, key, partition),
        Transition::Stage(stage) => stage::stage(state, entry, stage),
        Transition::Marker(marker) => marker::marker(state, entry, marker),
        Transition::ForceResolve(force) => marker::force_resolve(state, entry, force),
        Transition::ExpireProducers { producer_ids } => {
            producers::expire(state, entry, producer_ids)
        }
    }
}

/// The rows that [`apply`] looks at or changes, as far as the resident rows tell: ascending, each
/// once.
///
/// A row can name further rows, so whoever loads rows calls this again until nothing new comes up.
#[must_use]
pub fn touches(state: &State, transition: &Transition) -> Vec<RowId> {
    match transition {
        Transition::Initialize { key, .. }
        | Transition::Delete { key }
        | Transition::Import { key, .. } => {
            loss::rows(key, state.partitions.get(key).map_or(&[], |row| &row.pending))
        }
        Transition::Write(write) => {
            let row = state.partitions.get(&write.key);
            loss::rows(&write.key, row.map_or(&[], |row| loss::below(row, write.start_offset)))
        }
        Transition::LeaderEpoch { key, .. } => vec![RowId::Partition(key.clone())],
        Transition::Stage(stage) => {
            vec![RowId::Partition(stage.key.clone()), RowId::Producer(stage.producer_id)]
        }
        Transition::Marker(marker) => marker::rows(state, marker.producer_id, marker.resolves),
        Transition::ForceResolve(force) => {
            marker::rows(state, force.producer_id, Some(force.epoch))
        }
        Transition::ExpireProducers { producer_ids } => {
            producer_ids.iter().copied().map(RowId::Producer).collect()
        }
    }
}

/// The entry being applied, for its checks.
#[derive(Clone, Copy)]
struct Entry<'a> {
    lsn: Lsn,
    transition: &'a Transition,
}

impl Entry<'_> {
    fn error(self, row: RowId, reason: Impossible) -> ApplyError {
        ApplyError { lsn: self.lsn, transition: self.transition.name(), row, reason }
    }

    /// Requires `holds` of the share partition.
    fn require(
        self,
        key: &SharePartitionKey,
        holds: bool,
        reason: Impossible,
    ) -> Result<(), ApplyError> {
        if holds { Ok(()) } else { Err(self.error(RowId::Partition(key.clone()), reason)) }
    }

    /// Requires `holds` of the producer.
    fn require_producer(
        self,
        producer_id: i64,
        holds: bool,
        reason: Impossible,
    ) -> Result<(), ApplyError> {
        if holds { Ok(()) } else { Err(self.error(RowId::Producer(producer_id), reason)) }
    }

    /// The share partition, if it exists; it must be older than the entry.
    fn find<'s>(
        self,
        state: &'s State,
        key: &SharePartitionKey,
    ) -> Result<Option<&'s Partition>, ApplyError> {
        let row = state.partitions.get(key);
        self.require(key, row.is_none_or(|row| row.last_lsn < self.lsn), Impossible::NotNewer)?;
        Ok(row.map(|row| &**row))
    }

    /// The share partition, which must exist and be older than the entry.
    fn get<'s>(
        self,
        state: &'s State,
        key: &SharePartitionKey,
    ) -> Result<&'s Partition, ApplyError> {
        let row = self.find(state, key)?;
        row.ok_or_else(|| self.error(RowId::Partition(key.clone()), Impossible::NoRow))
    }

    /// The producer, if it is remembered; it must be older than the entry.
    fn find_producer(
        self,
        state: &State,
        producer_id: i64,
    ) -> Result<Option<&Producer>, ApplyError> {
        let row = state.producers.get(&producer_id);
        let newer = row.is_none_or(|row| row.last_lsn < self.lsn);
        self.require_producer(producer_id, newer, Impossible::NotNewer)?;
        Ok(row.map(|row| &**row))
    }

    /// The producer, which must be remembered and be older than the entry.
    fn get_producer(self, state: &State, producer_id: i64) -> Result<&Producer, ApplyError> {
        let row = self.find_producer(state, producer_id)?;
        row.ok_or_else(|| self.error(RowId::Producer(producer_id), Impossible::NoRow))
    }
}

/// Changes a share partition that was found to exist.
fn change(
    state: &mut State,
    entry: Entry<'_>,
    key: &SharePartitionKey,
    change: impl FnOnce(&mut Partition),
) {
    if let Some(row) = state.partitions.get_mut(key) {
        let row = Arc::make_mut(row);
        change(row);
        row.last_lsn = entry.lsn;
    }
}

/// Changes a producer, or begins to remember it.
fn change_producer(
    state: &mut State,
    entry: Entry<'_>,
    producer_id: i64,
    change: impl FnOnce(&mut Producer),
) {
    let row = Arc::make_mut(state.producers.entry(producer_id).or_default());
    change(row);
    row.last_lsn = entry.lsn;
}
