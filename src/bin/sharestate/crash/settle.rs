//! What the parent does about the transactions that a kill has left open.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use sharestate::blocking::BlockingShareStore;
use sharestate::inspect::Reader;
use sharestate::{PendingEntry, PendingFilter};

use super::ledger::Ledger;
use super::oracle::Oracle;
use super::rng::Rng;
use super::shadow::Prepared;
use super::view::{listed, submit};
use super::wire::{Answer, Deed, MarkerOp, Sum, member_id, slot_of, transactional_id};
use crate::args::Tamper;
use crate::failure::Failure;

/// What came of it.
#[derive(Debug, Default)]
pub struct Settled {
    /// Offsets with a prepared ack that the killed store brought back.
    pub recovered: u64,
    /// Of these, such as the markers resolved.
    pub resolved: u64,
    /// Of these, such as were left prepared.
    pub left_open: u64,
    /// Offsets, prepared acks and other facts that differ from the record.
    pub wrong: u64,
}

pub struct Settlement<'a> {
    pub store: &'a BlockingShareStore,
    pub dir: &'a Path,
    pub oracle: &'a mut Oracle,
    pub rng: Rng,
    /// Epoch of the transaction coordinator.
    pub coordinator: i32,
    pub tamper: Option<Tamper>,
    /// Percentage of open transactions that get no marker yet.
    pub leave_open: u64,
}

impl Settlement<'_> {
    /// Lists what is prepared, sends the markers, and looks at every offset.
    pub fn run(&mut self) -> Result<Settled, Failure> {
        let entries = self.store.pending(PendingFilter::default())?;
        let mut settled = Settled {
            recovered: entries.iter().map(PendingEntry::offsets).sum(),
            wrong: self.check_list(&entries)?,
            resolved: 0,
            left_open: 0,
        };
        let open: BTreeSet<(i64, i16)> =
            entries.iter().map(|entry| (entry.producer_id, entry.producer_epoch)).collect();
        for (index, (producer, epoch)) in open.into_iter().enumerate() {
            if self.rng.chance(self.leave_open) {
                let of_it = |entry: &&PendingEntry| {
                    (entry.producer_id, entry.producer_epoch) == (producer, epoch)
                };
                settled.left_open +=
                    entries.iter().filter(of_it).map(PendingEntry::offsets).sum::<u64>();
                continue;
            }
            let (is_first, commit) = (index == 0, self.rng.chance(60));
            let coordinator = self.coordinator;
            let marker = MarkerOp { producer, epoch: epoch + 1, coordinator, commit };
            if is_first || self.rng.chance(25) {
                self.send_late(marker)?;
            }
            if is_first && self.tamper == Some(Tamper::LostMarker) {
                // Acknowledged, as far as the record knows.
                let deed = Deed::Marker(marker);
                let answer = self.oracle.ledger.clone().act(&deed);
                self.oracle.judge(&deed, answer);
                continue;
            }
            settled.resolved += self.send(marker)?.offsets;
            if is_first || self.rng.chance(25) {
                settled.resolved += self.send(marker)?.offsets; // repeated
            }
        }
        settled.wrong += self.oracle.check(&listed(self.store)?);
        Ok(settled)
    }

    fn send(&mut self, marker: MarkerOp) -> Result<Sum, Failure> {
        let deed = Deed::Marker(marker);
        let mut sum = Sum::default();
        for answer in submit(self.store, std::slice::from_ref(&deed))? {
            self.oracle.judge(&deed, answer);
            if let Answer::Resolved(told) = answer {
                sum = told;
            }
        }
        Ok(sum)
    }

    /// The marker of an older transaction, which must change nothing that is open.
    fn send_late(&mut self, marker: MarkerOp) -> Result<(), Failure> {
        let producer = self.oracle.ledger.producers.get(&marker.producer);
        let lowest = producer.and_then(|row| row.open.keys().next().copied());
        // It speaks of the epoch below all that are open.
        let Some(epoch) = lowest else { return Ok(()) };
        let late = MarkerOp { epoch, commit: !marker.commit, ..marker };
        let before = self.oracle.ledger.rows.clone();
        let sum = self.send(late)?;
        if sum.offsets > 0 || self.oracle.ledger.rows != before {
            self.oracle.wrong_answers += 1;
            self.oracle.notes.push(format!("{late:?} is late and resolved {sum:?}"));
        }
        Ok(())
    }

    /// Compares the list of prepared acks with the record. Answers how many entries differ.
    fn check_list(&mut self, entries: &[PendingEntry]) -> Result<u64, Failure> {
        let expected = expected(&self.oracle.ledger);
        let found: BTreeMap<_, _> = entries.iter().map(found).collect();
        let ids: BTreeSet<_> = expected.keys().chain(found.keys()).collect();
        let mut wrong = 0;
        for id in ids {
            let (found, expected) = (found.get(id), expected.get(id));
            if found != expected {
                wrong += 1;
                let note = format!("prepared {id:?}: found {found:?}, expected {expected:?}");
                self.oracle.notes.push(note);
            }
        }
        let beside = Reader::open(self.dir)?.pending(&PendingFilter::default())?;
        if beside != entries {
            wrong += 1;
            let note = "a read-only view and the store list other prepared acks".to_owned();
            self.oracle.notes.push(note);
        }
        Ok(wrong)
    }
}

