//! Kafka's ShareCoordinatorShardTest as data (`tests/data/shard.json`, level 4.4, and trunk for a
//! repeated initialize): errors, answers, whether anything is logged, fences and state.
//!
//! Left out, because it is not the store's: the shape of Kafka's records, when it turns an update
//! into a snapshot (and with it the snapshot epoch and the times that such a record carries), the
//! cold-snapshot job, and the checks of topic metadata.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use sharestate::model::{
    Answer, Command, Decision, DeliveryState, Options, Partition, Rejection, SharePartitionKey,
    State, StateBatch, apply, combine, decide,
};
use uuid::Uuid;

fn scenarios() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/shard.json");
    let text = std::fs::read_to_string(path).expect("readable");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    document["scenarios"].as_array().expect("scenarios").clone()
}

/// Level 4.4, except that a repeated initialize is a success without effect, as in trunk.
fn is_ours(scenario: &Value) -> bool {
    let has = |level: &str| scenario["levels"].as_array().expect("levels").contains(&level.into());
    match scenario["id"].as_str() {
        Some("initialize-repeat-4.4") => false,
        Some("initialize-repeat-trunk") => true,
        _ => has("4.4"),
    }
}

fn int<T: TryFrom<i64>>(value: &Value) -> T {
    let number = value.as_i64().unwrap_or_else(|| panic!("not a number: {value}"));
    T::try_from(number).unwrap_or_else(|_| panic!("out of range: {value}"))
}

fn topic(name: &str) -> Uuid {
    Uuid::from_u128(name.trim_start_matches('T').parse().expect("T<n>"))
}

/// `group/T1/0`; none when it is malformed, which is INVALID_REQUEST.
fn key(text: &str) -> Option<SharePartitionKey> {
    let parts: Vec<&str> = text.split('/').collect();
    let partition = parts[2].parse().expect("number");
    SharePartitionKey::new(parts[0], topic(parts[1]), partition).ok()
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

fn command(op: &str, key: SharePartitionKey, input: &Value) -> Command {
    match op {
        "initialize" => Command::Initialize {
            key,
            state_epoch: int(&input["state_epoch"]),
            start_offset: int(&input["start_offset"]),
        },
        "write" => Command::Write {
            key,
            state_epoch: int(&input["state_epoch"]),
            leader_epoch: int(&input["leader_epoch"]),
            start_offset: int(&input["start_offset"]),
            delivery_complete_count: int(&input["delivery_complete_count"]),
            batches: batches(&input["batches"]),
        },
        "read" => Command::Read { key, leader_epoch: int(&input["leader_epoch"]) },
        "summary" => Command::Summary { key },
        "delete" => Command::Delete { key },
        other => panic!("op {other}"),
    }
}

/// Applies a record of Kafka's log as Kafka's replay does. Old logs hold a leader epoch of -1.
fn load(state: &mut State, record: &Value) {
    let key = key(record["key"].as_str().expect("key")).expect("valid");
    let old = state.partitions.get(&key).map(|row| Partition::clone(row));
    let (leader_epoch, start) = (int(&record["leader_epoch"]), int(&record["start_offset"]));
    let sent = batches(&record["batches"]);
    let old_fence = old.as_ref().map_or(leader_epoch, |row| row.leader_fence);
    let snapshot = |record: &Value| Partition {
        state_epoch: int(&record["state_epoch"]),
        leader_epoch,
        leader_fence: 0,
        start_offset: start,
        init_start_offset: start,
        delivery_complete_count: int(&record["delivery_complete_count"]),
        snapshot_epoch: int(&record["snapshot_epoch"]),
        create_time_ms: int(&record["create_ts"]),
        write_time_ms: int(&record["write_ts"]),
        batches: sent.clone(),
        pending: vec![],
        last_lsn: 0,
    };
    let mut row = match (record["type"].as_str(), old) {
        (Some("snapshot"), _) => snapshot(record),
        (Some("update"), Some(old)) => {
            let start_offset = if start == -1 { old.start_offset } else { start };
            Partition {
                start_offset,
                leader_epoch: if leader_epoch == -1 { old.leader_epoch } else { leader_epoch },
                delivery_complete_count: int(&record["delivery_complete_count"]),
                batches: combine(&old.batches, &sent, start_offset),
                ..old
            }
        }
        other => panic!("{other:?}"),
    };
    row.leader_fence = old_fence.max(leader_epoch);
    state.partitions.insert(key, Arc::new(row));
}

fn error_name(rejection: &Rejection) -> &'static str {
    match rejection.kafka_code() {
        Some(42) => "INVALID_REQUEST",
        Some(74) => "FENCED_LEADER_EPOCH",
        Some(124) => "FENCED_STATE_EPOCH",
        other => panic!("code {other:?}"),
    }
}

