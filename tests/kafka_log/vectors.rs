//! What Kafka's own tests expect of its coordinator's replay and of its formatter, as data.

use std::collections::BTreeMap;

use serde_json::Value;
use sharestate::kafka_log::{
    LogRecord, Replay, ShareRecord, ShareSnapshot, ShareUpdate, formatter_json,
};
use sharestate::model::{DeliveryState, Partition, SharePartitionKey, StateBatch, combine};
use uuid::Uuid;

fn at(offset: i64, record: ShareRecord) -> LogRecord {
    LogRecord { position: 0, offset, timestamp: 0, record }
}

fn batch(first_offset: i64, last_offset: i64, state: i8, delivery_count: i16) -> StateBatch {
    let delivery_state = DeliveryState(state);
    StateBatch { first_offset, last_offset, delivery_state, delivery_count }
}

/// The scenarios of Kafka's own coordinator tests, as far as they list every record.
#[test]
fn records_of_kafkas_shard_tests_replay_to_its_states() {
    let vectors: Value =
        serde_json::from_str(include_str!("../data/shard.json")).expect("the vectors are JSON");
    let mut compared = 0;
    for scenario in vectors["scenarios"].as_array().expect("scenarios") {
        let mut replay = Replay::new();
        for step in scenario["steps"].as_array().expect("steps") {
            let expect = &step["expect"];
            let unlisted = expect["record_types"].as_array().is_some_and(|types| !types.is_empty());
            let listed: Vec<&Value> = match step["op"].as_str() {
                Some("load") => vec![&step["record"]],
                _ if unlisted && expect["records"].is_null() => break,
                _ => expect["records"].as_array().into_iter().flatten().collect(),
            };
            if step["apply"] == false {
                continue;
            }
            for record in listed {
                replay.apply("vectors", &at(0, vector_record(record))).expect("well-formed");
            }
            let states = replay.clone().finish();
            compared += compare(&states, expect, &scenario["id"]);
        }
    }
    assert!(compared >= 14, "{compared} comparisons");
}

fn compare(states: &BTreeMap<SharePartitionKey, Partition>, expect: &Value, id: &Value) -> usize {
    let mut compared = 0;
    for (text, told) in expect["state_after"].as_object().into_iter().flatten() {
        compared += 1;
        let Some(state) = states.get(&vector_key(text)) else {
            assert!(told.is_null(), "{id}: {text} is missing");
            continue;
        };
        let has = |field: &str, value: i64| {
            let expected = told[field].as_i64();
            // -1 is Kafka's "no leader epoch" in some of its tests, ours is 0.
            let expected =
                if field == "leader_epoch" { expected.map(|e| e.max(0)) } else { expected };
            assert!(expected.is_none_or(|e| e == value), "{id}: {text} {field} {value}, {told}");
        };
        has("snapshot_epoch", state.snapshot_epoch.into());
        has("state_epoch", state.state_epoch.into());
        has("leader_epoch", state.leader_epoch.into());
        has("start_offset", state.start_offset);
        has("delivery_complete_count", state.delivery_complete_count.into());
        has("create_ts", state.create_time_ms);
        has("write_ts", state.write_time_ms);
        if !told["batches"].is_null() {
            let batches = combine(&[], &vector_batches(&told["batches"]), -1);
            assert_eq!(state.batches, batches, "{id}: {text}");
        }
    }
    for (text, told) in expect["leader_fence"].as_object().into_iter().flatten() {
        let fence = states.get(&vector_key(text)).map(|state| i64::from(state.leader_fence));
        assert_eq!(fence, told.as_i64().map(|fence| fence.max(0)), "{id}: {text}");
    }
    compared
}

fn vector_key(text: &str) -> SharePartitionKey {
    let parts: Vec<&str> = text.rsplitn(3, '/').collect();
    let topic: u128 = parts[1].trim_start_matches('T').parse().expect("a topic");
    SharePartitionKey::new(parts[2], Uuid::from_u128(topic), parts[0].parse().expect("an index"))
        .expect("a valid key")
}

fn vector_batches(list: &Value) -> Vec<StateBatch> {
    let number = |value: &Value| value.as_i64().expect("a number");
    let quads = list.as_array().expect("batches").iter();
    quads
        .map(|quad| {
            let state = i8::try_from(number(&quad[2])).expect("an i8");
            let count = i16::try_from(number(&quad[3])).expect("an i16");
            batch(number(&quad[0]), number(&quad[1]), state, count)
        })
        .collect()
}

