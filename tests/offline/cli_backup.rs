//! `sharestate backup` and `sharestate restore` over real files.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use sharestate::{Marker, OpenError, Outcome, ShareStore};

use crate::cli::store::{ENTRIES, made, options, segments, write};
use crate::cli::{assert_untouched, command, flip, json, run, tree};
use crate::support::contents;

fn state(store: &Path) -> Vec<String> {
    let store = ShareStore::open(store, &options()).unwrap();
    let rows = contents(&store);
    store.blocking().close().unwrap();
    rows
}

#[test]
fn a_backup_verifies_is_not_opened_and_is_restored_with_its_prepared_acks() {
    let (dir, store) = made();
    let (copy, back) = (dir.path().join("backup"), dir.path().join("back"));
    let files = tree(&store);
    let report = json(&run(&[&"backup", &store, &copy, &"--json"]).expect(0));
    assert_eq!(report["last_lsn"], ENTRIES);
    assert_untouched(&store, &files);
    assert_eq!(json(&run(&[&"verify", &copy, &"--json"]).expect(0))["verdict"], "clean");
    let opened = ShareStore::open(&copy, &options()).map(drop);
    assert!(matches!(opened, Err(OpenError::Backup { .. })), "{opened:?}");
    for args in [["repair"].as_slice(), &["repair", "--salvage"]] {
        let mut all: Vec<&dyn AsRef<std::ffi::OsStr>> =
            args.iter().map(|arg| arg as &dyn AsRef<std::ffi::OsStr>).collect();
        all.push(&copy);
        assert!(run(&all).expect_error(2).contains("is a backup"));
    }
    let error = run(&[&"backup", &copy, &back]).expect_error(2);
    assert!(error.contains("is a backup"), "{error}");

    let backup = tree(&copy);
    let report = json(&run(&[&"restore", &copy, &back, &"--json"]).expect(0));
    assert_eq!(report["next_lsn"], 1_u64 << 40);
    assert_untouched(&copy, &backup);
    assert_eq!(json(&run(&[&"verify", &back, &"--json"]).expect(0))["verdict"], "clean");
    let expected = state(&store);
    let restored = ShareStore::open(&back, &options()).unwrap();
    assert_eq!(contents(&restored), expected);
    let original = ShareStore::open(&store, &options()).unwrap();
    assert_eq!(restored.uuid(), original.uuid());
    // The transaction that was open ends in both, each by its own marker.
    for store in [&restored, &original] {
        let marker = Marker {
            producer_id: 77,
            producer_epoch: 5,
            coordinator_epoch: 1,
            outcome: Outcome::Commit,
            transaction_version: 2,
        };
        let resolved = store.blocking().marker(marker).unwrap();
        assert_eq!(resolved.partitions.len(), 2);
    }
    assert!(restored.progress().durable_lsn >= 1 << 40);
    assert_eq!(original.progress().durable_lsn, ENTRIES as u64 + 1);
    write(&restored.blocking(), 2, 900, 1);
    restored.blocking().close().unwrap();
    run(&[&"verify", &back]).expect(0);
}

#[test]
fn files_of_the_original_never_pass_for_those_of_a_restored_store() {
    let (dir, store) = made();
    let (copy, back) = (dir.path().join("backup"), dir.path().join("back"));
    run(&[&"backup", &store, &copy]).expect(0);
    run(&[&"restore", &copy, &back]).expect(0);
    let open = ShareStore::open(&store, &options()).unwrap();
    write(&open.blocking(), 2, 900, 1); // after the backup
    open.blocking().close().unwrap();
    let restored = ShareStore::open(&back, &options()).unwrap();
    write(&restored.blocking(), 2, 700, 1);
    drop(restored);
    // The original's snapshot under the restored store's log, and the other way round.
    for (from, to) in [(&store, &back), (&back, &store)] {
        let mixed = dir.path().join("mixed");
        let _ = std::fs::remove_dir_all(&mixed);
        crate::cli::copy(to, &mixed);
        std::fs::remove_dir_all(mixed.join("snapshot")).unwrap();
        crate::cli::copy(&from.join("snapshot"), &mixed.join("snapshot"));
        let opened = ShareStore::open(&mixed, &options()).map(drop);
        assert!(matches!(opened, Err(OpenError::Log(_))), "{opened:?}");
    }
}

#[test]
fn a_damaged_backup_is_not_restored_and_a_taken_target_not_used() {
    let (dir, store) = made();
    let (copy, back) = (dir.path().join("backup"), dir.path().join("back"));
    run(&[&"backup", &store, &copy]).expect(0);
    let error = run(&[&"backup", &store, &copy]).expect_error(2);
    assert!(error.contains("it is not empty"), "{error}");
    let error = run(&[&"restore", &copy, &store]).expect_error(2);
    assert!(error.contains("it is not empty"), "{error}");
    std::fs::create_dir(&back).unwrap();
    let mut damaged = 0;
    let files = tree(&copy).into_iter().filter(|(path, bytes)| {
        let name = path.file_name().unwrap().to_str().unwrap();
        !bytes.is_empty() && (name.ends_with(".wal") || name.ends_with(".sst"))
    });
    for (path, _) in files {
        flip(&path, 90);
        let error = run(&[&"restore", &copy, &back]).expect_error(1);
        assert!(error.contains("is damaged"), "{error}");
        assert_eq!(std::fs::read_dir(&back).unwrap().count(), 0, "the target is not begun");
        flip(&path, 90);
        damaged += 1;
    }
    assert!(damaged > 3, "{damaged}");
    run(&[&"restore", &copy, &back]).expect(0); // an empty directory, such as a mount point
    let path = &segments(&store)[0];
    flip(path, 90);
    let error = run(&[&"backup", &store, &dir.path().join("other")]).expect_error(1);
    assert!(error.contains("repair it first"), "{error}");
}

#[test]
fn a_killed_backup_leaves_the_store_as_it_was_and_no_backup() {
    let (dir, store) = made();
    let files = tree(&store);
    let (mut unfinished, mut finished) = (0, 0);
    for delay in 0..40 {
        let target = dir.path().join(format!("backup-{delay}"));
        let mut child = command(&[&"backup", &store, &target])
            .stdout(Stdio::null())
            .spawn()
            .expect("the binary starts");
        std::thread::sleep(Duration::from_micros(delay * delay * 300));
        child.kill().expect("kill");
        child.wait().expect("wait");
        assert_untouched(&store, &files);
        let verified = run(&[&"verify", &target]);
        if target.join("BACKUP").exists() && !target.join("COPYING").exists() {
            verified.expect(0);
            finished += 1;
        } else {
            verified.expect_error(2);
            let restored = run(&[&"restore", &target, &dir.path().join("back")]);
            restored.expect_error(2);
            unfinished += 1;
        }
    }
    println!("killed-backups unfinished={unfinished} finished={finished}");
    assert!(unfinished > 0);
    assert_eq!(state(&store).len(), 4);
}