fn as_json(batches: &[StateBatch]) -> Value {
    let batch = |b: &StateBatch| {
        serde_json::json!([b.first_offset, b.last_offset, b.delivery_state.0, b.delivery_count])
    };
    batches.iter().map(batch).collect()
}

fn field(row: &Partition, name: &str) -> Value {
    match name {
        "snapshot_epoch" => row.snapshot_epoch.into(),
        "state_epoch" => row.state_epoch.into(),
        "leader_epoch" => row.leader_epoch.into(),
        "start_offset" => row.start_offset.into(),
        "delivery_complete_count" => row.delivery_complete_count.into(),
        "batches" => as_json(&row.batches),
        "create_ts" => row.create_time_ms.into(),
        "write_ts" => row.write_time_ms.into(),
        other => panic!("field {other}"),
    }
}

fn check_response(answer: &Answer, response: &Value, at: &str) {
    for (name, expected) in response.as_object().into_iter().flatten() {
        let found = match answer {
            Answer::Read(read) => field(&read.partition, name),
            Answer::Summary(s) => match name.as_str() {
                "state_epoch" => s.state_epoch.into(),
                "leader_epoch" => s.leader_epoch.into(),
                "start_offset" => s.start_offset.into(),
                "delivery_complete_count" => s.delivery_complete_count.into(),
                other => panic!("field {other}"),
            },
            other => panic!("{other:?}"),
        };
        assert_eq!(found, *expected, "{name}: {at}");
    }
}

/// Kafka's own texts of INVALID_REQUEST, except those of malformed keys: a key of ours cannot be.
fn check_message(rejection: &Rejection, expected: &Value, at: &str) {
    if let (Rejection::InvalidRequest(text), Some(expected)) = (rejection, expected.as_str()) {
        assert_eq!(*text, expected, "{at}");
    }
}

/// A snapshot record raises the snapshot epoch and sets both times; which write becomes one is a
/// matter of record shapes.
const BY_RECORDS: [&str; 3] = ["write_ts", "snapshot_epoch", "create_ts"];

#[derive(Default)]
struct Runner {
    state: State,
    lsn: u64,
    now: i64,
    /// Fields that Kafka moves by rules that are not ours: those of [`BY_RECORDS`].
    foreign: BTreeMap<SharePartitionKey, &'static [&'static str]>,
    steps: usize,
    fields: usize,
    left_out: BTreeMap<&'static str, usize>,
}

impl Runner {
    fn leave_out(&mut self, why: &'static str) {
        *self.left_out.entry(why).or_default() += 1;
    }

    fn step(&mut self, step: &Value, at: &str) {
        let expect = &step["expect"];
        let op = step["op"].as_str().expect("op");
        match op {
            "metadata" => return self.leave_out("topic metadata"),
            "snapshot_cold" => {
                let keys = self.state.partitions.keys().cloned();
                self.foreign.extend(keys.map(|key| (key, &BY_RECORDS[..])));
                return self.leave_out("cold-snapshot job");
            }
            _ if expect["error"] == "UNKNOWN_TOPIC_OR_PARTITION" => {
                return self.leave_out("topic metadata");
            }
            "sleep" => self.now += int::<i64>(&step["ms"]),
            "load" => load(&mut self.state, &step["record"]),
            "topics_deleted" => self.delete_topics(step, at),
            _ => self.execute(op, step, at),
        }
        self.steps += 1;
        self.check_state(expect, at);
    }

    /// The clean-up is a walk of single deletes.
    fn delete_topics(&mut self, step: &Value, at: &str) {
        let ids = step["topic_ids"].as_array().expect("topic ids");
        let gone: Vec<_> = ids.iter().map(|id| topic(id.as_str().expect("id"))).collect();
        let mut keys: Vec<_> = self.state.partitions.keys().cloned().collect();
        keys.retain(|key| gone.contains(&key.topic_id()));
        let records = step["expect"]["records"].as_array().expect("records").len();
        assert_eq!(keys.len(), records, "{at}");
        for key in keys {
            self.run(&Command::Delete { key }, &Value::Null, true, at);
        }
    }

    fn execute(&mut self, op: &str, step: &Value, at: &str) {
        let expect = &step["expect"];
        let Some(key) = key(step["key"].as_str().expect("key")) else {
            assert_eq!(expect["error"], "INVALID_REQUEST", "{at}");
            return;
        };
        let mut input = step["in"].clone();
        if op == "write" && as_acquired(&input["batches"]).is_some() {
            // The store never takes state 1; the rest of the scenario holds with 0 as well.
            let command = command(op, key.clone(), &input);
            let refused = decide(&self.state, &command, self.now, &Options::default()).answer;
            assert_eq!(error_name(&refused.expect_err("state 1")), "INVALID_REQUEST", "{at}");
            self.leave_out("state 1 (ACQUIRED) in a write, run with state 0 instead");
            input["batches"] = as_acquired(&input["batches"]).expect("checked");
        }
        if emits_snapshot(expect) && op != "initialize" {
            self.foreign.insert(key.clone(), &BY_RECORDS);
        } else if op == "write" {
            // A write moves our write time; Kafka's moves with snapshot records only.
            self.foreign.entry(key.clone()).or_insert(&BY_RECORDS[..1]);
        }
        self.run(&command(op, key, &input), expect, step["apply"] != false, at);
    }

