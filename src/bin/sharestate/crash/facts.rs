//! Differences between what the record says and what is found, fact by fact.

use std::collections::{BTreeMap, BTreeSet};

use super::ledger::Producer;
use super::shadow::Row;

/// One field, one offset or one prepared ack of a share partition, or one fact on a producer.
///
/// A name, and what it is numbered by: an offset, or an epoch and a share partition.
type Fact = (&'static str, i64, usize);

pub type Facts = BTreeMap<Fact, Vec<i64>>;

/// Something with facts, such as a share partition that may not exist.
pub trait Factual: PartialEq {
    fn facts(&self) -> Facts;
}

impl Factual for Option<Row> {
    fn facts(&self) -> Facts {
        let Some(row) = self else { return Facts::new() };
        let fields = [
            ("state epoch", row.state_epoch.into()),
            ("leader epoch", row.leader_epoch.into()),
            ("leader fence", row.leader_fence.into()),
            ("start", row.start),
            ("init start", row.init_start),
            ("complete", row.complete.into()),
        ];
        let fields = fields.into_iter().map(|(name, value)| ((name, 0, 0), vec![value]));
        let offsets = row.offsets.iter();
        let offsets = offsets.map(|(at, (state, count))| {
            (("offset", *at, 0), vec![(*state).into(), (*count).into()])
        });
        let prepared = row.prepared.iter().map(|(at, prepared)| {
            let numbers = [prepared.epoch, prepared.ack.into(), prepared.commit.into()];
            let numbers = numbers.into_iter().chain([prepared.abort.into(), prepared.count]);
            let value = [prepared.producer].into_iter().chain(numbers.map(i64::from));
            (("prepared", *at, 0), value.collect())
        });
        fields.chain(offsets).chain(prepared).collect()
    }
}

impl Factual for Option<Producer> {
    fn facts(&self) -> Facts {
        let Some(producer) = self else { return Facts::new() };
        let highest = producer.highest.map(|epoch| vec![epoch.into()]);
        let completed = producer
            .completed
            .map(|last| vec![last.epoch.into(), last.commit.into(), last.operator.into()]);
        let coordinator = producer.coordinator.map(|epoch| vec![epoch.into()]);
        let fields = [("highest", highest), ("completed", completed), ("coordinator", coordinator)];
        let fields = fields.into_iter().filter_map(|(name, value)| Some(((name, 0, 0), value?)));
        let open = producer.open.iter().flat_map(|(epoch, open)| {
            let (number, later) = (i64::from(*epoch), open.superseded_by.map_or(-1, i64::from));
            let slots = open.slots.iter().map(move |slot| (("open in", number, *slot), vec![]));
            let value = vec![open.two_phase.into(), later];
            [(("open", number, 0), value)].into_iter().chain(slots)
        });
        fields.chain(open).collect()
    }
}

/// How many facts differ.
pub fn count<T: Factual>(found: &T, expected: &T) -> u64 {
    let (found, expected) = (found.facts(), expected.facts());
    let names: BTreeSet<&Fact> = found.keys().chain(expected.keys()).collect();
    names.into_iter().filter(|name| found.get(name) != expected.get(name)).count() as u64
}

/// Every state since the last comparison; the last one is the state of all that was acknowledged.
pub struct History<T>(pub Vec<T>);

impl<T: Factual> History<T> {
    /// How much of the present state `found` lacks, and how much it has beyond it. `flown` is the
    /// state with everything that was asked for and not answered.
    pub fn differences(&self, found: &T, flown: Option<&T>) -> (u64, u64) {
        // An earlier state: everything acknowledged since is missing.
        if let Some(missing) = self.0.iter().rev().position(|state| state == found) {
            return (missing as u64, 0);
        }
        let past: Vec<Facts> = self.0.iter().map(T::facts).collect();
        let flown = flown.map(T::facts);
        let now = past.last().cloned().unwrap_or_default();
        let found = found.facts();
        let (mut lost, mut invented) = (0, 0);
        let names: BTreeSet<Fact> = found.keys().chain(now.keys()).copied().collect();
        for name in names {
            let value = found.get(&name);
            let is_flown = flown.as_ref().is_some_and(|flown| flown.get(&name) == value);
            if value == now.get(&name) || is_flown {
                continue;
            }
            // A value from before, or none where there was one, has gone back.
            let is_old = value.is_none() || past.iter().any(|facts| facts.get(&name) == value);
            if is_old {
                lost += 1;
            } else {
                invented += 1;
            }
        }
        (lost, invented)
    }
}
