//! The 200 random histories of `tests/data/transactions.json`: every answer and the final state,
//! and after every operation the invariants. Their transitions replayed give the same state.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sharestate::model::{
    AckRange, AckType, Answer, Command, Decision, DeliveryState, Marker, Options, Outcome,
    Partition, PendingAck, Rejection, SharePartitionKey, Stage, State, StateBatch, apply, decide,
    reads, touches,
};

const TOPIC: &str = "00000000-0000-0000-0000-000000000001";

fn vectors() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/transactions.json");
    serde_json::from_str(&std::fs::read_to_string(path).expect("readable")).expect("JSON")
}

fn key(text: &Value) -> SharePartitionKey {
    text.as_str().expect("key").replace(":T1:", &format!(":{TOPIC}:")).parse().expect("key")
}

fn int<T: TryFrom<i64>>(value: &Value) -> T {
    let number = value.as_i64().unwrap_or_else(|| panic!("not a number: {value}"));
    T::try_from(number).unwrap_or_else(|_| panic!("out of range: {value}"))
}

fn batches(value: &Value) -> Vec<StateBatch> {
    let batch = |batch: &Value| StateBatch {
        first_offset: int(&batch[0]),
        last_offset: int(&batch[1]),
        delivery_state: DeliveryState(int(&batch[2])),
        delivery_count: int(&batch[3]),
    };
    value.as_array().expect("batches").iter().map(batch).collect()
}

fn acks(value: &Value) -> Vec<AckRange> {
    let ack = |ack: &Value| AckRange {
        first_offset: int(&ack[0]),
        last_offset: int(&ack[1]),
        ack_type: AckType::from_raw(int(&ack[2])).expect("ack type"),
        commit_target: DeliveryState(int(&ack[3])),
        abort_target: DeliveryState(int(&ack[4])),
        delivery_count: int(&ack[5]),
    };
    value.as_array().expect("acks").iter().map(ack).collect()
}

fn outcome(value: &Value) -> Outcome {
    match value.as_str() {
        Some("commit") => Outcome::Commit,
        Some("abort") => Outcome::Abort,
        _ => panic!("outcome {value}"),
    }
}

fn command(op: &Value) -> Command {
    match op["op"].as_str().expect("op") {
        "initialize" => Command::Initialize {
            key: key(&op["key"]),
            state_epoch: int(&op["state_epoch"]),
            start_offset: int(&op["start_offset"]),
        },
        "write" => Command::Write {
            key: key(&op["key"]),
            state_epoch: int(&op["state_epoch"]),
            leader_epoch: int(&op["leader_epoch"]),
            start_offset: int(&op["start_offset"]),
            delivery_complete_count: int(&op["delivery_complete_count"]),
            batches: batches(&op["batches"]),
        },
        "read" => Command::Read { key: key(&op["key"]), leader_epoch: int(&op["leader_epoch"]) },
        "summary" => Command::Summary { key: key(&op["key"]) },
        "delete" => Command::Delete { key: key(&op["key"]) },
        "stage" => Command::Stage(Stage {
            key: key(&op["key"]),
            state_epoch: int(&op["state_epoch"]),
            leader_epoch: int(&op["leader_epoch"]),
            producer_id: int(&op["producer_id"]),
            producer_epoch: int(&op["producer_epoch"]),
            two_phase: op["two_phase"].as_bool().expect("two_phase"),
            transaction_version: int(&op["transaction_version"]),
            transactional_id: "transaction".to_owned(),
            member_id: "member".to_owned(),
            member_epoch: 1,
            acks: acks(&op["acks"]),
        }),
        "marker" => Command::Marker(Marker {
            producer_id: int(&op["producer_id"]),
            producer_epoch: int(&op["producer_epoch"]),
            coordinator_epoch: int(&op["coordinator_epoch"]),
            outcome: outcome(&op["outcome"]),
            transaction_version: int(&op["transaction_version"]),
        }),
        "force_resolve" => Command::ForceResolve {
            producer_id: int(&op["producer_id"]),
            epoch: int(&op["epoch"]),
            outcome: outcome(&op["outcome"]),
        },
        other => panic!("op {other}"),
    }
}

fn error_name(rejection: &Rejection) -> &'static str {
    match rejection.kafka_code() {
        Some(35) => "UNSUPPORTED_VERSION",
        Some(42) => "INVALID_REQUEST",
        Some(47) => "INVALID_PRODUCER_EPOCH",
        Some(52) => "TRANSACTION_COORDINATOR_FENCED",
        Some(74) => "FENCED_LEADER_EPOCH",
        Some(121) => "INVALID_RECORD_STATE",
        Some(124) => "FENCED_STATE_EPOCH",
        None => "NOTHING_PENDING",
        other => panic!("code {other:?}"),
    }
}

/// Joins pieces that touch and say the same.
fn runs<T: PartialEq>(pieces: impl IntoIterator<Item = (i64, i64, T)>) -> Vec<(i64, i64, T)> {
    let mut runs: Vec<(i64, i64, T)> = Vec::new();
    for (first, last, what) in pieces {
        match runs.last_mut() {
            Some(run) if run.1 + 1 == first && run.2 == what => run.1 = last,
            _ => runs.push((first, last, what)),
        }
    }
    runs
}