/// Producer, epoch and share partition.
type Id = (i64, i16, usize);

/// What the list says of an entry.
#[derive(Debug, PartialEq, Eq)]
struct Listed {
    names: (String, String),
    two_phase: bool,
    orphaned: bool,
    coordinator: Option<i32>,
    holds_start: bool,
    offsets: BTreeMap<i64, Prepared>,
}

fn found(entry: &PendingEntry) -> (Id, Listed) {
    let (producer, epoch) = (entry.producer_id, entry.producer_epoch);
    let offsets = entry.acks.iter().flat_map(|ack| {
        let prepared = Prepared {
            producer,
            epoch,
            ack: ack.ack_type as i8,
            commit: ack.commit_target.0,
            abort: ack.abort_target.0,
            count: ack.delivery_count,
        };
        (ack.first_offset..=ack.last_offset).map(move |offset| (offset, prepared))
    });
    let listed = Listed {
        names: (entry.oldest.transactional_id.clone(), entry.oldest.member_id.clone()),
        two_phase: entry.two_phase,
        orphaned: entry.orphaned,
        coordinator: entry.coordinator_epoch,
        holds_start: entry.holds_start_offset,
        offsets: offsets.collect(),
    };
    ((producer, epoch, slot_of(&entry.key)), listed)
}

/// The list as the record has it.
fn expected(ledger: &Ledger) -> BTreeMap<Id, Listed> {
    let mut list: BTreeMap<Id, Listed> = BTreeMap::new();
    for (slot, row) in &ledger.rows {
        for (offset, prepared) in &row.prepared {
            let (id, epoch) = (prepared.producer, prepared.epoch);
            let producer = ledger.producers.get(&id);
            let open = producer.and_then(|producer| producer.open.get(&epoch));
            let completed = producer.and_then(|producer| producer.completed);
            let listed = list.entry((id, epoch, *slot)).or_insert_with(|| Listed {
                names: (transactional_id(id), member_id(id)),
                two_phase: open.is_some_and(|open| open.two_phase),
                orphaned: open.is_some_and(|open| open.superseded_by.is_some())
                    || completed.is_some_and(|last| last.epoch > epoch),
                coordinator: producer.and_then(|producer| producer.coordinator),
                holds_start: false,
                offsets: BTreeMap::new(),
            });
            listed.holds_start |= *offset == row.start;
            listed.offsets.insert(*offset, *prepared);
        }
    }
    list
}
