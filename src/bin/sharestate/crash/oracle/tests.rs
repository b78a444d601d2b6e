//! What the record notices.

use super::super::wire::{MarkerOp, Op, StageOp, Sum};
use super::*;

fn initialize() -> Op {
    Op::Initialize { state_epoch: 1, start: 0 }
}

fn write(first: i64, last: i64) -> Op {
    let runs = vec![(first, last, 2, 1)];
    Op::Write { state_epoch: 1, leader_epoch: 0, start: 0, complete: 0, runs }
}

fn plain(op: &Op) -> Deed {
    Deed::Plain { slot: 0, op: op.clone() }
}

fn issue(oracle: &mut Oracle, deed: Deed) {
    oracle.hear(Line::Issue { lane: 0, deed, doomed: false }).unwrap();
}

fn done(oracle: &mut Oracle, deed: Deed, answer: Answer) {
    issue(oracle, deed);
    oracle.hear(Line::Ack { lane: 0, answer }).unwrap();
}

/// An oracle of one share partition that has seen these operations acknowledged.
fn oracle_of(ops: &[Op]) -> (Oracle, Row) {
    let mut oracle = Oracle::new(1);
    for op in ops {
        done(&mut oracle, plain(op), Answer::Done);
    }
    let row = oracle.ledger.rows[&0].clone();
    (oracle, row)
}

fn after(row: &Row, op: &Op) -> Option<Row> {
    super::super::shadow::apply(Some(row), op).1
}

fn compare(oracle: &mut Oracle, row: Option<Row>) -> Outcome {
    let rows = row.map(|row| (0, row)).into_iter().collect();
    oracle.compare(&Ledger { rows, ..Ledger::default() }, false)
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
        issue(&mut oracle, plain(&write(5, 6)));
        let found = if is_there { after(&row, &write(5, 6)) } else { Some(row) };
        let outcome = compare(&mut oracle, found);
        let adopted = u64::from(is_there);
        assert_eq!(outcome, Outcome { unanswered: 1, adopted, ..Outcome::default() });
    }
    let (mut oracle, row) = oracle_of(&[initialize(), write(0, 4)]);
    issue(&mut oracle, plain(&write(5, 6)));
    let outcome = compare(&mut oracle, after(&row, &write(5, 7)));
    assert_eq!((outcome.lost, outcome.invented), (0, 1), "offset 7 was never asked for");
    let (mut oracle, row) = oracle_of(&[initialize(), write(0, 4)]);
    issue(&mut oracle, plain(&write(5, 6)));
    let outcome = compare(&mut oracle, after(&row, &write(5, 5)));
    assert_eq!((outcome.lost, outcome.invented), (0, 1), "half an operation");
}

