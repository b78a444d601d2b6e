//! The whole store as the record keeps it: share partitions and producers, and the rules of
//! transactions written down a second time, as naively as possible.
//!
//! Must not use anything of the library's model, either.

use std::collections::{BTreeMap, BTreeSet};

use super::shadow::{Prepared, Row, apply};
use super::wire::{Answer, Deed, MarkerOp, StageOp, Sum};

/// Kafka's error codes.
const INVALID_REQUEST: i16 = 42;
const INVALID_PRODUCER_EPOCH: i16 = 47;
const TRANSACTION_COORDINATOR_FENCED: i16 = 52;
const FENCED_LEADER_EPOCH: i16 = 74;
const INVALID_RECORD_STATE: i16 = 121;
const FENCED_STATE_EPOCH: i16 = 124;

/// A transaction that waits for its marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    pub two_phase: bool,
    pub superseded_by: Option<i16>,
    pub slots: BTreeSet<usize>,
}

/// The last marker of a producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completed {
    pub epoch: i16,
    pub commit: bool,
    pub operator: bool,
}

/// A producer that is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Producer {
    pub highest: Option<i16>,
    pub completed: Option<Completed>,
    pub coordinator: Option<i32>,
    pub open: BTreeMap<i16, Open>,
}

/// All share partitions and all producers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ledger {
    pub rows: BTreeMap<usize, Row>,
    pub producers: BTreeMap<i64, Producer>,
}

/// What something touches, at most.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    pub slots: BTreeSet<usize>,
    pub producers: BTreeSet<i64>,
}

impl Ledger {
    /// What a deed can change.
    pub fn scope(&self, deed: &Deed) -> Scope {
        let mut scope = Scope::default();
        match deed {
            Deed::Plain { slot, .. } => {
                scope.slots.insert(*slot);
                let prepared = self.rows.get(slot).into_iter().flat_map(|row| &row.prepared);
                scope.producers.extend(prepared.map(|(_, prepared)| prepared.producer));
            }
            Deed::Stage { slot, op } => {
                scope.slots.insert(*slot);
                scope.producers.insert(op.producer);
            }
            Deed::Marker(op) => {
                scope.producers.insert(op.producer);
                let open = self.producers.get(&op.producer).into_iter().flat_map(|row| &row.open);
                scope.slots.extend(open.flat_map(|(_, open)| &open.slots));
            }
        }
        scope
    }

    /// A part of it.
    pub fn part(&self, scope: &Scope) -> Self {
        let row = |slot: &usize| self.rows.get_key_value(slot).map(|(k, row)| (*k, row.clone()));
        let bank = |id: &i64| self.producers.get_key_value(id).map(|(k, row)| (*k, row.clone()));
        Self {
            rows: scope.slots.iter().filter_map(row).collect(),
            producers: scope.producers.iter().filter_map(bank).collect(),
        }
    }

    /// Forgets producers with nothing prepared that are not in `found`, either.
    pub fn forget_idle(&mut self, found: &Self) {
        let is_kept =
            |id: &i64, row: &Producer| !row.open.is_empty() || found.producers.contains_key(id);
        self.producers.retain(|id, row| is_kept(id, row));
    }

    /// Carries a deed out. Answers what the store has to answer.
    pub fn act(&mut self, deed: &Deed) -> Answer {
        match deed {
            Deed::Plain { slot, op } => {
                let (answer, row) = apply(self.rows.get(slot), op);
                self.put(*slot, row);
                answer
            }
            Deed::Stage { slot, op } => match self.stage(*slot, op) {
                Ok(offsets) => Answer::Staged(offsets),
                Err(code) => Answer::Refused(code),
            },
            Deed::Marker(op) => match self.marker(*op) {
                Ok(sum) => Answer::Resolved(sum),
                Err(code) => Answer::Refused(code),
            },
        }
    }

    /// Replaces a share partition. Transactions that hold nothing more in it are told.
    fn put(&mut self, slot: usize, row: Option<Row>) {
        let owners = |row: Option<&Row>| -> BTreeSet<(i64, i16)> {
            let prepared = row.into_iter().flat_map(|row| row.prepared.values());
            prepared.map(|prepared| (prepared.producer, prepared.epoch)).collect()
        };
        let before = owners(self.rows.get(&slot));
        for (producer, epoch) in before.difference(&owners(row.as_ref())) {
            let Some(producer) = self.producers.get_mut(producer) else { continue };
            if let Some(open) = producer.open.get_mut(epoch) {
                open.slots.remove(&slot);
            }
            producer.open.retain(|_, open| !open.slots.is_empty());
        }
        match row {
            Some(row) => self.rows.insert(slot, row),
            None => self.rows.remove(&slot),
        };
    }

