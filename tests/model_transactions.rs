//! The recorded histories of `tests/data/transactions*.json`: every answer and the final state, and
//! after every operation the invariants. Their transitions replayed give the same state.

#[path = "support/histories.rs"]
mod histories;

use histories::{answer_as_json, command, is_unrepresentable, state_as_json};
use sharestate::model::{Command, Decision, Options, State, apply, decide, reads, touches};

/// Only the rows that `reads` and `touches` ask for, as an engine with cold rows would load them.
fn load(from: &State, into: &mut State, rows: Vec<sharestate::model::RowId>) -> bool {
    use sharestate::model::RowId;
    let before = into.partitions.len() + into.producers.len();
    for row in rows {
        match row {
            RowId::Partition(key) => {
                let row = from.partitions.get(&key).cloned();
                into.partitions.extend(row.map(|row| (key, row)));
            }
            RowId::Producer(id) => {
                let row = from.producers.get(&id).cloned();
                into.producers.extend(row.map(|row| (id, row)));
            }
        }
    }
    into.partitions.len() + into.producers.len() > before
}

/// The same command on a state where nothing is resident but what the model asks for.
fn assert_works_with_cold_rows(state: &State, lsn: u64, command: &Command, now: i64) {
    let options = Options::default();
    let mut cold = State::default();
    load(state, &mut cold, reads(command));
    let decision = decide(&cold, command, now, &options);
    assert_eq!(decision, decide(state, command, now, &options), "reads() names too little");
    let Some(transition) = decision.transition else { return };
    loop {
        let rows = touches(&cold, &transition);
        if !load(state, &mut cold, rows) {
            break;
        }
    }
    let mut warm = state.clone();
    let effects = apply(&mut warm, lsn + 1, &transition);
    assert_eq!(apply(&mut cold, lsn + 1, &transition), effects, "touches() names too little");
    for touched in effects.expect("applies").touched {
        let mut one = (State::default(), State::default());
        load(&warm, &mut one.0, vec![touched.clone()]);
        load(&cold, &mut one.1, vec![touched]);
        assert_eq!(one.0, one.1);
    }
}

#[test]
fn every_answer_and_final_state_is_right() {
    let options = Options::default();
    let sequences = histories::sequences();
    let (mut operations, mut unrepresentable, mut logged) = (0, 0, 0);
    for (name, sequence) in &sequences {
        let (mut state, mut lsn) = (State::default(), 0);
        let (mut replica, mut log) = (State::default(), Vec::new());
        for (step, op) in sequence["ops"].as_array().expect("ops").iter().enumerate() {
            let at = || format!("{name}, step {step}: {op}");
            operations += 1;
            if is_unrepresentable(op) {
                unrepresentable += 1;
                continue;
            }
            let command = command(op);
            let now = i64::try_from(step).expect("small");
            assert_works_with_cold_rows(&state, lsn, &command, now);
            let Decision { transition, .. } = decide(&state, &command, now, &options);
            let before = state.clone();
            let answer = state.execute(&mut lsn, &command, now, &options);
            assert_eq!(answer_as_json(&answer), op["expect"], "{}", at());
            match transition {
                Some(transition) => log.push((lsn, transition)),
                None => assert_eq!(state, before, "{}", at()),
            }
            state.check_invariants().unwrap_or_else(|broken| panic!("{broken:?}: {}", at()));
        }
        assert_eq!(state_as_json(&state), sequence["final"], "{name}");
        for (lsn, transition) in &log {
            apply(&mut replica, *lsn, transition).expect("replays");
        }
        assert_eq!(replica, state, "replay of {name}");
        logged += log.len();
    }
    println!(
        "sequences={} operations={operations} unrepresentable={unrepresentable} logged={logged}",
        sequences.len()
    );
    assert!(sequences.len() >= 200 && operations >= 8_416 && logged > 2_000);
}
