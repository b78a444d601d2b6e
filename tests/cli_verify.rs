//! `verify`: damage of every kind is found and named, and nothing is changed.
#![cfg(all(feature = "cli", feature = "rocksdb"))]

mod cli;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use sharestate::codec;
use sharestate::fsio::RealFs;
use sharestate::log::{Batch, LogOptions, Prepare, Scope, scan};
use sharestate::snapshot::{Family, RocksMode, RocksRows, RowOp, RowStore};
use sharestate::{OpenError, ShareStore};

use cli::store::{ENTRIES, SEGMENT_BYTES, key, made, make, options, segments, write};
use cli::{assert_untouched, copy, flip, json, json_lines, run, tree};

fn findings(report: &Value) -> Vec<(PathBuf, Option<u64>)> {
    let findings = report["findings"].as_array().unwrap().iter();
    findings
        .map(|finding| (finding["file"].as_str().unwrap().into(), finding["offset"].as_u64()))
        .collect()
}

#[test]
fn verify_finds_every_flipped_byte_in_the_log_and_names_its_frame() {
    let (dir, store) = made();
    run(&[&"verify", &store]).expect(0);
    // Frames of the log, by the entries in them; what follows the last one is vouched for by none.
    let lines = json_lines(&run(&[&"dump", &store, &"--json"]).expect(0));
    let damaged = dir.path().join("damaged");
    let mut flipped = 0;
    for path in segments(&store) {
        let name = path.file_name().unwrap().to_owned();
        let frames: Vec<u64> = lines
            .iter()
            .filter(|line| line["segment"] == *name.to_str().unwrap())
            .map(|line| line["frame_offset"].as_u64().unwrap())
            .collect();
        let last = *frames.last().expect("entries in every segment") as usize;
        for offset in (0..=last).step_by(last / 9 + 1).chain([8, 40, 63, last + 1, last + 58]) {
            copy(&store, &damaged);
            let file = damaged.join("wal").join(&name);
            flip(&file, offset);
            let before = tree(&damaged);
            let report = json(&run(&[&"verify", &damaged, &"--json"]).expect(1));
            assert_eq!(report["verdict"], "damage");
            let at = frames.iter().copied().rfind(|frame| *frame <= offset as u64).unwrap_or(0);
            let found = findings(&report);
            assert!(
                found.iter().any(|(path, offset)| *path == file && *offset == Some(at)),
                "{name:?} flipped at {offset}: frame at {at}, {found:?}"
            );
            assert_untouched(&damaged, &before);
            flipped += 1;
        }
    }
    println!("{flipped} flipped bytes found");
}

#[test]
fn verify_goes_on_behind_the_first_damage() {
    let (_dir, store) = made();
    let paths = segments(&store);
    assert!(paths.len() > 3, "{paths:?}");
    for path in [&paths[0], &paths[2]] {
        flip(path, 64 + 30);
    }
    flip(&paths[0], 2_000);
    let text = run(&[&"verify", &store]).expect(1);
    let damage: Vec<_> = text.lines().filter(|line| line.starts_with("damage: ")).collect();
    assert_eq!(damage.len(), 3, "{text}");
    for line in damage {
        assert!(line.contains(".wal at byte ") && line.contains("LSN "), "{line}");
        assert!(line.contains(": expected ") && line.contains(", found "), "{line}");
    }
}

#[test]
fn verify_finds_damage_in_every_file_of_rocksdb() {
    let (dir, store) = made();
    // Opening once more turns the snapshot's own log into tables.
    let open = ShareStore::open(&store, &options()).unwrap().blocking();
    for partition in 0..3 {
        write(&open, partition, 900, 1);
    }
    open.close().unwrap();
    run(&[&"verify", &store]).expect(0);
    let damaged = dir.path().join("damaged");
    let mut kinds = std::collections::BTreeSet::new();
    for (path, bytes) in tree(&store.join("snapshot")) {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let kind = ["sst", "log", "MANIFEST", "CURRENT"]
            .into_iter()
            .find(|kind| name.ends_with(kind) || name.starts_with(kind));
        let Some(kind) = kind.filter(|_| !bytes.is_empty()) else { continue };
        kinds.insert(kind);
        // The first bytes of a table are rows, the last ones its footer.
        for offset in [1, bytes.len() / 4, bytes.len() - 10] {
            copy(&store, &damaged);
            flip(&damaged.join("snapshot").join(&name), offset);
            let before = tree(&damaged);
            let report = json(&run(&[&"verify", &damaged, &"--json"]).expect(1));
            let found = findings(&report);
            let named = |(path, _): &(PathBuf, Option<u64>)| path.ends_with(&name);
            assert!(found.iter().any(named), "{name} flipped at {offset}: {found:?}");
            assert_untouched(&damaged, &before);
        }
        copy(&store, &damaged);
        std::fs::remove_file(damaged.join("snapshot").join(&name)).unwrap();
        if kind != "log" {
            // Its write-ahead log may be lost: the store's own log still reaches back far enough.
            let text = run(&[&"verify", &damaged]).expect(1);
            assert!(text.contains(&name), "{name} removed: {text}");
        }
    }
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), ["CURRENT", "MANIFEST", "log", "sst"]);
}

