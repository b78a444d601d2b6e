//! The record of what was acknowledged, kept outside the store, and its comparison with what a
//! killed store brings back.

use std::collections::{BTreeMap, BTreeSet};

use super::shadow::{Row, apply};
use super::wire::{Line, Op};

/// Share partitions that a store has, by number.
pub type Found = BTreeMap<usize, Row>;

/// Everything the child said.
pub struct Oracle {
    slots: Vec<Slot>,
    /// Operations that were answered.
    pub acknowledged: u64,
    /// Answers that the rules do not give.
    pub wrong_answers: u64,
    pub notes: Vec<String>,
}

#[derive(Default)]
struct Slot {
    /// Every state since the last comparison; the last one is the state of all acknowledged
    /// operations.
    states: Vec<Option<Row>>,
    /// Issued and not answered.
    flying: Option<Op>,
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
}

impl Oracle {
    pub fn new(slots: usize) -> Self {
        let slot = || Slot { states: vec![None], flying: None };
        let slots = std::iter::repeat_with(slot).take(slots).collect();
        Self { slots, acknowledged: 0, wrong_answers: 0, notes: Vec::new() }
    }

    /// Takes in a line of the child's.
    pub fn hear(&mut self, line: Line) -> Result<(), String> {
        let (Line::Issue { slot: number, .. } | Line::Ack { slot: number, .. }) = line;
        let slot = self.slots.get_mut(number).ok_or_else(|| format!("no slot {number}"))?;
        match line {
            Line::Issue { op, .. } => match slot.flying.replace(op) {
                None => Ok(()),
                Some(op) => Err(format!("slot {number}: {op:?} was not answered")),
            },
            Line::Ack { answer, .. } => {
                let op = slot.flying.take().ok_or_else(|| format!("slot {number}: no question"))?;
                let (expected, row) = apply(slot.now(), &op);
                self.acknowledged += 1;
                if answer != expected {
                    self.wrong_answers += 1;
                    self.notes.push(format!(
                        "slot {number}: {op:?} was answered {answer:?}, expected {expected:?}"
                    ));
                }
                if slot.now() != row.as_ref() {
                    slot.states.push(row);
                }
                Ok(())
            }
        }
    }

    /// Compares, and goes on from what was found.
    pub fn compare(&mut self, found: &Found) -> Outcome {
        let mut outcome = Outcome::default();
        for (number, slot) in self.slots.iter_mut().enumerate() {
            let row = found.get(&number);
            let flying = slot.flying.take();
            outcome.unanswered += u64::from(flying.is_some());
            let flown = flying.as_ref().map(|op| apply(slot.now(), op).1);
            if row == slot.now() {
                // Nothing of an unanswered operation, or it changed nothing.
            } else if flown.as_ref().is_some_and(|flown| flown.as_ref() == row) {
                outcome.adopted += 1;
            } else {
                let (lost, invented) = slot.differences(row, flown.as_ref());
                outcome.lost += lost;
                outcome.invented += invented;
                self.notes.push(format!(
                    "slot {number}: lost {lost}, invented {invented}: found {row:?}, acknowledged \
                     {:?}, unanswered {flying:?}",
                    slot.now()
                ));
            }
            slot.states = vec![row.cloned()];
        }
        let strangers = found.keys().filter(|number| **number >= self.slots.len()).count() as u64;
        if strangers > 0 {
            outcome.invented += strangers;
            self.notes.push(format!("{strangers} share partitions that nobody asked for"));
        }
        outcome
    }
}

impl Slot {
    fn now(&self) -> Option<&Row> {
        self.states.last().and_then(Option::as_ref)
    }

    /// How much of the present state `found` lacks, and how much it has beyond it.
    fn differences(&self, found: Option<&Row>, flown: Option<&Option<Row>>) -> (u64, u64) {
        // An earlier state: everything acknowledged since is missing.
        let earlier = self.states.iter().rev().position(|state| state.as_ref() == found);
        if let Some(missing) = earlier {
            return (missing as u64, 0);
        }
        let past: Vec<Facts> = self.states.iter().map(|state| facts(state.as_ref())).collect();
        let flown = flown.map(|flown| facts(flown.as_ref())).unwrap_or_default();
        let (found, now) = (facts(found), facts(self.now()));
        let (mut lost, mut invented) = (0, 0);
        let names: BTreeSet<Fact> = found.keys().chain(now.keys()).copied().collect();
        for name in names {
            let value = found.get(&name);
            if value == now.get(&name) || (value.is_some() && value == flown.get(&name)) {
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
        if lost + invented == 0 {
            invented = 1; // half of the unanswered operation: nobody asked for that
        }
        (lost, invented)
    }
}

/// One field or one offset of a share partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fact {
    StateEpoch,
    LeaderEpoch,
    LeaderFence,
    Start,
    InitStart,
    Complete,
    Offset(i64),
}

type Facts = BTreeMap<Fact, (i64, i64)>;

fn facts(row: Option<&Row>) -> Facts {
    let Some(row) = row else { return Facts::new() };
    let fields = [
        (Fact::StateEpoch, row.state_epoch.into()),
        (Fact::LeaderEpoch, row.leader_epoch.into()),
        (Fact::LeaderFence, row.leader_fence.into()),
        (Fact::Start, row.start),
        (Fact::InitStart, row.init_start),
        (Fact::Complete, row.complete.into()),
    ];
    let offsets = row.offsets.iter();
    let offsets =
        offsets.map(|(at, (state, count))| (Fact::Offset(*at), ((*state).into(), (*count).into())));
    fields.into_iter().map(|(name, value)| (name, (value, 0))).chain(offsets).collect()
}

#[cfg(test)]
mod tests {
    use super::super::wire::Answer;
    use super::*;

