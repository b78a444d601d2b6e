//! What a real Kafka broker wrote, through the command and back, compared with what Kafka itself
//! said of it.
#![cfg(all(feature = "cli", feature = "rocksdb"))]

mod cli;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use serde_json::Value;
use sharestate::SharePartitionKey;
use tempfile::TempDir;
use uuid::Uuid;

use cli::{
    assert_untouched, fixture, import_fixtures, json, json_lines, run, run_with_input, tree,
};

fn fixture_json(name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(fixture(name)).unwrap()).unwrap()
}

/// Kafka prints topic ids in base64 of the URL alphabet.
fn topic_id(text: &str) -> Uuid {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let (mut bytes, mut buffer, mut bits) = (Vec::new(), 0_u32, 0);
    for letter in text.bytes() {
        let value = alphabet.iter().position(|known| *known == letter).unwrap();
        buffer = (buffer << 6) | value as u32;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((buffer >> bits) as u8);
        }
    }
    Uuid::from_slice(&bytes).unwrap()
}

/// The key of one of Kafka's objects.
fn key_in(object: &Value, group: &Value) -> SharePartitionKey {
    let topic = topic_id(object["topicId"].as_str().unwrap());
    let partition = i32::try_from(object["partition"].as_i64().unwrap()).unwrap();
    SharePartitionKey::new(group.as_str().unwrap(), topic, partition).unwrap()
}

/// Exported share partitions by key.
fn export(store: &Path) -> BTreeMap<SharePartitionKey, Value> {
    json_lines(&run(&[&"export", &store]).expect(0))
        .into_iter()
        .map(|line| {
            let topic = line["topic_id"].as_str().unwrap().parse().unwrap();
            let partition = i32::try_from(line["partition"].as_i64().unwrap()).unwrap();
            let group = line["group_id"].as_str().unwrap();
            (SharePartitionKey::new(group, topic, partition).unwrap(), line)
        })
        .collect()
}

fn imported() -> (TempDir, std::path::PathBuf) {
    let dir = TempDir::new().unwrap();
    let store = dir.path().join("store");
    import_fixtures(&store);
    (dir, store)
}

#[test]
fn every_field_of_every_share_partition_is_as_kafkas_coordinator_answers_it() {
    let (_dir, store) = imported();
    let mut exported = export(&store);
    let (mut present, mut absent, mut fields) = (0, 0, 0);
    for told in fixture_json("summary.json")["sharePartitions"].as_array().unwrap() {
        let key = key_in(told, &told["groupId"]);
        let (state, summary) = (&told["state"], &told["summary"]);
        let Some(ours) = exported.remove(&key) else {
            assert_eq!(state["errorCode"], 42, "{key} is missing");
            absent += 1;
            continue;
        };
        present += 1;
        assert_eq!(state["errorCode"], 0, "{key} should not exist");
        let mut same = |ours: &Value, kafkas: &Value, field: &str| {
            assert_eq!(ours, kafkas, "{key}: {field}");
            fields += 1;
        };
        for answer in [state, summary] {
            same(&ours["state_epoch"], &answer["stateEpoch"], "state epoch");
            same(&ours["start_offset"], &answer["startOffset"], "start offset");
        }
        same(&ours["leader_epoch"], &summary["leaderEpoch"], "leader epoch");
        let count = &summary["deliveryCompleteCount"];
        same(&ours["delivery_complete_count"], count, "delivery-complete count");
        let batches = ours["batches"].as_array().unwrap();
        let kafkas = state["stateBatches"].as_array().unwrap();
        assert_eq!(batches.len(), kafkas.len(), "{key}: batches");
        for (ours, kafkas) in batches.iter().zip(kafkas) {
            for (index, field) in
                ["firstOffset", "lastOffset", "deliveryState", "deliveryCount"].iter().enumerate()
            {
                same(&ours[index], &kafkas[*field], field);
            }
        }
    }
    assert!(exported.is_empty(), "Kafka does not know {:?}", exported.keys());
    println!("{present} share partitions, {fields} fields equal; {absent} deleted ones absent");
    assert_eq!((present, absent), (22, 11));
    assert!(fields > 500, "{fields}");
}

