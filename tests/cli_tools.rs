//! `inspect`, `dump`, `show` and `export`: on whole stores, on what is no store, and beside a store
//! at work.
#![cfg(all(feature = "cli", feature = "rocksdb"))]

mod cli;

use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use sharestate::inspect::Reader;
use sharestate::{Command, DeliveryState, Marker, Outcome, ShareStore, StateBatch, Write};
use tempfile::TempDir;

use cli::store::{ENTRIES, SEGMENT_BYTES, key, made, make, options, segments, stage, write};
use cli::{assert_untouched, flip, json, json_lines, run, tree};

#[test]
fn inspect_tells_what_the_store_is() {
    let (_dir, store) = made();
    let before = tree(&store);
    let facts = json(&run(&[&"inspect", &store, &"--json"]).expect(0));
    assert_eq!((&facts["first_lsn"], &facts["last_lsn"]), (&1.into(), &ENTRIES.into()));
    assert_eq!((&facts["snapshot_lsn"], &facts["replayed"]), (&ENTRIES.into(), &0.into()));
    assert_eq!((&facts["incarnation"], &facts["format_version"]), (&1.into(), &1.into()));
    assert_eq!(facts["segment_bytes"], SEGMENT_BYTES);
    assert_eq!(facts["segments"].as_array().unwrap().len(), segments(&store).len());
    assert_eq!(facts["torn_tail"], Value::Null);
    let rows = &facts["rows"];
    assert_eq!((&rows["partitions"], &rows["pending"]), (&4.into(), &2.into()));
    assert_eq!((&rows["producers"], &rows["open_epochs"]), (&1.into(), &1.into()));
    assert_eq!((&rows["pending_offsets"], &rows["orphaned_epochs"]), (&6.into(), &0.into()));
    let text = run(&[&"inspect", &store]).expect(0);
    assert!(text.contains(facts["uuid"].as_str().unwrap()), "{text}");
    assert!(text.contains("4 share partitions"), "{text}");
    assert_untouched(&store, &before);
}

#[test]
fn dump_prints_every_entry_on_a_line_of_its_own() {
    let (_dir, store) = made();
    let text = run(&[&"dump", &store]).expect(0);
    assert_eq!(text.lines().count(), ENTRIES);
    let lines = json_lines(&run(&[&"dump", &store, &"--json"]).expect(0));
    let lsns: Vec<_> = lines.iter().map(|line| line["lsn"].as_u64().unwrap()).collect();
    assert_eq!(lsns, (1..=ENTRIES as u64).collect::<Vec<_>>());
    let kinds = ["initialize", "leader-epoch", "write", "stage", "delete"];
    for kind in kinds {
        assert!(lines.iter().any(|line| line["kind"] == kind), "no {kind}");
        assert!(text.lines().any(|line| line.contains(&format!(" {kind} "))), "no {kind}");
    }
    // The place of an entry is where its bytes are.
    for line in &lines {
        let bytes = std::fs::read(store.join("wal").join(line["segment"].as_str().unwrap()));
        let (bytes, at) = (bytes.unwrap(), line["offset"].as_u64().unwrap() as usize);
        assert_eq!(u64::from(bytes[at]), line["kind_number"].as_u64().unwrap());
    }
    let staged = lines.iter().find(|line| line["kind"] == "stage").unwrap();
    assert_eq!((&staged["producer_id"], &staged["two_phase"]), (&77.into(), &true.into()));
    assert_eq!(staged["key"], key(0).to_string());
    assert_eq!(staged["acks"][0]["commit_target"], 2);
    assert!(text.contains("till\\nreceipt"), "a line feed in an id is escaped");

    let tail = run(&[&"dump", &store, &"--from-lsn", &"300"]).expect(0);
    assert_eq!(tail.lines().count(), ENTRIES - 299);
    assert!(tail.starts_with("300 "), "{tail}");
    assert_eq!(run(&[&"dump", &store, &"--from-lsn", &"999999"]).expect(0), "");
}