    fn stage(&mut self, slot: usize, op: &StageOp) -> Result<u64, i16> {
        let row = self.rows.get_mut(&slot).ok_or(INVALID_REQUEST)?;
        if op.leader_epoch < row.leader_fence {
            return Err(FENCED_LEADER_EPOCH);
        }
        if op.state_epoch != row.state_epoch {
            return Err(FENCED_STATE_EPOCH);
        }
        let mut producer = self.producers.get(&op.producer).cloned().unwrap_or_default();
        let completed = producer.completed.map(|last| last.epoch);
        if Some(op.epoch) < producer.highest || Some(op.epoch) < completed {
            return Err(INVALID_PRODUCER_EPOCH);
        }
        if producer.open.get(&op.epoch).is_some_and(|open| open.two_phase != op.two_phase) {
            return Err(INVALID_REQUEST);
        }
        let mut fresh = BTreeMap::new();
        for (first, last, ack, commit, abort, count) in op.acks.iter().copied() {
            let (id, epoch) = (op.producer, op.epoch);
            let new = Prepared { producer: id, epoch, ack, commit, abort, count };
            for offset in first.max(row.start)..=last {
                match (row.prepared.get(&offset), row.offsets.get(&offset)) {
                    (Some(old), _) if *old == new => continue,
                    (Some(_), _) => return Err(INVALID_RECORD_STATE),
                    (None, Some((2..=4, _))) => return Err(INVALID_RECORD_STATE),
                    (None, Some((_, old))) if *old >= count => return Err(INVALID_RECORD_STATE),
                    (None, _) => fresh.insert(offset, new),
                };
            }
        }
        if fresh.is_empty() {
            return Ok(0);
        }
        let offsets = fresh.len() as u64;
        row.prepared.extend(fresh);
        producer.highest = producer.highest.max(Some(op.epoch));
        for (epoch, open) in &mut producer.open {
            if *epoch < op.epoch && open.superseded_by.is_none() {
                open.superseded_by = Some(op.epoch);
            }
        }
        let nothing = Open { two_phase: op.two_phase, superseded_by: None, slots: BTreeSet::new() };
        producer.open.entry(op.epoch).or_insert(nothing).slots.insert(slot);
        self.producers.insert(op.producer, producer);
        Ok(offsets)
    }

    fn marker(&mut self, op: MarkerOp) -> Result<Sum, i16> {
        let producer = self.producers.entry(op.producer).or_default();
        if producer.coordinator.is_some_and(|known| op.coordinator < known) {
            return Err(TRANSACTION_COORDINATOR_FENCED);
        }
        producer.coordinator = Some(op.coordinator);
        let completed = Some(Completed { epoch: op.epoch, commit: op.commit, operator: false });
        let last = producer.completed.map(|last| last.epoch);
        let below: Vec<i16> = producer.open.keys().copied().filter(|e| *e < op.epoch).collect();
        let resolves = below.iter().copied().find(|epoch| {
            let open = &producer.open[epoch];
            *epoch + 1 == op.epoch
                || (open.two_phase && open.superseded_by.is_none_or(|later| later >= op.epoch))
        });
        let mut sum =
            Sum { orphans: below.iter().any(|epoch| Some(*epoch) != resolves), ..Sum::default() };
        if let Some(epoch) = resolves {
            if last < Some(op.epoch) {
                producer.completed = completed;
            }
            let slots = producer.open.remove(&epoch).map(|open| open.slots).unwrap_or_default();
            for slot in slots {
                sum.slots += 1;
                sum.offsets += self.resolve(slot, op, epoch);
            }
        } else if last == Some(op.epoch) {
            sum.contradicts = producer.completed.is_some_and(|last| last.commit != op.commit);
        } else if last > Some(op.epoch) {
            return Err(INVALID_PRODUCER_EPOCH);
        } else if producer.highest < Some(op.epoch) {
            producer.completed = completed;
        }
        Ok(sum)
    }