#[test]
fn a_torn_end_is_harmless_and_said_so() {
    let (_dir, store) = made();
    let path = segments(&store).pop().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() / 8 * 8 + 64;
    // Half a frame: the first one of the segment, at the wrong place.
    bytes.copy_within(64..64 + 90, end);
    std::fs::write(&path, bytes).unwrap();
    let before = tree(&store);
    let report = json(&run(&[&"verify", &store, &"--json"]).expect(0));
    assert_eq!((&report["verdict"], &report["findings"]), (&"torn".into(), &serde_json::json!([])));
    assert_eq!(report["torn_tail"]["file"], path.display().to_string());
    let facts = json(&run(&[&"inspect", &store, &"--json"]).expect(0));
    assert_eq!(facts["torn_tail"]["lsn"], ENTRIES + 1);
    for command in ["export", "dump"] {
        let answer = run(&[&command, &store]);
        assert!(answer.err.contains("the log ends in an unfinished frame at byte"), "{answer:?}");
        assert!(answer.expect(0).lines().count() > 3);
    }
    assert_untouched(&store, &before);

    ShareStore::open(&store, &options()).unwrap().blocking().close().unwrap();
    assert_eq!(tree(&store.join("quarantine")).len(), 1, "the cut bytes are kept");
    let report = json(&run(&[&"verify", &store, &"--json"]).expect(0));
    assert_eq!(report["verdict"], "clean");
}

#[test]
fn a_missing_and_a_foreign_segment_are_named() {
    let (dir, store) = made();
    let paths = segments(&store);
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let copied = dir.path().join("copied");
    let wal_of = |dir: &Path| tree(&dir.join("wal"));
    let fixture = cli::fixture("state-0.log");

    let check = |expected: &str| {
        let before = wal_of(&copied);
        let text = run(&[&"verify", &copied]).expect(1);
        assert!(text.contains(expected), "{text}");
        run(&[&"import", &copied, &"--replace", &fixture]).expect_error(1);
        assert_eq!(wal_of(&copied), before, "the log is as it was");
    };

    copy(&store, &copied);
    let last = paths.last().unwrap();
    std::fs::remove_file(copied.join("wal").join(name(last))).unwrap();
    check("behind this sealed one");

    copy(&store, &copied);
    let (foreign, other) = (dir.path().join("foreign"), paths.last().unwrap());
    make(&foreign).blocking().close().unwrap();
    let theirs = segments(&foreign).pop().unwrap();
    assert_eq!(name(&theirs), name(other), "stores made alike are cut alike");
    std::fs::copy(&theirs, copied.join("wal").join(name(other))).unwrap();
    check("expected a segment of store ");
}

/// Appends an entry that no store would write, with all its checksums in order.
fn append(store: &Path, kind: u16, body: &[u8]) {
    let uuid = sharestate::inspect::Reader::open(store).unwrap().identity().uuid;
    let wal = store.join("wal");
    let log = scan::<()>(Arc::new(RealFs), &wal, uuid, 0, Scope::All, &mut |_| Ok(())).unwrap();
    let segment_bytes = SEGMENT_BYTES;
    let options = LogOptions { segment_bytes, relaxed: false, prepare: Prepare::Inline };
    let (mut log, _) = log.repair(&store.join("quarantine"), 1_000, options).unwrap();
    let mut batch = Batch::new(log.next_lsn());
    batch.push(kind, 1, body);
    log.append(&batch).unwrap();
    log.sync().unwrap();
}

