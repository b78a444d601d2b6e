//! The record of what was acknowledged, kept outside the store, and its comparison with what a
//! killed store brings back.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::facts::{Factual, History, count};
use super::ledger::{Ledger, Producer, Scope};
use super::shadow::Row;
use super::wire::{Answer, Deed, Fate, Line};

/// Everything the child said.
pub struct Oracle {
    slots: usize,
    /// The state of all that was acknowledged.
    pub ledger: Ledger,
    rows: BTreeMap<usize, History<Option<Row>>>,
    producers: BTreeMap<i64, History<Option<Producer>>>,
    /// Asked for and not answered, by consumer. No two consumers touch the same things.
    flying: BTreeMap<usize, VecDeque<Deed>>,
    /// Failed with an unknown outcome, by consumer.
    unknown: BTreeMap<usize, Vec<Deed>>,
    /// Consumers that asked for something when no sync could succeed any more.
    doomed: BTreeSet<usize>,
    pub failures: Failures,
    /// Operations that were answered.
    pub acknowledged: u64,
    /// Offsets whose staging was acknowledged.
    pub staged: u64,
    /// Answers that the rules do not give.
    pub wrong_answers: u64,
    pub notes: Vec<String>,
}

/// What the child said of failures.
#[derive(Debug, Default)]
pub struct Failures {
    /// Operations that failed.
    pub failed: u64,
    /// Of these, such as may have happened all the same.
    pub unknown: u64,
    /// Whether the store was poisoned, if the child came to its end.
    pub poisoned: Option<bool>,
    /// Class and text of the error.
    pub unopened: Option<(String, String)>,
}

/// What a comparison came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Acknowledged changes that are missing.
    pub lost: u64,
    /// Changes that no issued operation explains.
    pub invented: u64,
    /// Operations that were issued and not answered.
    pub unanswered: u64,
    /// Of these, such as the store brought back.
    pub adopted: u64,
    /// Producers with nothing prepared that were forgotten.
    pub expired: u64,
}

impl Oracle {
    pub fn new(slots: usize) -> Self {
        Self {
            slots,
            ledger: Ledger::default(),
            rows: BTreeMap::new(),
            producers: BTreeMap::new(),
            flying: BTreeMap::new(),
            unknown: BTreeMap::new(),
            doomed: BTreeSet::new(),
            failures: Failures::default(),
            acknowledged: 0,
            staged: 0,
            wrong_answers: 0,
            notes: Vec::new(),
        }
    }

    /// Takes in a line of the child's.
    pub fn hear(&mut self, line: Line) -> Result<(), String> {
        match line {
            Line::Issue { lane, deed, doomed } => {
                if doomed {
                    self.doomed.insert(lane);
                }
                let slots = self.ledger.scope(&deed).slots;
                if let Some(slot) = slots.into_iter().find(|slot| *slot >= self.slots) {
                    return Err(format!("no slot {slot}"));
                }
                self.flying.entry(lane).or_default().push_back(deed);
            }
            Line::Ack { lane, answer } => {
                let deed = self.flying.get_mut(&lane).and_then(VecDeque::pop_front);
                let deed = deed.ok_or_else(|| format!("consumer {lane}: no question"))?;
                if let Answer::Failed(fate) = answer {
                    self.note_failure(lane, deed, fate);
                    return Ok(());
                }
                self.acknowledged += 1;
                let must_fail = self.unknown.contains_key(&lane) || self.doomed.contains(&lane);
                let before = must_fail.then(|| self.ledger.clone());
                if let Answer::Staged(offsets) = self.judge(&deed, answer) {
                    self.staged += offsets;
                }
                if before.is_some_and(|before| before != self.ledger) {
                    self.wrong_answers += 1;
                    self.notes
                        .push(format!("{deed:?} was answered by a store that could not sync it"));
                }
            }
            Line::Unopened { class, error } => self.failures.unopened = Some((class, error)),
            Line::End { poisoned } => self.failures.poisoned = Some(poisoned),
        }
        Ok(())
    }

