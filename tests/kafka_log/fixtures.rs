//! Segments written by a real Kafka 4.4 broker (see `tests/fixtures/kafka-4.4/README.md`), read by
//! the importer and compared with what Kafka's own tools said about them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;
use sharestate::kafka_log::{
    LogRecord, Replay, SegmentSummary, ShareRecord, formatter_json, read_segment, write_segment,
};
use sharestate::model::{Partition, SharePartitionKey};

const STATE_PARTITIONS: usize = 3;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/kafka-4.4").join(name)
}

fn json(name: &str) -> Value {
    let text = std::fs::read_to_string(path(name)).expect("fixture");
    serde_json::from_str(&text).expect("JSON")
}

fn segment(partition: usize) -> (String, Vec<u8>) {
    let name = format!("state-{partition}.log");
    let bytes = std::fs::read(path(&name)).expect("fixture");
    (name, bytes)
}

fn records(name: &str, bytes: &[u8]) -> (Vec<LogRecord>, SegmentSummary) {
    let mut records = Vec::new();
    let summary = read_segment(name, bytes, &mut |record| {
        records.push(record);
        Ok(())
    });
    (records, summary.expect("an undamaged segment"))
}

fn replayed() -> BTreeMap<SharePartitionKey, Partition> {
    let mut replay = Replay::new();
    for partition in 0..STATE_PARTITIONS {
        let (name, bytes) = segment(partition);
        for record in records(&name, &bytes).0 {
            replay.apply(&name, &record).expect("a record of Kafka's");
        }
    }
    assert!(replay.headless().is_empty());
    replay.finish()
}