#[test]
fn an_entry_that_does_not_decode_is_damage_and_one_of_an_unknown_kind_is_newer() {
    let (_dir, store) = made();
    append(&store, 4, b"no key");
    let text = run(&[&"verify", &store]).expect(1);
    let expected = format!("LSN {}: expected an entry that decodes", ENTRIES + 1);
    assert!(text.contains(&expected), "{text}");
    let answer = run(&[&"dump", &store]);
    assert!(answer.err.contains("1 entries do not decode"), "{}", answer.err);
    assert!(answer.expect(1).contains("kind 4 version 1, 6 bytes: "));

    let (_dir, store) = made();
    append(&store, 4_711, b"from the future");
    let error = run(&[&"verify", &store]).expect_error(2);
    assert!(error.contains("kind 4711 version 1 was written by a newer sharestate"), "{error}");
    let lines = json_lines(&run(&[&"dump", &store, &"--json"]).expect(0));
    assert_eq!(
        (&lines[ENTRIES]["kind"], &lines[ENTRIES]["kind_number"]),
        (&"unknown".into(), &4_711.into())
    );
}

#[test]
fn an_entry_that_cannot_have_happened_is_damage() {
    let (_dir, store) = made();
    let mut body = Vec::new();
    let delete = sharestate::model::Transition::Delete { key: key(4) };
    codec::encode_transition(&delete, &mut body).unwrap();
    append(&store, 4, &body); // `made` has deleted it
    let text = run(&[&"verify", &store]).expect(1);
    assert!(text.contains("expected an entry that fits the state"), "{text}");
    assert!(text.contains("there is no such row"), "{text}");
    let opened = ShareStore::open(&store, &options());
    assert!(matches!(opened, Err(OpenError::Entry { .. })), "{opened:?}");
}

#[test]
fn rows_are_compared_with_each_other() {
    let (dir, store) = made();
    let tamper = |ops: Vec<RowOp>| {
        let copied = dir.path().join("copied");
        let _ = std::fs::remove_dir_all(&copied);
        copy(&store, &copied);
        let rows = RocksRows::open(&copied.join("snapshot"), &RocksMode::ReadWrite, 1 << 20);
        rows.unwrap().write(ops).unwrap();
        let before = tree(&copied);
        let text = run(&[&"verify", &copied]).expect(1);
        assert_untouched(&copied, &before);
        text
    };
    let mut reader = sharestate::inspect::Reader::open(&store).unwrap();
    let mut row = |partition| {
        let row = reader.partition(&key(partition)).unwrap().unwrap();
        sharestate::Partition::clone(&row)
    };
    let row_key = |partition| codec::encode_partition_key(&key(partition));
    let put = |partition, row: &sharestate::Partition| {
        let value = codec::encode_partition(row).unwrap();
        RowOp::put(Family::Partition, row_key(partition), value)
    };

    let link = codec::encode_producer_key(77, 4, &key(1));
    let text = tamper(vec![RowOp::delete(Family::ProducerKey, link)]);
    assert!(text.contains("row `77` of `producer`"), "{text}");

    let producer = codec::encode_producer_id(77).to_vec();
    let text = tamper(vec![RowOp::delete(Family::Producer, producer)]);
    assert!(text.contains("producer 77 epoch 4, which does not know of them"), "{text}");
    assert!(text.contains("a row of producer 77 epoch 4, which is not open"), "{text}");

    let mut resolved = row(0);
    resolved.pending.clear();
    let text = tamper(vec![put(0, &resolved)]);
    assert!(text.contains("epoch 4 open in group:with:colons"), "{text}");

    let mut unordered = row(2);
    unordered.batches.reverse();
    let text = tamper(vec![put(2, &unordered)]);
    assert!(text.contains("batches are not sorted"), "{text}");

    let mut early = row(2);
    early.last_lsn = 9_999;
    let text = tamper(vec![put(2, &early)]);
    assert!(text.contains("changed by LSN 9999, while the snapshot has applied"), "{text}");

    let garbage = RowOp::put(Family::Partition, row_key(3), vec![1, 2, 3]);
    let text = tamper(vec![garbage, put(2, &early)]);
    assert!(text.contains("does not decode") && text.contains("LSN 9999"), "{text}");
    assert!(text.contains("verdict   damage: 2 findings"), "{text}");
}