fn offsets(pieces: impl IntoIterator<Item = (i64, i64)>) -> Value {
    let pieces = pieces.into_iter().map(|(first, last)| (first, last, ()));
    json!(runs(pieces).iter().map(|run| [run.0, run.1]).collect::<Vec<_>>())
}

fn dropped_offsets(dropped: &[PendingAck]) -> Value {
    offsets(dropped.iter().map(|ack| (ack.first_offset, ack.last_offset)))
}

fn key_text(key: &SharePartitionKey) -> String {
    key.to_string().replace(TOPIC, "T1")
}

fn partition_as_json(row: &Partition) -> Value {
    let batches: Vec<_> = row
        .batches
        .iter()
        .map(|b| json!([b.first_offset, b.last_offset, b.delivery_state.0, b.delivery_count]))
        .collect();
    let pending = row.pending.iter().map(|ack| {
        let (id, epoch) = ack.owner();
        let targets = (ack.commit_target.0, ack.abort_target.0);
        let what = (id, epoch, ack.ack_type as i8, targets, ack.delivery_count);
        (ack.first_offset, ack.last_offset, what)
    });
    let pending: Vec<_> = runs(pending)
        .into_iter()
        .map(|(first, last, (id, epoch, ack_type, (commit, abort), count))| {
            json!([first, last, id, epoch, ack_type, commit, abort, count])
        })
        .collect();
    json!({
        "state_epoch": row.state_epoch,
        "leader_epoch": row.leader_epoch,
        "leader_fence": row.leader_fence,
        "start_offset": row.start_offset,
        "delivery_complete_count": row.delivery_complete_count,
        "batches": batches,
        "pending": pending,
    })
}

fn answer_as_json(answer: &Result<Answer, Rejection>) -> Value {
    match answer {
        Err(rejection) => json!({ "error": error_name(rejection) }),
        Ok(Answer::Done { dropped }) => {
            json!({ "error": "NONE", "dropped": dropped_offsets(dropped) })
        }
        Ok(Answer::Read(read)) => {
            json!({ "error": "NONE", "state": partition_as_json(&read.partition) })
        }
        Ok(Answer::Summary(s)) => json!({
            "error": "NONE",
            "summary": [
                json!(s.start_offset), json!(s.delivery_complete_count),
                json!(s.leader_epoch), json!(s.state_epoch)
            ],
        }),
        Ok(Answer::Staged { staged }) => {
            json!({ "error": "NONE", "staged": offsets(staged.iter().copied()) })
        }
        Ok(Answer::Resolved { resolved, .. }) => {
            let resolved: BTreeMap<_, _> = resolved
                .iter()
                .map(|(key, ranges)| (key_text(key), offsets(ranges.iter().copied())))
                .collect();
            json!({ "error": "NONE", "resolved": resolved })
        }
        Ok(Answer::Expired { .. }) => panic!("no vector expires"),
    }
}

fn state_as_json(state: &State) -> Value {
    let partitions: BTreeMap<_, _> =
        state.partitions.iter().map(|(key, row)| (key_text(key), partition_as_json(row))).collect();
    let producers: BTreeMap<_, _> = state
        .producers
        .iter()
        .map(|(id, row)| {
            let outcome = row.last_completed.map(|last| match last.outcome {
                Outcome::Commit => "commit",
                Outcome::Abort => "abort",
            });
            let row = json!({
                "last_marker_epoch": row.last_completed.map_or(-1, |last| last.epoch),
                "last_outcome": outcome,
                "coordinator_epoch": row.coordinator_epoch,
                "highest_stage_epoch": row.highest_stage_epoch.unwrap_or(-1),
                "open_epochs": row.open.keys().collect::<Vec<_>>(),
            });
            (id.to_string(), row)
        })
        .collect();
    json!({ "partitions": partitions, "producers": producers })
}

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
    let vectors = vectors();
    let options = Options::default();
    let sequences = vectors["sequences"].as_array().expect("sequences");
    let (mut operations, mut unrepresentable, mut logged) = (0, 0, 0);
    for (number, sequence) in sequences.iter().enumerate() {
        let (mut state, mut lsn) = (State::default(), 0);
        let (mut replica, mut log) = (State::default(), Vec::new());
        for (step, op) in sequence["ops"].as_array().expect("ops").iter().enumerate() {
            let at = || format!("sequence {number}, step {step}: {op}");
            operations += 1;
            if op["producer_epoch"].as_i64() > Some(i64::from(i16::MAX)) {
                // Refused by the type already, as the vector wants it.
                assert_eq!(op["expect"]["error"], "INVALID_REQUEST");
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
        assert_eq!(state_as_json(&state), sequence["final"], "sequence {number}");
        for (lsn, transition) in &log {
            apply(&mut replica, *lsn, transition).expect("replays");
        }
        assert_eq!(replica, state, "replay of sequence {number}");
        logged += log.len();
    }
    println!(
        "sequences={} operations={operations} unrepresentable={unrepresentable} logged={logged}",
        sequences.len()
    );
    assert_eq!((sequences.len(), operations, unrepresentable), (200, 8416, 4));
}
