//! Markers and forced resolution: the end of an open epoch in all its share partitions at once.

use super::super::batch::{join, merge_into, newly_terminal, paint, push};
use super::super::{
    Completed, ForceResolveTransition, MarkerTransition, Outcome, Partition, PendingAck, Producer,
    RowId, SharePartitionKey, State, StateBatch,
};
use super::{ApplyError, Effects, Entry, Impossible, change, change_producer};
use crate::seeded;

pub(super) fn marker(
    state: &mut State,
    entry: Entry<'_>,
    marker: &MarkerTransition,
) -> Result<Effects, ApplyError> {
    let MarkerTransition { producer_id, coordinator_epoch, outcome, .. } = *marker;
    let completes_itself = marker.completes.is_none_or(|epoch| epoch == marker.producer_epoch);
    let is_legal = producer_id >= 0 && marker.producer_epoch >= 0 && completes_itself;
    entry.require_producer(producer_id, is_legal, Impossible::Malformed)?;
    let known = entry.find_producer(state, producer_id)?.and_then(|row| row.coordinator_epoch);
    let goes_back = known.is_some_and(|known| coordinator_epoch < known);
    entry.require_producer(producer_id, !goes_back, Impossible::GoesBack)?;
    let changes =
        known < Some(coordinator_epoch) || marker.resolves.is_some() || marker.completes.is_some();
    entry.require_producer(producer_id, changes, Impossible::NoChange)?;

    let completed = marker.completes.map(|epoch| Completed { epoch, outcome, operator: false });
    let end = End { producer_id, epoch: marker.resolves, outcome, completed };
    let resolved = end.carry_out(state, entry, |producer| {
        producer.coordinator_epoch = Some(coordinator_epoch);
        if !seeded::bug("KAFKA-9144") {
            producer.last_used_ms = marker.time_ms;
        }
    })?;
    Ok(effects(producer_id, resolved))
}

pub(super) fn force_resolve(
    state: &mut State,
    entry: Entry<'_>,
    force: &ForceResolveTransition,
) -> Result<Effects, ApplyError> {
    let ForceResolveTransition { producer_id, epoch, outcome, completes, time_ms } = *force;
    let is_legal = completes.is_none_or(|completes| epoch.checked_add(1) == Some(completes));
    entry.require_producer(producer_id, is_legal, Impossible::Malformed)?;
    let completed = completes.map(|epoch| Completed { epoch, outcome, operator: true });
    let end = End { producer_id, epoch: Some(epoch), outcome, completed };
    let resolved = end.carry_out(state, entry, |producer| producer.last_used_ms = time_ms)?;
    Ok(effects(producer_id, resolved))
}

/// The producer, and the share partitions in which it holds pending acks at `epoch`.
pub(super) fn rows(state: &State, producer_id: i64, epoch: Option<i16>) -> Vec<RowId> {
    let producer = state.producers.get(&producer_id);
    let open = producer.zip(epoch).and_then(|(producer, epoch)| producer.open.get(&epoch));
    let keys = open.into_iter().flat_map(|open| &open.keys).cloned().map(RowId::Partition);
    keys.chain([RowId::Producer(producer_id)]).collect()
}

type Resolved = Vec<(SharePartitionKey, Vec<(i64, i64)>)>;

fn effects(producer_id: i64, resolved: Resolved) -> Effects {
    let keys = resolved.iter().map(|(key, _)| RowId::Partition(key.clone()));
    let touched = keys.chain([RowId::Producer(producer_id)]).collect();
    Effects { touched, dropped: Vec::new(), resolved }
}

/// How a transaction ends.
struct End {
    producer_id: i64,
    /// The open epoch, if anything is to be resolved.
    epoch: Option<i16>,
    outcome: Outcome,
    /// What is remembered of it, if that changes.
    completed: Option<Completed>,
}

impl End {
    fn carry_out(
        &self,
        state: &mut State,
        entry: Entry<'_>,
        and_remember: impl FnOnce(&mut Producer),
    ) -> Result<Resolved, ApplyError> {
        self.check(state, entry)?;
        let mut keys = Default::default();
        change_producer(state, entry, self.producer_id, |producer| {
            if let Some(open) = self.epoch.and_then(|epoch| producer.open.remove(&epoch)) {
                keys = open.keys;
            }
            if seeded::bug("KAFKA-16352") {
                producer.open.clear();
            }
            producer.last_completed = self.completed.or(producer.last_completed);
            and_remember(producer);
        });
        let mut resolved = Vec::with_capacity(keys.len());
        for key in keys {
            let mut ranges = Vec::new();
            change(state, entry, &key, |row| ranges = self.resolve(row));
            resolved.push((key, ranges));
        }
        Ok(resolved)
    }

    fn check(&self, state: &State, entry: Entry<'_>) -> Result<(), ApplyError> {
        let id = self.producer_id;
        let producer = entry.find_producer(state, id)?;
        let last = producer.and_then(|producer| producer.last_completed);
        let goes_on = match (self.completed, last) {
            (Some(new), Some(last)) => new.epoch > last.epoch,
            (Some(new), None) => new.epoch >= 0,
            (None, _) => true,
        };
        entry.require_producer(id, goes_on, Impossible::GoesBack)?;
        let Some(epoch) = self.epoch else { return Ok(()) };
        let producer = entry.get_producer(state, id)?;
        let open = producer.open.get(&epoch);
        let open = open.ok_or_else(|| entry.error(RowId::Producer(id), Impossible::NotOpen))?;
        for key in &open.keys {
            let row = entry.get(state, key)?;
            let holds = row.pending.iter().any(|ack| self.owns(ack));
            entry.require(key, holds, Impossible::NotOpen)?;
        }
        Ok(())
    }

    fn owns(&self, ack: &PendingAck) -> bool {
        Some(ack.call.producer_epoch) == self.epoch && ack.call.producer_id == self.producer_id
    }

    /// Paints what the epoch holds in a row over its batches, and returns the ranges. The start
    /// offset stays: the leader's next write moves it.
    fn resolve(&self, row: &mut Partition) -> Vec<(i64, i64)> {
        let mut painted = Vec::new();
        let mut ranges = Vec::new();
        row.pending.retain(|ack| {
            let mine = self.owns(ack);
            if mine {
                push(&mut painted, self.outcome_of(ack));
                ranges.push((ack.first_offset, ack.last_offset));
            }
            !mine
        });
        if row.delivery_complete_count >= 0 {
            let more = newly_terminal(&row.batches, &painted);
            let more = i32::try_from(more).unwrap_or(i32::MAX);
            row.delivery_complete_count = row.delivery_complete_count.saturating_add(more);
        }
        merge_into(&mut row.batches, &painted, paint);
        join(ranges)
    }

    fn outcome_of(&self, ack: &PendingAck) -> StateBatch {
        StateBatch {
            first_offset: ack.first_offset,
            last_offset: ack.last_offset,
            delivery_state: match self.outcome {
                Outcome::Commit => ack.commit_target,
                Outcome::Abort => ack.abort_target,
            },
            delivery_count: ack.delivery_count,
        }
    }
}