fn vector_record(record: &Value) -> ShareRecord {
    let key = vector_key(record["key"].as_str().expect("a key"));
    let number = |field: &str| record[field].as_i64().unwrap_or(-1);
    let small = |field: &str| i32::try_from(number(field)).expect("an i32");
    match record["type"].as_str().expect("a type") {
        "tombstone" => ShareRecord::Tombstone { key },
        "update" => {
            let value = ShareUpdate {
                snapshot_epoch: small("snapshot_epoch"),
                leader_epoch: small("leader_epoch"),
                start_offset: number("start_offset"),
                delivery_complete_count: small("delivery_complete_count"),
                state_batches: vector_batches(&record["batches"]),
            };
            ShareRecord::Update { key, value }
        }
        "snapshot" => {
            let value = ShareSnapshot {
                snapshot_epoch: small("snapshot_epoch"),
                state_epoch: small("state_epoch"),
                leader_epoch: small("leader_epoch"),
                start_offset: number("start_offset"),
                delivery_complete_count: small("delivery_complete_count"),
                create_timestamp: number("create_ts"),
                write_timestamp: number("write_ts"),
                state_batches: vector_batches(&record["batches"]),
            };
            ShareRecord::Snapshot { key, value }
        }
        other => panic!("record type {other}"),
    }
}

/// `record_json` of the vectors: the expected output of Kafka's own tests of its formatter.
#[test]
fn formatter_output_is_kafkas() {
    let vectors: Value =
        serde_json::from_str(include_str!("../data/shard.json")).expect("the vectors are JSON");
    let mut compared = 0;
    for case in vectors["record_json"].as_array().expect("a list") {
        if case["tool"] != "formatter" {
            continue;
        }
        let record = from_vector(&case["record"]);
        match formatter_json(&record) {
            Some(printed) => assert_eq!(printed, case["output"]),
            None => assert_eq!(case["output"], ""),
        }
        compared += 1;
    }
    assert_eq!(compared, 4);
}

fn from_vector(record: &Value) -> ShareRecord {
    let number = |field: &str| record[field].as_i64().unwrap_or(-1);
    let small = |field: &str| i32::try_from(number(field)).expect("an i32");
    let key_type = i16::try_from(number("type")).expect("an i16");
    if key_type > 1 {
        return ShareRecord::Unknown { key_type };
    }
    let topic_id = from_base64(record["topic_id"].as_str().expect("a topic id"));
    let group = record["group"].as_str().expect("a group");
    let key = SharePartitionKey::new(group, topic_id, small("partition")).expect("a valid key");
    if record["tombstone"] == true {
        return ShareRecord::Tombstone { key };
    }
    let state_batches = record["batches"].as_array().expect("batches").iter().map(|quad| {
        let number = |index: usize| quad[index].as_i64().expect("a number");
        let state = i8::try_from(number(2)).expect("an i8");
        batch(number(0), number(1), state, i16::try_from(number(3)).expect("an i16"))
    });
    let state_batches = state_batches.collect();
    if key_type == 1 {
        let value = ShareUpdate {
            snapshot_epoch: small("snapshot_epoch"),
            leader_epoch: small("leader_epoch"),
            start_offset: number("start_offset"),
            delivery_complete_count: -1,
            state_batches,
        };
        return ShareRecord::Update { key, value };
    }
    let value = ShareSnapshot {
        snapshot_epoch: small("snapshot_epoch"),
        state_epoch: small("state_epoch"),
        leader_epoch: small("leader_epoch"),
        start_offset: number("start_offset"),
        delivery_complete_count: -1,
        create_timestamp: number("create_ts"),
        write_timestamp: number("write_ts"),
        state_batches,
    };
    ShareRecord::Snapshot { key, value }
}

fn from_base64(text: &str) -> Uuid {
    let digits = text.bytes().map(|digit| match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'-' => 62,
        _ => 63,
    });
    // 22 digits of six bits, of which the last four are padding.
    Uuid::from_u128(digits.enumerate().fold(0, |bits, (index, digit)| {
        if index == 21 {
            (bits << 2) | u128::from(digit >> 4)
        } else {
            (bits << 6) | u128::from(digit)
        }
    }))
}
