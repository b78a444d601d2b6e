//! `sharestate repair` over real files.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use sharestate::snapshot::{Family, RocksMode, RocksRows, RowOp, RowStore as _};
use sharestate::{ShareStore, codec};

use crate::cli::store::{ENTRIES, key, made, options, segments, write};
use crate::cli::{Run, assert_untouched, copy, flip, json, run, tree};
use crate::support::contents;

fn state(store: &Path) -> Vec<String> {
    let store = ShareStore::open(store, &options()).unwrap();
    let rows = contents(&store);
    store.blocking().close().unwrap();
    rows
}

/// Runs `repair --salvage` on a terminal and types `answer`.
fn on_a_terminal(store: &Path, answer: &str) -> Run {
    let line = format!("{} repair --salvage {}", env!("CARGO_BIN_EXE_sharestate"), store.display());
    let mut child = Command::new("script")
        .args(["--quiet", "--return", "--flush", "--command", &line, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script(1) of util-linux");
    child.stdin.take().unwrap().write_all(format!("{answer}\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    Run { code: output.status.code(), out, err: String::new() }
}

/// Frames of the last segment but one, in the middle: what is behind the rot is vouched for.
fn rot(store: &Path) -> (PathBuf, usize) {
    let paths = segments(store);
    let path = paths[paths.len() - 2].clone();
    let bytes = std::fs::read(&path).unwrap();
    let mut frames = (64..bytes.len()).step_by(8).filter(|at| bytes[*at..].starts_with(b"SFRM"));
    let at = frames.nth(10).expect("a frame");
    flip(&path, at + 30);
    (path, at)
}

/// A store whose snapshot knows nothing and whose log is rotten in the middle.
fn rotten() -> (tempfile::TempDir, PathBuf, PathBuf, usize) {
    let (dir, store) = made();
    let rows = RocksRows::open(&store.join("snapshot"), &RocksMode::ReadWrite, 1 << 20).unwrap();
    rows.write(vec![RowOp::delete(Family::Meta, b"applied_lsn".to_vec())]).unwrap();
    drop(rows);
    let (path, at) = rot(&store);
    (dir, store, path, at)
}

fn tear(store: &Path) {
    let path = segments(store).pop().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() / 8 * 8 + 64;
    bytes.copy_within(64..64 + 90, end);
    std::fs::write(&path, bytes).unwrap();
}

#[test]
fn a_torn_tail_is_cut_and_nothing_is_left_to_do() {
    let (_dir, store) = made();
    let before = state(&store);
    tear(&store);
    let files = tree(&store);
    let plan = json(&run(&[&"repair", &store, &"--dry-run", &"--json"]).expect(0));
    assert_eq!((&plan["condition"], &plan["done"]), (&"torn".into(), &"nothing".into()));
    assert_eq!(plan["torn"]["lsn"], ENTRIES + 1);
    assert_untouched(&store, &files);
    let text = run(&[&"repair", &store]).expect(0);
    assert!(text.contains("torn      ") && text.contains("done      cut; nothing"), "{text}");
    assert_eq!(tree(&store.join("quarantine")).len(), 1, "the cut bytes are kept");
    assert_eq!(json(&run(&[&"verify", &store, &"--json"]).expect(0))["verdict"], "clean");
    let text = run(&[&"repair", &store]).expect(0);
    assert_eq!(text, "done      nothing to do, the store is whole\n");
    assert_eq!(state(&store), before);
    let open = ShareStore::open(&store, &options()).unwrap().blocking();
    write(&open, 2, 900, 1);
    open.close().unwrap();
    run(&[&"verify", &store]).expect(0);
}

#[test]
fn other_damage_is_refused_with_its_place_and_what_a_salvage_would_do() {
    let (_dir, store, path, at) = rotten();
    let files = tree(&store);
    for dry_run in [false, true] {
        let args: &[&dyn AsRef<std::ffi::OsStr>] =
            if dry_run { &[&"repair", &store, &"--dry-run"] } else { &[&"repair", &store] };
        let text = run(args).expect(1);
        for expected in [
            format!("rotten    {} at byte {at}: ", path.display()),
            "damage    ".into(),
            "keep      everything up to LSN ".into(),
            "lose      ".into(),
            "older     share partition group:with:colons:".into(),
            "to do     --salvage goes on from there".into(),
        ] {
            assert!(text.contains(&expected), "{expected} in: {text}");
        }
    }
    assert_untouched(&store, &files);
    let text = run(&[&"repair", &store, &"--salvage", &"--dry-run"]).expect(0);
    assert!(text.contains("keep      "), "{text}");
    let error = run(&[&"repair", &store, &"--salvage"]).expect_error(2);
    assert!(error.contains("no terminal") && error.contains("--yes-lose-data"), "{error}");
    assert_untouched(&store, &files);
}

#[test]
fn a_salvage_asks_and_only_the_word_confirms() {
    let (_dir, store, path, _) = rotten();
    let files = tree(&store);
    for answer in ["", "yes", "y", "Salvage"] {
        let answered = on_a_terminal(&store, answer);
        assert_eq!(answered.code, Some(2), "{answered:?}");
        assert!(answered.out.contains("Type salvage: "), "{answered:?}");
        assert!(answered.out.contains("keep      everything up to LSN"), "{answered:?}");
        assert!(answered.out.contains("not confirmed, nothing was changed"), "{answered:?}");
        assert_untouched(&store, &files);
    }
    let answered = on_a_terminal(&store, "salvage");
    assert_eq!(answered.code, Some(0), "{answered:?}");
    assert!(answered.out.contains("done      salvaged; LSNs go on at 1099511627776"));
    let name = path.file_name().unwrap();
    let kept: Vec<_> = tree(&store.join("quarantine")).into_iter().collect();
    let (_, copy) = kept.iter().find(|(kept, _)| kept.ends_with(name)).expect("the evidence");
    assert_eq!(*copy, files[&path]);
}

#[test]
fn a_salvaged_store_verifies_opens_and_works_on() {
    let (_dir, store, ..) = rotten();
    let plan = json(&run(&[&"repair", &store, &"--dry-run", &"--json"]).expect(1));
    let damage = &plan["damage"];
    let kept = damage["kept_lsn"].as_u64().unwrap();
    assert!(kept > 100 && kept < ENTRIES as u64, "{plan}");
    assert_eq!(damage["snapshot_lsn"], Value::Null, "it is made anew");
    let report = run(&[&"repair", &store, &"--salvage", &"--yes-lose-data", &"--json"]);
    let report = json(&report.expect(0));
    assert_eq!((&report["done"], &report["damage"]), (&"salvaged".into(), damage));
    let verified = json(&run(&[&"verify", &store, &"--json"]).expect(0));
    assert_eq!(verified["verdict"], "clean", "{verified}");
    // As many entries as were kept, and no more.
    let open = ShareStore::open(&store, &options()).unwrap();
    assert_eq!(open.progress().durable_lsn, report["next_lsn"].as_u64().unwrap() - 1);
    for partition in 0..3 {
        write(&open.blocking(), partition, 900, 1);
    }
    let now = contents(&open);
    open.blocking().close().unwrap();
    assert_eq!(state(&store), now);
    run(&[&"verify", &store]).expect(0);
    let text = run(&[&"repair", &store, &"--salvage", &"--yes-lose-data"]).expect(0);
    assert_eq!(text, "done      nothing to do, the store is whole\n");
}

#[test]
fn damage_in_any_file_of_rocksdb_costs_nothing_while_the_log_reaches_back() {
    let (dir, store) = made();
    // Opening once more turns the snapshot's own log into tables, and purges nothing.
    let expected = state(&store);
    let damaged = dir.path().join("damaged");
    let mut salvaged = 0;
    for (path, bytes) in tree(&store.join("snapshot")) {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        for cut in [None, Some(1), Some(bytes.len() / 4), Some(bytes.len().saturating_sub(10))] {
            let _ = std::fs::remove_dir_all(&damaged);
            copy(&store, &damaged);
            let file = damaged.join("snapshot").join(&name);
            match cut {
                None => std::fs::remove_file(&file).unwrap(),
                Some(at) if at < bytes.len() => flip(&file, at),
                Some(_) => continue,
            }
            if run(&[&"verify", &damaged]).code == Some(0) {
                continue; // a file of RocksDB's that holds no state
            }
            let context = format!("{name}, {cut:?}");
            let text = run(&[&"repair", &damaged]).expect(1);
            assert!(text.contains("lose      nothing"), "{context}: {text}");
            run(&[&"repair", &damaged, &"--salvage", &"--yes-lose-data"]).expect(0);
            run(&[&"verify", &damaged]).expect(0);
            assert_eq!(state(&damaged), expected, "{context}");
            salvaged += 1;
        }
    }
    println!("damaged-rocksdb-files={salvaged} lost=0");
    assert!(salvaged > 8, "{salvaged}");
}

#[test]
fn rows_that_contradict_each_other_are_made_anew() {
    let (_dir, store) = made();
    let expected = state(&store);
    let rows = RocksRows::open(&store.join("snapshot"), &RocksMode::ReadWrite, 1 << 20).unwrap();
    let mut reader = sharestate::inspect::Reader::open(&store).unwrap();
    let mut row = sharestate::Partition::clone(&reader.partition(&key(2)).unwrap().unwrap());
    row.batches.reverse();
    let value = codec::encode_partition(&row).unwrap();
    let row_key = codec::encode_partition_key(&key(2));
    rows.write(vec![RowOp::put(Family::Partition, row_key, value)]).unwrap();
    drop((rows, reader));
    let text = run(&[&"repair", &store]).expect(1);
    assert!(
        text.contains("batches are not sorted") && text.contains("lose      nothing"),
        "{text}"
    );
    run(&[&"repair", &store, &"--salvage", &"--yes-lose-data"]).expect(0);
    run(&[&"verify", &store]).expect(0);
    assert_eq!(state(&store), expected);
}

#[test]
fn a_damaged_snapshot_whose_log_was_purged_is_refused_for_a_backup() {
    let (_dir, store) = made();
    let open = ShareStore::open(&store, &options()).unwrap().blocking();
    write(&open, 2, 900, 1);
    open.close().unwrap(); // the second checkpoint lets the beginning of the log go
    std::fs::remove_file(store.join("snapshot/CURRENT")).unwrap();
    let files = tree(&store);
    for args in [["repair"].as_slice(), &["repair", "--salvage", "--yes-lose-data"]] {
        let mut all: Vec<&dyn AsRef<std::ffi::OsStr>> =
            args.iter().map(|arg| arg as &dyn AsRef<std::ffi::OsStr>).collect();
        all.push(&store);
        let text = run(&all).expect(1);
        assert!(text.contains("keep      nothing: the snapshot is damaged and the log"), "{text}");
        assert!(text.contains("to do     restore a backup"), "{text}");
    }
    assert_untouched(&store, &files);
}