#[test]
fn start_offsets_and_lags_are_as_kafkas_admin_client_tells_them() {
    let (_dir, store) = imported();
    let mut exported = export(&store);
    let offsets = fixture_json("offsets.json");
    let ends: BTreeMap<(String, i64), i64> = offsets["topicPartitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|end| {
            let place =
                (end["topicId"].as_str().unwrap().into(), end["partition"].as_i64().unwrap());
            (place, end["logEndOffset"].as_i64().unwrap())
        })
        .collect();
    let mut compared = 0;
    for group in offsets["groups"].as_array().unwrap() {
        for told in group["offsets"].as_array().unwrap() {
            let key = key_in(told, &group["groupId"]);
            let ours = exported.remove(&key).unwrap_or_else(|| panic!("{key} is missing"));
            let start = ours["start_offset"].as_i64().unwrap();
            let count = ours["delivery_complete_count"].as_i64().unwrap();
            compared += 1;
            if start == -1 {
                assert_eq!(told["startOffset"], Value::Null, "{key}");
                assert_eq!(told["lag"], Value::Null, "{key}");
                continue;
            }
            let place = (told["topicId"].as_str().unwrap().into(), i64::from(key.partition()));
            assert_eq!(told["startOffset"], start, "{key}");
            assert_eq!(told["leaderEpoch"], ours["leader_epoch"], "{key}");
            assert_eq!(told["lag"], ends[&place] - start - count, "{key}: lag");
        }
    }
    for group in offsets["deletedGroups"].as_array().unwrap() {
        assert!(exported.keys().all(|key| key.group_id() != group.as_str().unwrap()));
    }
    assert!(exported.is_empty(), "Kafka does not list {:?}", exported.keys());
    assert_eq!(compared, 22);
}

#[test]
fn an_imported_store_verifies_and_shows_what_it_exports() {
    let (_dir, store) = imported();
    let report = json(&run(&[&"verify", &store, &"--json"]).expect(0));
    assert_eq!((&report["verdict"], &report["partitions"]), (&"clean".into(), &22.into()));
    assert_eq!((&report["entries"], &report["last_lsn"]), (&22.into(), &22.into()));
    for (key, line) in export(&store) {
        let mut shown = json(&run(&[&"show", &store, &key.to_string(), &"--json"]).expect(0));
        let lsn = shown.as_object_mut().unwrap().remove("last_lsn").unwrap();
        assert!((1..=22).contains(&lsn.as_i64().unwrap()));
        assert_eq!(shown, line);
    }
    // Kafka: 17 available, 18 rejected, 19 and 20 accepted, 21 available, ...
    let mut keys = export(&store).into_keys();
    let billing = keys.find(|key| key.group_id() == "billing:eu:1" && key.partition() == 0);
    let billing = billing.unwrap().to_string();
    let text = run(&[&"show", &store, &billing]).expect(0);
    assert!(text.contains("|.x##.x##.x.#.x|"), "{text}");
    assert!(text.contains("(fence 2)"), "{text}");
}

#[test]
fn a_damaged_segment_is_named_with_its_position_and_leaves_the_store_as_it_was() {
    let (dir, store) = imported();
    let before = tree(&store);
    let exported = run(&[&"export", &store]).expect(0);
    let bytes = std::fs::read(fixture("state-2.log")).unwrap();
    let damaged = dir.path().join("damaged.log");
    let try_import = |bytes: &[u8]| {
        std::fs::write(&damaged, bytes).unwrap();
        let good = fixture("state-0.log");
        run(&[&"import", &store, &"--replace", &good, &damaged])
    };
    for cut in [bytes.len() - 1, bytes.len() / 2, 5_000, 100, 13] {
        let error = try_import(&bytes[..cut]).expect_error(1);
        assert!(error.contains("damaged.log: position "), "cut at {cut}: {error}");
        assert_untouched(&store, &before);
    }
    let (mut found, mut harmless) = (0, 0);
    for at in (0..bytes.len()).step_by(211) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x04;
        let answer = try_import(&flipped);
        if answer.code == Some(0) {
            // The leader epoch in a batch's header is outside its checksum, and not used.
            assert_eq!(run(&[&"export", &store]).expect(0), exported, "flipped at {at}");
            harmless += 1;
            continue;
        }
        let error = answer.expect_error(1);
        assert!(error.contains("damaged.log: position "), "flipped at {at}: {error}");
        found += 1;
    }
    println!("{found} flipped bits found, {harmless} outside every checksum and without effect");
    assert!(found > 60 && harmless < 8, "{found} found, {harmless} not");
    assert_eq!(run(&[&"export", &store]).expect(0), exported);
}

#[test]
fn what_exists_is_not_replaced_unless_asked_and_nothing_is_loaded_before_that_is_known() {
    let dir = TempDir::new().unwrap();
    let (store, one) = (dir.path().join("store"), fixture("state-1.log"));
    let error = run(&[&"import", &store, &one]).expect_error(2);
    assert!(error.contains("not a sharestate store"), "{error}");
    assert!(!store.exists(), "without --create no store is made");

    run(&[&"import", &store, &"--create", &one]).expect(0);
    let exported = run(&[&"export", &store]).expect(0);
    let mut args: Vec<&dyn AsRef<OsStr>> = vec![&"import", &store];
    let segments = cli::segments();
    args.extend(segments.iter().map(|segment| segment as &dyn AsRef<OsStr>));
    let error = run(&args).expect_error(2);
    assert!(error.contains("share partitions already"), "{error}");
    assert_eq!(run(&[&"export", &store]).expect(0), exported, "nothing new was loaded");

    args.extend([&"--replace" as &dyn AsRef<OsStr>, &"--report-json"]);
    let report = json(&run(&args).expect(0));
    assert_eq!(report["replaced"], exported.lines().count());
    assert_eq!((&report["partitions"], &report["records"]), (&22.into(), &207.into()));
    assert_eq!(export(&store).len(), 22);
}