    fn initialize() -> Op {
        Op::Initialize { state_epoch: 1, start: 0 }
    }

    fn write(first: i64, last: i64) -> Op {
        let runs = vec![(first, last, 2, 1)];
        Op::Write { state_epoch: 1, leader_epoch: 0, start: 0, complete: 0, runs }
    }

    /// An oracle of one share partition that has seen these operations acknowledged.
    fn oracle_of(ops: &[Op]) -> (Oracle, Row) {
        let mut oracle = Oracle::new(1);
        for op in ops {
            oracle.hear(Line::Issue { slot: 0, op: op.clone() }).unwrap();
            oracle.hear(Line::Ack { slot: 0, answer: Answer::Done }).unwrap();
        }
        let row = oracle.slots[0].now().unwrap().clone();
        (oracle, row)
    }

    fn compare(oracle: &mut Oracle, row: Option<Row>) -> Outcome {
        oracle.compare(&row.map(|row| (0, row)).into_iter().collect())
    }

    #[test]
    fn what_was_acknowledged_is_neither_lost_nor_invented() {
        let (mut oracle, row) = oracle_of(&[initialize(), write(0, 4)]);
        assert_eq!(compare(&mut oracle, Some(row)), Outcome::default());
        assert_eq!((oracle.acknowledged, oracle.wrong_answers), (2, 0));
    }

    #[test]
    fn an_unanswered_operation_may_be_there_or_not_and_nothing_else() {
        for is_there in [false, true] {
            let (mut oracle, row) = oracle_of(&[initialize(), write(0, 4)]);
            oracle.hear(Line::Issue { slot: 0, op: write(5, 6) }).unwrap();
            let found = if is_there { apply(Some(&row), &write(5, 6)).1 } else { Some(row) };
            let outcome = compare(&mut oracle, found);
            let adopted = u64::from(is_there);
            assert_eq!(outcome, Outcome { unanswered: 1, adopted, ..Outcome::default() });
        }
        let (mut oracle, row) = oracle_of(&[initialize(), write(0, 4)]);
        oracle.hear(Line::Issue { slot: 0, op: write(5, 6) }).unwrap();
        let outcome = compare(&mut oracle, apply(Some(&row), &write(5, 7)).1);
        assert_eq!((outcome.lost, outcome.invented), (0, 1), "offset 7 was never asked for");
        let (mut oracle, row) = oracle_of(&[initialize(), write(0, 4)]);
        oracle.hear(Line::Issue { slot: 0, op: write(5, 6) }).unwrap();
        let outcome = compare(&mut oracle, apply(Some(&row), &write(5, 5)).1);
        assert_eq!((outcome.lost, outcome.invented), (0, 1), "half an operation");
    }

    #[test]
    fn every_lost_operation_is_counted() {
        let ops = [initialize(), write(0, 4), write(5, 5), write(6, 9)];
        for kept in 0..ops.len() {
            let (mut oracle, _) = oracle_of(&ops);
            let mut found = None;
            for op in &ops[..kept] {
                found = apply(found.as_ref(), op).1;
            }
            let outcome = compare(&mut oracle, found);
            assert_eq!((outcome.lost, outcome.invented), ((ops.len() - kept) as u64, 0));
        }
    }

    #[test]
    fn a_hole_in_the_middle_is_a_loss() {
        let (mut oracle, mut row) = oracle_of(&[initialize(), write(0, 4), write(5, 9)]);
        row.offsets.remove(&2);
        assert_eq!(compare(&mut oracle, Some(row)).lost, 1);
    }

    #[test]
    fn what_nobody_asked_for_is_invented() {
        let (mut asked, mut row) = oracle_of(&[initialize(), write(0, 4)]);
        row.offsets.insert(3, (4, 1));
        row.offsets.insert(77, (2, 1));
        let outcome = compare(&mut asked, Some(row.clone()));
        assert_eq!((outcome.lost, outcome.invented), (0, 2));
        let outcome = asked.compare(&Found::from([(0, row.clone()), (9, row)]));
        assert_eq!((outcome.lost, outcome.invented), (0, 1), "a share partition of nobody's");
    }

    #[test]
    fn a_wrong_answer_is_noticed() {
        let mut oracle = Oracle::new(1);
        oracle.hear(Line::Issue { slot: 0, op: write(0, 0) }).unwrap();
        oracle.hear(Line::Ack { slot: 0, answer: Answer::Done }).unwrap();
        assert_eq!(oracle.wrong_answers, 1, "it was not initialized");
    }
}