    /// What was not logged is not there; the rest waits for the recovery.
    fn note_failure(&mut self, lane: usize, deed: Deed, fate: Fate) {
        self.failures.failed += 1;
        if fate == Fate::Unknown {
            self.failures.unknown += 1;
            self.unknown.entry(lane).or_default().push(deed);
        }
    }

    /// Share partitions that something unanswered touches.
    pub fn flying_slots(&self) -> BTreeSet<usize> {
        let deeds = self.flying.values().flatten().chain(self.unknown.values().flatten());
        deeds.flat_map(|deed| self.ledger.scope(deed).slots).collect()
    }

    /// Takes in an answer. Answers what it should be.
    pub fn judge(&mut self, deed: &Deed, answer: Answer) -> Answer {
        let scope = self.ledger.scope(deed);
        self.start_histories(&scope);
        let expected = self.ledger.act(deed);
        if answer != expected {
            self.wrong_answers += 1;
            self.notes.push(format!("{deed:?} was answered {answer:?}, expected {expected:?}"));
        }
        for slot in &scope.slots {
            push_changed(self.rows.get_mut(slot), self.ledger.rows.get(slot));
        }
        for id in &scope.producers {
            push_changed(self.producers.get_mut(id), self.ledger.producers.get(id));
        }
        expected
    }

    fn start_histories(&mut self, scope: &Scope) {
        for slot in &scope.slots {
            let now = || History(vec![self.ledger.rows.get(slot).cloned()]);
            self.rows.entry(*slot).or_insert_with(now);
        }
        for id in &scope.producers {
            let now = || History(vec![self.ledger.producers.get(id).cloned()]);
            self.producers.entry(*id).or_insert_with(now);
        }
    }

    /// Compares, and goes on from what was found. `expiring` says that producers without anything
    /// prepared may have been forgotten.
    pub fn compare(&mut self, found: &Ledger, expiring: bool) -> Outcome {
        let mut outcome = Outcome::default();
        let mut found = found.clone();
        let strangers = found.rows.split_off(&self.slots).len() as u64;
        if strangers > 0 {
            outcome.invented += strangers;
            self.notes.push(format!("{strangers} share partitions that nobody asked for"));
        }
        self.doomed.clear();
        let mut unanswered = std::mem::take(&mut self.unknown);
        for (lane, deeds) in std::mem::take(&mut self.flying) {
            unanswered.entry(lane).or_default().extend(deeds);
        }
        for deeds in unanswered.into_values() {
            self.land(&deeds, &found, expiring, &mut outcome);
        }
        if expiring {
            let before = self.ledger.producers.len();
            self.ledger.forget_idle(&found);
            outcome.expired += (before - self.ledger.producers.len()) as u64;
        }
        // Everything that nobody was changing.
        let slots = self.ledger.rows.keys().chain(found.rows.keys()).copied();
        let producers = self.ledger.producers.keys().chain(found.producers.keys()).copied();
        let all = Scope { slots: slots.collect(), producers: producers.collect() };
        let (lost, invented) = self.differences(&all, &found, None);
        outcome.lost += lost;
        outcome.invented += invented;
        self.go_on_from(found);
        outcome
    }

