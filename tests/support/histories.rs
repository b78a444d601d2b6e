//! Recorded histories with every right answer, `tests/data/transactions*.json`: read, and written
//! the way they are recorded so that answers and states can be compared.
#![allow(dead_code)] // each test file uses its own part

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};
use sharestate::model::{
    AckRange, AckType, Answer, Command, DeliveryState, Marker, Outcome, Partition, PendingAck,
    Rejection, SharePartitionKey, Stage, State, StateBatch,
};
use uuid::Uuid;

/// Every sequence of every recorded file, with a name to report it by.
pub fn sequences() -> Vec<(String, Value)> {
    let dir = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data"));
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .expect("readable")
        .map(|entry| entry.expect("entry").path())
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.starts_with("transactions") && name.ends_with(".json")
        })
        .collect();
    files.sort();
    let mut sequences = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("readable");
        let mut recorded: Value = serde_json::from_str(&text).expect("JSON");
        let Value::Array(found) = recorded["sequences"].take() else { panic!("{file:?}") };
        let named =
            |(number, sequence)| (format!("{}, sequence {number}", file.display()), sequence);
        sequences.extend(found.into_iter().enumerate().map(named));
    }
    sequences
}

/// Whether the types of the library refuse an operation already, as its answer says.
pub fn is_unrepresentable(op: &Value) -> bool {
    let is = op["producer_epoch"].as_i64() > Some(i64::from(i16::MAX));
    assert!(!is || op["expect"]["error"] == "INVALID_REQUEST", "{op}");
    is
}

/// Topics are recorded as `T1`, `T2` and so on.
fn key(text: &Value) -> SharePartitionKey {
    let text = text.as_str().expect("key");
    let (rest, partition) = text.rsplit_once(':').expect("partition");
    let (group, topic) = rest.rsplit_once(":T").expect("topic");
    let topic_id = Uuid::from_u128(topic.parse().expect("number of a topic"));
    SharePartitionKey::new(group, topic_id, partition.parse().expect("index")).expect("valid")
}

fn key_text(key: &SharePartitionKey) -> String {
    format!("{}:T{}:{}", key.group_id(), key.topic_id().as_u128(), key.partition())
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

/// The command of a recorded operation.
pub fn command(op: &Value) -> Command {
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

/// What was told, as recorded.
pub fn answer_as_json(answer: &Result<Answer, Rejection>) -> Value {
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

/// A whole state, as recorded.
pub fn state_as_json(state: &State) -> Value {
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