fn lines(partition: usize) -> Vec<Value> {
    let text = std::fs::read_to_string(path(&format!("records-{partition}.jsonl")));
    text.expect("fixture").lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn every_record_prints_as_kafka_prints_it() {
    let manifest = json("manifest.json");
    for partition in 0..STATE_PARTITIONS {
        let (name, bytes) = segment(partition);
        let (records, summary) = records(&name, &bytes);
        let expected = lines(partition);
        assert_eq!(records.len(), expected.len(), "{name}");
        for (index, (record, line)) in records.iter().zip(&expected).enumerate() {
            assert_eq!(record.offset, i64::try_from(index).unwrap(), "{name}");
            let printed = formatter_json(&record.record).expect("a known type");
            assert_eq!(&printed, line, "{name}, offset {index}");
        }
        let told = &manifest["statePartitions"][partition];
        assert_eq!(told["records"], summary.records);
        assert_eq!(
            told["tombstones"],
            count(&records, |r| matches!(r, ShareRecord::Tombstone { .. }))
        );
        assert_eq!(told["updates"], count(&records, |r| matches!(r, ShareRecord::Update { .. })));
        assert_eq!(
            told["snapshots"],
            count(&records, |r| matches!(r, ShareRecord::Snapshot { .. }))
        );
        assert_eq!((summary.unknown_records, summary.trailing_zero_bytes), (0, 0));
        assert_eq!(summary.first_offset, Some(0));
        assert_eq!(summary.last_offset, Some(i64::try_from(expected.len()).unwrap() - 1));
    }
}

fn count(records: &[LogRecord], of: impl Fn(&ShareRecord) -> bool) -> usize {
    records.iter().filter(|record| of(&record.record)).count()
}

#[test]
fn keys_and_values_encode_to_kafkas_bytes() {
    for partition in 0..STATE_PARTITIONS {
        let (name, bytes) = segment(partition);
        for record in records(&name, &bytes).0 {
            // The batches are uncompressed, so the encoded key and value stand in the file.
            let key = record.record.encode_key();
            let from = usize::try_from(record.position).unwrap();
            assert!(bytes[from..].windows(key.len()).any(|window| window == key));
            if let Some(value) = record.record.encode_value() {
                assert!(bytes[from..].windows(value.len()).any(|window| window == value));
            }
        }
    }
}

/// A share partition folded from the JSON lines, offset by offset, by the rules on paper.
#[derive(Debug, Default, PartialEq)]
struct Folded {
    snapshot_epoch: i64,
    state_epoch: i64,
    leader_epoch: i64,
    leader_fence: i64,
    start_offset: i64,
    delivery_complete_count: i64,
    create_timestamp: i64,
    write_timestamp: i64,
    /// Offset -> (delivery count, delivery state): the larger pair wins.
    offsets: BTreeMap<i64, (i64, i64)>,
}

/// Group, topic id in Kafka's text form, partition.
type NaiveKey = (String, String, i64);

fn naive_fold() -> BTreeMap<NaiveKey, Folded> {
    let mut states: BTreeMap<NaiveKey, Folded> = BTreeMap::new();
    for line in (0..STATE_PARTITIONS).flat_map(lines) {
        let key = naive_key(&line["key"]["data"]);
        if line["value"].is_null() {
            states.remove(&key);
            continue;
        }
        let data = &line["value"]["data"];
        let number = |field: &str| data[field].as_i64();
        let state = states.entry(key).or_default();
        let start_offset = number("startOffset").unwrap();
        let leader_epoch = number("leaderEpoch").unwrap();
        if line["key"]["type"] == 0 {
            state.offsets.clear();
            state.snapshot_epoch = number("snapshotEpoch").unwrap();
            state.state_epoch = number("stateEpoch").unwrap();
            state.create_timestamp = number("createTimestamp").unwrap();
            state.write_timestamp = number("writeTimestamp").unwrap();
            state.start_offset = start_offset;
        } else if start_offset != -1 {
            state.start_offset = start_offset;
        }
        assert!(leader_epoch >= 0, "the fixtures have real leader epochs only");
        state.leader_epoch = leader_epoch;
        state.leader_fence = state.leader_fence.max(leader_epoch);
        state.delivery_complete_count = number("deliveryCompleteCount").unwrap_or(-1);
        for batch in data["stateBatches"].as_array().unwrap() {
            let field = |name: &str| batch[name].as_i64().unwrap();
            for offset in field("firstOffset")..=field("lastOffset") {
                let new = (field("deliveryCount"), field("deliveryState"));
                let old = state.offsets.entry(offset).or_insert(new);
                *old = new.max(*old);
            }
        }
        if state.start_offset != -1 {
            state.offsets = state.offsets.split_off(&state.start_offset);
        }
    }
    states
}

fn naive_key(data: &Value) -> NaiveKey {
    let text = |field: &str| data[field].as_str().expect("text").to_owned();
    (text("groupId"), text("topicId"), data["partition"].as_i64().expect("partition"))
}

/// The key as the formatter prints it; it was compared with Kafka's above.
fn printed_key(key: &SharePartitionKey) -> NaiveKey {
    let tombstone = ShareRecord::Tombstone { key: key.clone() };
    naive_key(&formatter_json(&tombstone).expect("a known type")["key"]["data"])
}

fn as_folded(partition: &Partition) -> Folded {
    let mut offsets = BTreeMap::new();
    for pair in partition.batches.windows(2) {
        let touching = pair[0].last_offset + 1 == pair[1].first_offset;
        let equal = (pair[0].delivery_state, pair[0].delivery_count)
            == (pair[1].delivery_state, pair[1].delivery_count);
        assert!(pair[0].last_offset < pair[1].first_offset && !(touching && equal));
    }
    for batch in &partition.batches {
        for offset in batch.first_offset..=batch.last_offset {
            let pair = (batch.delivery_count.into(), batch.delivery_state.0.into());
            assert_eq!(offsets.insert(offset, pair), None);
        }
    }
    Folded {
        snapshot_epoch: partition.snapshot_epoch.into(),
        state_epoch: partition.state_epoch.into(),
        leader_epoch: partition.leader_epoch.into(),
        leader_fence: partition.leader_fence.into(),
        start_offset: partition.start_offset,
        delivery_complete_count: partition.delivery_complete_count.into(),
        create_timestamp: partition.create_time_ms,
        write_timestamp: partition.write_time_ms,
        offsets,
    }
}

#[test]
fn replay_equals_a_naive_fold_of_the_printed_records() {
    let expected = naive_fold();
    let states = replayed();
    assert!(!expected.is_empty());
    assert_eq!(states.len(), expected.len());
    for (key, partition) in &states {
        let folded = &expected[&printed_key(key)];
        assert_eq!(&as_folded(partition), folded, "{key}");
        assert_eq!(partition.init_start_offset, partition.start_offset);
        assert!(partition.pending.is_empty());
        assert_eq!(partition.last_lsn, 0);
    }
}

#[test]
fn replay_equals_the_coordinators_own_answers() {
    let by_key: BTreeMap<_, _> =
        replayed().into_iter().map(|(key, partition)| (printed_key(&key), partition)).collect();
    let mut alive = 0;
    for told in json("summary.json")["sharePartitions"].as_array().unwrap() {
        let key = naive_key(told);
        let (summary, state) = (&told["summary"], &told["state"]);
        let Some(partition) = by_key.get(&key) else {
            assert_eq!(state["errorCode"], 42, "{key:?} is missing, but Kafka still had it");
            continue;
        };
        alive += 1;
        assert_eq!(state["errorCode"], 0, "{key:?} was deleted");
        assert_eq!(summary["stateEpoch"], partition.state_epoch, "{key:?}");
        assert_eq!(summary["leaderEpoch"], partition.leader_epoch, "{key:?}");
        assert_eq!(summary["startOffset"], partition.start_offset, "{key:?}");
        assert_eq!(summary["deliveryCompleteCount"], partition.delivery_complete_count, "{key:?}");
        let batches: Vec<Value> = partition
            .batches
            .iter()
            .map(|batch| {
                serde_json::json!({
                    "firstOffset": batch.first_offset,
                    "lastOffset": batch.last_offset,
                    "deliveryState": batch.delivery_state.0,
                    "deliveryCount": batch.delivery_count,
                })
            })
            .collect();
        assert_eq!(state["stateBatches"], Value::Array(batches), "{key:?}");
    }
    assert_eq!(alive, by_key.len(), "a share partition that Kafka does not know");
}

#[test]
fn start_offsets_and_lags_are_those_of_the_admin_client() {
    let told = json("offsets.json");
    let by_key: BTreeMap<_, _> =
        replayed().into_iter().map(|(key, partition)| (printed_key(&key), partition)).collect();
    let end_offset = |topic_id: &Value, partition: &Value| {
        let ends = told["topicPartitions"].as_array().unwrap();
        let mut found =
            ends.iter().filter(|end| &end["topicId"] == topic_id && &end["partition"] == partition);
        found.next().and_then(|end| end["logEndOffset"].as_i64()).expect("log end offset")
    };
    let mut compared = 0;
    for group in told["groups"].as_array().unwrap() {
        for offset in group["offsets"].as_array().unwrap() {
            let (topic_id, index) = (&offset["topicId"], &offset["partition"]);
            let key = (
                group["groupId"].as_str().unwrap().to_owned(),
                topic_id.as_str().unwrap().to_owned(),
                index.as_i64().unwrap(),
            );
            let partition = &by_key[&key];
            compared += 1;
            if offset["startOffset"].is_null() {
                assert_eq!(partition.start_offset, -1, "{key:?}");
                continue;
            }
            assert_eq!(offset["startOffset"], partition.start_offset, "{key:?}");
            assert_eq!(offset["leaderEpoch"], partition.leader_epoch, "{key:?}");
            let known = partition.start_offset + i64::from(partition.delivery_complete_count);
            assert_eq!(offset["lag"], end_offset(topic_id, index) - known, "{key:?}");
        }
    }
    assert_eq!(compared, by_key.len());
    for deleted in told["deletedGroups"].as_array().unwrap() {
        assert!(by_key.keys().all(|(group, _, _)| deleted != group), "{deleted} is deleted");
    }
}

#[test]
fn a_real_segment_is_all_or_an_error_when_cut() {
    let (name, bytes) = segment(1);
    let (whole, summary) = records(&name, &bytes);
    let mut clean_cuts = 0;
    for cut in 0..bytes.len() {
        let mut seen = Vec::new();
        let answer = read_segment(&name, &bytes[..cut], &mut |record| {
            seen.push(record);
            Ok(())
        });
        assert!(whole.starts_with(&seen), "cut at {cut}");
        match answer {
            Ok(shorter) => {
                clean_cuts += 1;
                assert!(shorter.batches < summary.batches, "cut at {cut}");
            }
            Err(error) => assert!(error.position <= cut as u64, "cut at {cut}: {error}"),
        }
    }
    // One at each batch edge, and some within the zeros that a batch of a young log begins with.
    assert!(clean_cuts >= summary.batches);
}

#[test]
fn an_export_of_the_replayed_states_replays_to_the_same() {
    let states = replayed();
    let bytes = write_segment(states.iter().map(|(key, state)| (key.clone(), state)), 0, 1);
    let bytes = bytes.expect("nothing is pending");
    let mut replay = Replay::new();
    for record in records("export", &bytes).0 {
        replay.apply("export", &record).expect("our own record");
    }
    assert_eq!(replay.finish(), states);
}