    /// Each of the unanswered deeds of a consumer is there as a whole, or not at all.
    fn land(&mut self, deeds: &[Deed], found: &Ledger, expiring: bool, outcome: &mut Outcome) {
        outcome.unanswered += deeds.len() as u64;
        let mut scope = Scope::default();
        for deed in deeds {
            let Scope { slots, producers } = self.ledger.scope(deed);
            scope.slots.extend(slots);
            scope.producers.extend(producers);
        }
        let (now, seen) = (self.ledger.part(&scope), found.part(&scope));
        let choices: BTreeSet<u32> = (0..1_u32 << deeds.len()).collect();
        let landed = |choice: u32| {
            let mut ledger = now.clone();
            let chosen = deeds.iter().enumerate().filter(|(bit, _)| choice >> bit & 1 == 1);
            for (_, deed) in chosen {
                ledger.act(deed);
            }
            if expiring {
                ledger.forget_idle(&seen);
            }
            ledger
        };
        match choices.iter().copied().find(|choice| landed(*choice) == seen) {
            Some(choice) => outcome.adopted += u64::from(choice.count_ones()),
            None => {
                let flown = landed(u32::MAX);
                let (lost, invented) = match self.differences(&scope, &seen, Some(&flown)) {
                    // Half of something: nobody asked for that.
                    (0, 0) => (0, 1),
                    differences => differences,
                };
                outcome.lost += lost;
                outcome.invented += invented;
                self.notes.push(format!("unanswered {deeds:?}: lost {lost}, invented {invented}"));
            }
        }
        // Judged: what was found there is what is so.
        for slot in &scope.slots {
            set(&mut self.ledger.rows, slot, seen.rows.get(slot));
            self.rows.remove(slot);
        }
        for id in &scope.producers {
            set(&mut self.ledger.producers, id, seen.producers.get(id));
            self.producers.remove(id);
        }
    }

    fn differences(&mut self, scope: &Scope, found: &Ledger, flown: Option<&Ledger>) -> (u64, u64) {
        self.start_histories(scope);
        let (mut lost, mut invented) = (0, 0);
        for slot in &scope.slots {
            let (row, now) = (found.rows.get(slot), self.ledger.rows.get(slot));
            if row == now {
                continue;
            }
            let flown = flown.map(|flown| flown.rows.get(slot).cloned());
            let (l, i) = self.rows[slot].differences(&row.cloned(), flown.as_ref());
            self.notes.push(format!(
                "slot {slot}: lost {l}, invented {i}: found {row:?}, acknowledged {now:?}"
            ));
            lost += l;
            invented += i;
        }
        for id in &scope.producers {
            let (row, now) = (found.producers.get(id), self.ledger.producers.get(id));
            if row == now {
                continue;
            }
            let flown = flown.map(|flown| flown.producers.get(id).cloned());
            let (l, i) = self.producers[id].differences(&row.cloned(), flown.as_ref());
            self.notes.push(format!(
                "producer {id}: lost {l}, invented {i}: found {row:?}, acknowledged {now:?}"
            ));
            lost += l;
            invented += i;
        }
        (lost, invented)
    }

    /// Compares when nothing is unanswered, and goes on from what was found. Answers how many
    /// offsets, prepared acks and other facts differ.
    pub fn check(&mut self, found: &Ledger) -> u64 {
        let mut wrong = 0;
        let slots = self.ledger.rows.keys().chain(found.rows.keys());
        for slot in slots.copied().collect::<BTreeSet<_>>() {
            let (row, now) = (found.rows.get(&slot), self.ledger.rows.get(&slot));
            if row != now {
                wrong += count(&row.cloned(), &now.cloned());
                self.notes.push(format!("slot {slot}: found {row:?}, expected {now:?}"));
            }
        }
        let ids = self.ledger.producers.keys().chain(found.producers.keys());
        for id in ids.copied().collect::<BTreeSet<_>>() {
            let (row, now) = (found.producers.get(&id), self.ledger.producers.get(&id));
            if row != now {
                wrong += count(&row.cloned(), &now.cloned());
                self.notes.push(format!("producer {id}: found {row:?}, expected {now:?}"));
            }
        }
        self.go_on_from(found.clone());
        wrong
    }

    fn go_on_from(&mut self, found: Ledger) {
        self.ledger = found;
        self.rows.clear();
        self.producers.clear();
    }
}

fn push_changed<T: Clone + PartialEq>(history: Option<&mut History<Option<T>>>, now: Option<&T>)
where
    Option<T>: Factual,
{
    let Some(History(states)) = history else { return };
    if states.last().and_then(Option::as_ref) != now {
        states.push(now.cloned());
    }
}

fn set<K: Ord + Copy, V: Clone>(rows: &mut BTreeMap<K, V>, key: &K, row: Option<&V>) {
    match row {
        Some(row) => rows.insert(*key, row.clone()),
        None => rows.remove(key),
    };
}

#[cfg(test)]
mod tests;