#[test]
fn show_draws_offsets_and_pending_acks_apart() {
    let dir = TempDir::new().unwrap();
    let store = ShareStore::open(dir.path(), &options()).unwrap().blocking();
    store.initialize(&key(0), 1, 10).unwrap();
    let runs = [(10, 12, 2, 1), (13, 13, 0, 1), (14, 15, 4, 2), (17, 18, 3, 1)];
    let batch = |(first_offset, last_offset, state, delivery_count)| StateBatch {
        first_offset,
        last_offset,
        delivery_state: DeliveryState(state),
        delivery_count,
    };
    let write = Write {
        state_epoch: 1,
        leader_epoch: 3,
        start_offset: -1,
        delivery_complete_count: 5,
        batches: runs.map(batch).to_vec(),
    };
    store.write(&key(0), write).unwrap();
    stage(&store, 0, 20);
    let name = key(0).to_string();
    let text = run(&[&"show", &dir.path(), &name]).expect(0);
    assert!(text.contains("|###.xx_~~____|\n"), "{text}");
    assert!(text.contains("|__________aaa| pending"), "{text}");
    assert!(text.contains("producer 77 epoch 4") && text.contains("_ nothing stored"), "{text}");
    let narrow = run(&[&"show", &dir.path(), &name, &"--width", &"8"]).expect(0);
    assert!(narrow.contains("2 offsets per cell\n    |#*x**__|"), "{narrow}");

    let shown = json(&run(&[&"show", &dir.path(), &name, &"--json"]).expect(0));
    assert_eq!(shown["batches"], serde_json::json!(runs));
    assert_eq!((&shown["pending"][0]["first_offset"], &shown["last_lsn"]), (&20.into(), &3.into()));

    let error = run(&[&"show", &dir.path(), &key(9).to_string()]).expect_error(2);
    assert!(error.contains("no share partition group:with:colons"), "{error}");
    let usage = run(&[&"show", &dir.path(), &"nonsense"]);
    assert_eq!(usage.code, Some(2));
    assert!(usage.err.contains("is not of the form group:topic-uuid:partition"), "{}", usage.err);
}

#[test]
fn pending_acks_are_exported_as_json_and_refused_as_kafkas_records() {
    let (dir, store) = made();
    let lines = json_lines(&run(&[&"export", &store]).expect(0));
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0]["pending"][0]["transactional_id"], "till\nreceipt");
    let file = dir.path().join("out.log");
    let error = run(&[&"export", &store, &"--kafka", &file]).expect_error(2);
    assert!(error.contains("has 1 pending ack ranges"), "{error}");
    assert!(!file.exists());

    // Replaced, they are gone, which is said.
    let (copied, line) = (dir.path().join("copied"), dir.path().join("line.json"));
    cli::copy(&store, &copied);
    let mut plain = lines[0].clone();
    plain["pending"] = serde_json::json!([]);
    std::fs::write(&line, plain.to_string()).unwrap();
    let text = run(&[&"import", &copied, &"--json", &"--replace", &line]).expect(0);
    assert!(text.contains("1 range of staged transactional acks went with what"), "{text}");
    run(&[&"verify", &copied]).expect(0);

    // Resolved, they can be.
    let open = ShareStore::open(&store, &options()).unwrap().blocking();
    let marker = Marker {
        producer_id: 77,
        producer_epoch: 5,
        coordinator_epoch: 0,
        outcome: Outcome::Commit,
        transaction_version: 2,
    };
    open.execute(Command::Marker(marker)).unwrap();
    open.close().unwrap();
    run(&[&"export", &store, &"--kafka", &file]).expect(0);
    let again = json(&run(&[&"import", &store, &"--replace", &"--report-json", &file]).expect(0));
    assert_eq!((&again["replaced"], &again["dropped_pending"]), (&4.into(), &0.into()));
    let second = dir.path().join("second");
    run(&[&"import", &second, &"--create", &file]).expect(0);
    assert_eq!(run(&[&"export", &second]).expect(0).lines().count(), 4);
}

#[test]
fn what_is_no_store_is_left_alone() {
    let dir = TempDir::new().unwrap();
    let (missing, empty, other) =
        (dir.path().join("missing"), dir.path().join("empty"), dir.path().join("other"));
    std::fs::create_dir(&empty).unwrap();
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("precious"), b"data").unwrap();
    let segment = cli::fixture("state-0.log");
    for path in [&missing, &empty, &other] {
        for command in ["inspect", "dump", "verify", "export", "pending", "producers"] {
            let error = run(&[&command, path]).expect_error(2);
            assert!(error.contains("is not a sharestate store"), "{command}: {error}");
            assert!(error.contains(&path.display().to_string()), "{command}: {error}");
        }
        run(&[&"show", path, &key(0).to_string()]).expect_error(2);
        run(&[&"import", path, &segment]).expect_error(2);
    }
    assert!(!missing.exists());
    assert_eq!(tree(&empty).len(), 0);
    let error = run(&[&"import", &other, &"--create", &segment]).expect_error(2);
    assert!(error.contains("holds other files"), "{error}");
    assert_eq!(tree(&other).len(), 1);
}