    /// Gives every offset that the transaction holds its final state. Answers how many.
    fn resolve(&mut self, slot: usize, op: MarkerOp, epoch: i16) -> u64 {
        let Some(row) = self.rows.get_mut(&slot) else { return 0 };
        let (mine, others): (BTreeMap<_, _>, BTreeMap<_, _>) = std::mem::take(&mut row.prepared)
            .into_iter()
            .partition(|(_, prepared)| (prepared.producer, prepared.epoch) == (op.producer, epoch));
        row.prepared = others;
        for (offset, prepared) in &mine {
            let state = if op.commit { prepared.commit } else { prepared.abort };
            if matches!(state, 2 | 4) && row.complete >= 0 {
                row.complete += 1;
            }
            row.offsets.insert(*offset, (state, prepared.count));
        }
        mine.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::Op;
    use super::*;

    fn stage(slot: usize, epoch: i16, first: i64, last: i64) -> Deed {
        let acks = vec![(first, last, 1, 2, 0, 1)];
        let (state_epoch, leader_epoch, producer) = (1, 0, 7);
        let op = StageOp { state_epoch, leader_epoch, producer, epoch, two_phase: false, acks };
        Deed::Stage { slot, op }
    }

    fn marker(epoch: i16, commit: bool) -> Deed {
        Deed::Marker(MarkerOp { producer: 7, epoch, coordinator: 3, commit })
    }

    fn ledger() -> Ledger {
        let mut ledger = Ledger::default();
        for slot in 0..2 {
            let op = Op::Initialize { state_epoch: 1, start: 0 };
            assert_eq!(ledger.act(&Deed::Plain { slot, op }), Answer::Done);
        }
        ledger
    }

    #[test]
    fn a_life_of_a_transaction_on_paper() {
        let mut ledger = ledger();
        assert_eq!(ledger.act(&stage(0, 4, 0, 4)), Answer::Staged(5));
        assert_eq!(ledger.act(&stage(0, 4, 0, 4)), Answer::Staged(0), "repeated");
        assert_eq!(ledger.act(&stage(0, 5, 2, 2)), Answer::Refused(121), "taken");
        assert_eq!(ledger.act(&stage(1, 4, 8, 9)), Answer::Staged(2));
        let sum = Sum { slots: 2, offsets: 7, ..Sum::default() };
        assert_eq!(ledger.act(&marker(5, true)), Answer::Resolved(sum));
        assert_eq!((ledger.rows[&0].complete, ledger.rows[&1].offsets[&9]), (5, (2, 1)));
        assert_eq!(ledger.act(&marker(5, true)), Answer::Resolved(Sum::default()));
        let sum = Sum { contradicts: true, ..Sum::default() };
        assert_eq!(ledger.act(&marker(5, false)), Answer::Resolved(sum));
        assert_eq!(ledger.act(&marker(4, false)), Answer::Refused(47));
        assert_eq!(ledger.act(&stage(0, 4, 9, 9)), Answer::Refused(47), "late");
        assert_eq!(ledger.act(&stage(0, 5, 4, 4)), Answer::Refused(121), "it has an end state");
    }

    #[test]
    fn an_orphan_waits_for_its_own_marker() {
        let mut ledger = ledger();
        ledger.act(&stage(0, 4, 0, 0));
        ledger.act(&stage(1, 6, 0, 0));
        assert_eq!(ledger.producers[&7].open[&4].superseded_by, Some(6));
        let sum = Sum { slots: 1, offsets: 1, orphans: true, contradicts: false };
        assert_eq!(ledger.act(&marker(7, true)), Answer::Resolved(sum));
        let sum = Sum { slots: 1, offsets: 1, ..Sum::default() };
        assert_eq!(ledger.act(&marker(5, false)), Answer::Resolved(sum));
        assert_eq!(ledger.producers[&7].completed.map(|last| last.epoch), Some(7));
        assert_eq!(ledger.rows[&0].offsets[&0], (0, 1));
    }

    #[test]
    fn what_goes_with_its_share_partition_is_no_longer_open() {
        let mut ledger = ledger();
        ledger.act(&stage(0, 4, 0, 0));
        ledger.act(&stage(1, 4, 0, 0));
        ledger.act(&Deed::Plain { slot: 0, op: Op::Delete });
        assert_eq!(ledger.producers[&7].open[&4].slots, BTreeSet::from([1]));
        let op = Op::Initialize { state_epoch: 2, start: 0 };
        ledger.act(&Deed::Plain { slot: 1, op });
        assert!(ledger.producers[&7].open.is_empty());
        assert_eq!(ledger.act(&marker(5, true)), Answer::Resolved(Sum::default()));
    }
}