#[test]
fn an_export_imports_into_the_same_export() {
    let (dir, store) = imported();
    let exported = run(&[&"export", &store]).expect(0);
    let lines = dir.path().join("lines.json");
    std::fs::write(&lines, &exported).unwrap();

    let second = dir.path().join("second");
    run(&[&"import", &second, &"--create", &"--json", &lines]).expect(0);
    assert_eq!(run(&[&"export", &second]).expect(0), exported);

    let third = dir.path().join("third");
    let args: [&dyn AsRef<OsStr>; 5] = [&"import", &third, &"--create", &"--json", &"-"];
    run_with_input(&args, exported.as_bytes()).expect(0);
    assert_eq!(run(&[&"export", &third]).expect(0), exported);

    // Through Kafka's own form and back.
    let (segment, fourth) = (dir.path().join("out.log"), dir.path().join("fourth"));
    let report = json(&run(&[&"export", &store, &"--kafka", &segment, &"--json"]).expect(0));
    assert_eq!(report["partitions"], 22);
    run(&[&"import", &fourth, &"--create", &segment]).expect(0);
    assert_eq!(run(&[&"export", &fourth]).expect(0), exported);
}

#[test]
fn bad_lines_are_named_and_nothing_is_loaded() {
    let (dir, store) = imported();
    let before = tree(&store);
    let good = run(&[&"export", &store]).expect(0);
    let line = good.lines().next().unwrap();
    let edit = |field: &str, value: Value| {
        let mut object: Value = serde_json::from_str(line).unwrap();
        object[field] = value;
        object.to_string()
    };
    let pending = serde_json::json!([{
        "first_offset": 40, "last_offset": 41, "ack_type": 1, "commit_target": 2,
        "abort_target": 0, "delivery_count": 1, "lsn": 9, "producer_id": 4, "producer_epoch": 0,
        "two_phase": false, "transactional_id": "t", "member_id": "m", "member_epoch": 1,
        "state_epoch": 2, "leader_epoch": 2, "stage_time_ms": 5
    }]);
    let cases = [
        ("{".to_owned(), "line 2, column 1: EOF"),
        ("[]".to_owned(), "line 2, column "),
        (edit("partition", "x".into()), "line 2, column "),
        (edit("surprise", 1.into()), "unknown field `surprise`"),
        (edit("partition", (-1).into()), "line 2: the partition index -1 is negative"),
        (edit("topic_id", "x".into()), "line 2: topic_id `x` is not a UUID"),
        (edit("group_id", "".into()), "line 2: the group id is empty"),
        (edit("state_epoch", (-1).into()), "line 2: share partition billing"),
        (edit("batches", serde_json::json!([[9, 8, 0, 1]])), "A state batch is malformed"),
        (edit("batches", serde_json::json!([[8, 9, 1, 1]])), "A state batch is malformed"),
        (edit("pending", pending), "has 1 pending ack ranges, none can be imported"),
        (line.to_owned(), "was in line 1 already"),
    ];
    let file = dir.path().join("lines.json");
    for (bad, expected) in cases {
        std::fs::write(&file, format!("{line}\n{bad}\n")).unwrap();
        let error = run(&[&"import", &store, &"--json", &"--replace", &file]).expect_error(2);
        assert!(error.contains(expected) && error.contains("lines.json"), "{bad}: {error}");
        assert_untouched(&store, &before);
    }
}

#[test]
fn segments_with_kafkas_names_must_be_in_order_and_without_a_gap() {
    let dir = TempDir::new().unwrap();
    let store = dir.path().join("store");
    let wrong = dir.path().join("00000000000000000007.log");
    std::fs::copy(fixture("state-0.log"), &wrong).unwrap();
    let error = run(&[&"import", &store, &"--create", &wrong]).expect_error(1);
    assert!(error.contains("the first offset is 0, the file's name says 7"), "{error}");
    assert!(!store.exists());
    let twice = dir.path().join("00000000000000000000.log");
    std::fs::copy(fixture("state-0.log"), &twice).unwrap();
    let error = run(&[&"import", &store, &"--create", &twice, &twice]).expect_error(2);
    assert!(error.contains("begins at offset 0, but "), "{error}");
    assert!(!store.exists());
}