#[test]
fn a_store_in_use_can_be_looked_at_and_not_be_imported_into() {
    let dir = TempDir::new().unwrap();
    let store = make(dir.path());
    let error = run(&[&"import", &dir.path(), &"--replace", &cli::fixture("state-0.log")]);
    let error = error.expect_error(2);
    assert!(error.contains("in use") && error.contains("LOCK"), "{error}");
    let facts = json(&run(&[&"inspect", &dir.path(), &"--json"]).expect(0));
    assert_eq!((&facts["snapshot_lsn"], &facts["replayed"]), (&0.into(), &ENTRIES.into()));
    run(&[&"verify", &dir.path()]).expect(0);
    assert_eq!(run(&[&"export", &dir.path()]).expect(0).lines().count(), 4);
    assert_eq!(run(&[&"dump", &dir.path()]).expect(0).lines().count(), ENTRIES);
    store.blocking().close().unwrap();
}

#[test]
fn a_newer_format_is_refused_untouched() {
    let (_dir, store) = made();
    let path = store.join("STORE");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[8] = 200;
    // As a later release writes it, not as rot does.
    let checksum = crc32fast::hash(&bytes[..60]).to_le_bytes();
    bytes[60..].copy_from_slice(&checksum);
    std::fs::write(&path, bytes).unwrap();
    let before = tree(&store);
    for command in ["inspect", "dump", "verify", "export"] {
        let error = run(&[&command, &store]).expect_error(2);
        assert!(error.contains("format version 200") && error.contains("up to 1"), "{error}");
    }
    run(&[&"import", &store, &cli::fixture("state-0.log")]).expect_error(2);
    assert_untouched(&store, &before);

    flip(&path, 20);
    flip(&path, 8);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[8] = 1;
    std::fs::write(&path, bytes).unwrap();
    let text = run(&[&"verify", &store]).expect(1);
    assert!(text.contains("STORE at byte 0: expected "), "{text}");
    run(&[&"inspect", &store]).expect_error(1);
}

#[test]
fn a_closed_pipe_ends_the_command_quietly() {
    let (_dir, store) = made();
    let mut child = cli::command(&[&"dump", &store])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

/// Says so when the work is over, after a failed assertion as well.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_reader_beside_a_busy_store_sees_what_was_there() {
    let dir = TempDir::new().unwrap();
    let mut options = options();
    options.checkpoint_log_bytes = Some(48 << 10);
    let store = ShareStore::open(dir.path(), &options).unwrap();
    let blocking = store.blocking();
    for partition in 0..4 {
        blocking.initialize(&key(partition), 1, 0).unwrap();
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for partition in 0..4 {
            let (blocking, done) = (&blocking, &done);
            scope.spawn(move || {
                for round in 0.. {
                    if done.load(Ordering::Relaxed) {
                        return;
                    }
                    // Always the same two offsets, ever higher counts.
                    write(blocking, partition, 7, (round % 30_000) as i16);
                }
            });
        }
        let _over = Over(&done);
        let (mut last, mut purged, mut readings) = (0, 1, 0);
        while readings < 40 || (purged == 1 && readings < 1_000) {
            readings += 1;
            let answered = store.progress().durable_lsn;
            let mut reader = Reader::open(dir.path()).unwrap();
            let lsn = reader.report().last_lsn;
            assert!(lsn >= answered && lsn >= last, "{lsn} after {answered} and {last}");
            last = lsn;
            purged = purged.max(reader.report().first_lsn);
            let rows = reader.partitions(None, None, 100).unwrap().0;
            assert_eq!(rows.len(), 4);
            let newest = rows.iter().map(|(_, row)| row.last_lsn).max();
            assert_eq!(newest, Some(lsn), "the last entry is in a row");
        }
        run(&[&"verify", &dir.path()]).expect(0);
        assert!(purged > 1, "no segment was purged meanwhile: the test shows nothing");
        println!("{readings} readings up to LSN {last}, purged below LSN {purged}");
    });
    store.blocking().close().unwrap();
}