    fn run(&mut self, command: &Command, expect: &Value, is_applied: bool, at: &str) {
        let Decision { transition, answer } =
            decide(&self.state, command, self.now, &Options::default());
        match &answer {
            Ok(answer) => {
                assert!(expect["error"].is_null() || expect["error"] == "NONE", "{at}");
                check_response(answer, &expect["response"], at);
            }
            Err(rejection) => {
                assert_eq!(error_name(rejection), expect["error"], "{at}");
                check_message(rejection, &expect["message"], at);
            }
        }
        let records = expect["records"].as_array().or(expect["record_types"].as_array());
        if let Some(records) = records {
            assert_eq!(records.len(), usize::from(transition.is_some()), "records: {at}");
        }
        if let Some(transition) = transition.filter(|_| is_applied) {
            self.lsn += 1;
            apply(&mut self.state, self.lsn, &transition).expect("applies");
        }
    }

    fn check_state(&mut self, expect: &Value, at: &str) {
        let row = |key: &str| key_row(&self.state, key);
        for (key, fence) in expect["leader_fence"].as_object().into_iter().flatten() {
            assert_eq!(row(key).map(|row| row.leader_fence), fence.as_i64().map(to_i32), "{at}");
            self.fields += 1;
        }
        for (key, fence) in expect["state_fence"].as_object().into_iter().flatten() {
            assert_eq!(row(key).map(|row| row.state_epoch), fence.as_i64().map(to_i32), "{at}");
            self.fields += 1;
        }
        for (text, expected) in expect["state_after"].as_object().into_iter().flatten() {
            let Some(fields) = expected.as_object() else {
                assert!(row(text).is_none(), "{at}");
                self.fields += 1;
                continue;
            };
            let row = row(text).unwrap_or_else(|| panic!("{text} is absent: {at}"));
            let foreign = self.foreign.get(&key(text).expect("valid")).copied().unwrap_or_default();
            for (name, expected) in fields {
                if foreign.contains(&&**name) {
                    *self
                        .left_out
                        .entry("times and snapshot epochs that depend on record shapes")
                        .or_default() += 1;
                    continue;
                }
                let expected = as_acquired(expected).unwrap_or_else(|| expected.clone());
                assert_eq!(field(row, name), expected, "{name}: {at}");
                self.fields += 1;
            }
        }
    }
}

fn emits_snapshot(expect: &Value) -> bool {
    let is_snapshot = |record: &Value| record == "snapshot" || record["type"] == "snapshot";
    ["records", "record_types"]
        .iter()
        .any(|name| expect[name].as_array().is_some_and(|list| list.iter().any(is_snapshot)))
}

fn to_i32(number: i64) -> i32 {
    i32::try_from(number).expect("small")
}

fn key_row<'a>(state: &'a State, text: &str) -> Option<&'a Partition> {
    state.partitions.get(&key(text)?).map(|row| &**row)
}

/// Batches with every state 1 made 0, if there is any.
fn as_acquired(value: &Value) -> Option<Value> {
    let batches = value.as_array()?;
    let is_acquired = |batch: &Value| batch[2] == 1;
    batches.iter().any(is_acquired).then(|| {
        let mut batches = batches.clone();
        batches.iter_mut().filter(|batch| is_acquired(batch)).for_each(|batch| batch[2] = 0.into());
        Value::Array(batches)
    })
}

#[test]
fn kafkas_coordinator_scenarios_hold() {
    let all = scenarios();
    let (mut ran, mut steps, mut fields) = (0, 0, 0);
    let mut left_out: BTreeMap<&str, usize> = BTreeMap::new();
    for scenario in all.iter().filter(|scenario| is_ours(scenario)) {
        let mut runner = Runner { now: 1_000_000, ..Runner::default() };
        for (number, step) in scenario["steps"].as_array().expect("steps").iter().enumerate() {
            runner.step(step, &format!("{}, step {number}", scenario["id"]));
        }
        assert_eq!(runner.state.check_invariants(), Ok(()), "{}", scenario["id"]);
        ran += 1;
        steps += runner.steps;
        fields += runner.fields;
        runner.left_out.iter().for_each(|(why, n)| *left_out.entry(why).or_default() += n);
    }
    println!("shard-scenarios={ran} of {} steps={steps} fields={fields}", all.len());
    println!("scenarios of other levels: {}", all.len() - ran);
    left_out.iter().for_each(|(why, n)| println!("left out: {n} x {why}"));
    assert_eq!((all.len(), ran), (58, 52));
}