#[test]
fn every_lost_operation_is_counted() {
    let ops = [initialize(), write(0, 4), write(5, 5), write(6, 9)];
    for kept in 0..ops.len() {
        let (mut oracle, _) = oracle_of(&ops);
        let mut found = None;
        for op in &ops[..kept] {
            found = super::super::shadow::apply(found.as_ref(), op).1;
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
    let rows = BTreeMap::from([(0, row.clone()), (9, row)]);
    let outcome = asked.compare(&Ledger { rows, ..Ledger::default() }, false);
    assert_eq!((outcome.lost, outcome.invented), (0, 1), "a share partition of nobody's");
}

#[test]
fn a_wrong_answer_is_noticed() {
    let mut oracle = Oracle::new(1);
    done(&mut oracle, plain(&write(0, 0)), Answer::Done);
    assert_eq!(oracle.wrong_answers, 1, "it was not initialized");
}

fn stage(slot: usize, first: i64, last: i64) -> Deed {
    let acks = vec![(first, last, 1, 2, 0, 1)];
    let (state_epoch, leader_epoch, producer, epoch) = (1, 0, 7, 0);
    let op = StageOp { state_epoch, leader_epoch, producer, epoch, two_phase: false, acks };
    Deed::Stage { slot, op }
}

fn marker(commit: bool) -> Deed {
    Deed::Marker(MarkerOp { producer: 7, epoch: 1, coordinator: 0, commit })
}

/// Two share partitions with two offsets each staged by one producer, acknowledged.
fn staged() -> Oracle {
    let mut oracle = Oracle::new(2);
    for slot in 0..2 {
        done(&mut oracle, Deed::Plain { slot, op: initialize() }, Answer::Done);
    }
    for slot in 0..2 {
        done(&mut oracle, stage(slot, 3, 4), Answer::Staged(2));
    }
    oracle
}

#[test]
fn what_was_staged_must_be_pending() {
    let mut oracle = staged();
    assert_eq!((oracle.staged, oracle.wrong_answers), (4, 0));
    let found = oracle.ledger.clone();
    assert_eq!(oracle.compare(&found, false), Outcome::default());
    for lose in [
        |found: &mut Ledger| _ = found.rows.get_mut(&1).unwrap().prepared.remove(&4),
        |found: &mut Ledger| found.rows.get_mut(&0).unwrap().prepared.clear(),
        |found: &mut Ledger| drop(found.producers.get_mut(&7).unwrap().open.remove(&0)),
        |found: &mut Ledger| drop(found.producers.remove(&7)),
    ] {
        let mut oracle = staged();
        let mut found = oracle.ledger.clone();
        lose(&mut found);
        let outcome = oracle.compare(&found, false);
        assert!(outcome.lost > 0 && outcome.invented == 0, "{outcome:?}");
    }
    let mut oracle = staged();
    let mut found = oracle.ledger.clone();
    let row = found.rows.get_mut(&0).unwrap();
    row.prepared.insert(5, row.prepared[&4]);
    assert_eq!(oracle.compare(&found, false).invented, 1);
}

#[test]
fn of_unanswered_stages_each_may_be_there() {
    for landed in 0..4_u32 {
        let mut oracle = staged();
        let mut found = oracle.ledger.clone();
        for slot in 0..2 {
            issue(&mut oracle, stage(slot, 8, 8));
            if landed >> slot & 1 == 1 {
                found.act(&stage(slot, 8, 8));
            }
        }
        let outcome = oracle.compare(&found, false);
        let adopted = landed.count_ones().into();
        assert_eq!(outcome, Outcome { unanswered: 2, adopted, ..Outcome::default() });
        assert_eq!(oracle.ledger, found, "the record goes on from there");
    }
}

#[test]
fn an_unanswered_marker_is_there_everywhere_or_nowhere() {
    for is_there in [false, true] {
        let mut oracle = staged();
        issue(&mut oracle, marker(true));
        let mut found = oracle.ledger.clone();
        if is_there {
            found.act(&marker(true));
        }
        let adopted = is_there.into();
        let expected = Outcome { unanswered: 1, adopted, ..Outcome::default() };
        assert_eq!(oracle.compare(&found, false), expected);
    }
    // Half of it, in one share partition only.
    let mut oracle = staged();
    issue(&mut oracle, marker(true));
    let mut found = oracle.ledger.clone();
    let mut resolved = found.clone();
    resolved.act(&marker(true));
    found.rows.insert(1, resolved.rows[&1].clone());
    assert_eq!(oracle.compare(&found, false).invented, 1);
    // With another outcome.
    let mut oracle = staged();
    issue(&mut oracle, marker(true));
    let mut found = oracle.ledger.clone();
    found.act(&marker(false));
    assert!(oracle.compare(&found, false).invented > 0);
}

#[test]
fn a_lost_marker_is_a_loss_before_the_next_kill_and_wrong_after() {
    let mut oracle = staged();
    let before = oracle.ledger.clone();
    let sum = Sum { slots: 2, offsets: 4, ..Sum::default() };
    done(&mut oracle, marker(true), Answer::Resolved(sum));
    let outcome = oracle.compare(&before, false);
    assert_eq!((outcome.lost, outcome.invented), (3, 0), "two share partitions and a producer");

    let mut oracle = staged();
    oracle.judge(&marker(false), Answer::Resolved(sum));
    let right = oracle.ledger.clone();
    assert_eq!(oracle.check(&right), 0);
    assert!(oracle.check(&before) >= 8, "four acks still pending, four offsets without a state");
}

#[test]
fn what_was_not_logged_must_not_be_there_and_an_unknown_outcome_may() {
    for (fate, is_there, invented) in [
        (Fate::NotLogged, false, 0),
        (Fate::NotLogged, true, 1),
        (Fate::Unknown, false, 0),
        (Fate::Unknown, true, 0),
    ] {
        let (mut oracle, row) = oracle_of(&[initialize(), write(0, 4)]);
        done(&mut oracle, plain(&write(5, 5)), Answer::Failed(fate));
        assert_eq!((oracle.acknowledged, oracle.failures.failed), (2, 1));
        let found = if is_there { after(&row, &write(5, 5)) } else { Some(row) };
        let outcome = compare(&mut oracle, found);
        assert_eq!((outcome.lost, outcome.invented), (0, invented), "{fate:?} {is_there}");
    }
}

#[test]
fn a_store_that_failed_must_not_acknowledge_a_change_any_more() {
    let (mut oracle, _) = oracle_of(&[initialize()]);
    done(&mut oracle, plain(&write(0, 0)), Answer::Failed(Fate::Unknown));
    done(&mut oracle, plain(&initialize()), Answer::Done); // changes nothing
    assert_eq!(oracle.wrong_answers, 0);
    done(&mut oracle, plain(&write(1, 1)), Answer::Done);
    assert_eq!(oracle.wrong_answers, 1);
}

#[test]
fn nothing_is_acknowledged_that_was_asked_for_when_no_sync_could_succeed() {
    let (mut oracle, _) = oracle_of(&[initialize()]);
    oracle.hear(Line::Issue { lane: 0, deed: plain(&write(0, 0)), doomed: true }).unwrap();
    oracle.hear(Line::Ack { lane: 0, answer: Answer::Done }).unwrap();
    assert_eq!(oracle.wrong_answers, 1);
}

#[test]
fn only_idle_producers_expire_and_only_when_they_may() {
    let stage = |producer| {
        let acks = vec![(producer, producer, 1, 2, 0, 1)];
        let (state_epoch, leader_epoch, epoch, two_phase) = (1, 0, 4, false);
        let op = StageOp { state_epoch, leader_epoch, producer, epoch, two_phase, acks };
        Deed::Stage { slot: 0, op }
    };
    for (expiring, forgotten, lost, expired) in
        [(false, 7, true, 0), (true, 7, false, 1), (true, 8, true, 0), (true, 9, false, 0)]
    {
        let (mut oracle, _) = oracle_of(&[initialize()]);
        done(&mut oracle, stage(7), Answer::Staged(1));
        done(&mut oracle, stage(8), Answer::Staged(1));
        let marker = MarkerOp { producer: 7, epoch: 5, coordinator: 0, commit: true };
        let sum = Sum { slots: 1, offsets: 1, ..Sum::default() };
        done(&mut oracle, Deed::Marker(marker), Answer::Resolved(sum));
        let mut found = oracle.ledger.clone();
        found.producers.remove(&forgotten);
        let outcome = oracle.compare(&found, expiring);
        assert_eq!((outcome.lost > 0, outcome.expired), (lost, expired), "{forgotten}");
    }
}
