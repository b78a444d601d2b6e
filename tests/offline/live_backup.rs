//! Backups of a store at work: everything answered before the call is in them, nothing submitted
//! after it has returned, and they share no file with the store.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use sharestate::{BackupError, ErrorClass, OpenError, ShareStore, restore};

use crate::support::{batch, key, log_only, open, small, tree, write};

const WRITERS: i32 = 4;

/// Acknowledges one offset after the other until told to stop; what is submitted is counted before,
/// what is answered afterwards.
fn acknowledge(store: &ShareStore, writer: i32, submitted: &AtomicI64, answered: &AtomicI64) {
    let store = store.blocking();
    let next = submitted.load(Ordering::SeqCst);
    submitted.store(next + 1, Ordering::SeqCst);
    store.write(&key("live", writer), write(&[batch(next, next, 2, 1)])).expect("write");
    answered.store(next + 1, Ordering::SeqCst);
}

/// How many offsets, from 0 on, are acknowledged in each share partition; there is nothing else.
fn prefixes(store: &ShareStore) -> BTreeMap<i32, i64> {
    let page = store.blocking().list(None, None, 100).expect("list");
    let rows = page.partitions.iter();
    rows.map(|(key, row)| {
        let count = match row.batches.as_slice() {
            [] => 0,
            [one] => {
                assert_eq!((one.first_offset, one.delivery_state.0), (0, 2), "{key}");
                one.last_offset + 1
            }
            more => panic!("{key} is no prefix: {more:?}"),
        };
        (key.partition(), count)
    })
    .collect()
}

#[test]
fn a_backup_under_load_holds_a_prefix_that_the_calls_bound() {
    let dir = tempfile::tempdir().expect("directory");
    // Frequent checkpoints and purges while the copies are made.
    let store = open(&dir.path().join("store"), &small());
    let counters: Vec<_> = (0..WRITERS).map(|_| (AtomicI64::new(0), AtomicI64::new(0))).collect();
    for writer in 0..WRITERS {
        store.blocking().initialize(&key("live", writer), 1, 0).expect("initialize");
    }
    let stop = AtomicBool::new(false);
    let mut checked = Vec::new();
    std::thread::scope(|scope| {
        for (writer, (submitted, answered)) in (0..).zip(&counters) {
            let (store, stop) = (&store, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::SeqCst) {
                    acknowledge(store, writer, submitted, answered);
                }
            });
        }
        for round in 0..6 {
            let target = dir.path().join(format!("backup-{round}"));
            let before: Vec<_> =
                counters.iter().map(|(_, answered)| answered.load(Ordering::SeqCst)).collect();
            let done = store.blocking().backup(&target).expect("backup");
            let after: Vec<_> =
                counters.iter().map(|(submitted, _)| submitted.load(Ordering::SeqCst)).collect();
            checked.push((target, done, before, after));
        }
        stop.store(true, Ordering::SeqCst);
    });
    let mut total = 0;
    for (round, (target, done, before, after)) in checked.iter().enumerate() {
        share_no_file(&dir.path().join("store"), target);
        let back = dir.path().join(format!("back-{round}"));
        restore(target, &back).expect("restore");
        let restored = open(&back, &small());
        let found = prefixes(&restored);
        let mut entries = i64::from(WRITERS);
        for writer in 0..WRITERS {
            let index = writer as usize;
            let count = found[&writer];
            assert!(
                (before[index]..=after[index]).contains(&count),
                "round {round}, writer {writer}: {count} not in {}..={}",
                before[index],
                after[index]
            );
            entries += count;
        }
        // One moment of the whole store, not one of each share partition.
        assert_eq!(done.last_lsn, entries as u64, "round {round}");
        total += entries;
    }
    println!("live-backups={} entries={total} lost=0 invented=0", checked.len());
}

fn share_no_file(store: &Path, backup: &Path) {
    let inodes = |dir: &Path| -> Vec<_> {
        let files = tree(dir).into_iter().map(|(path, _)| std::fs::metadata(path).expect("stat"));
        files.map(|data| (data.dev(), data.ino(), data.nlink())).collect()
    };
    let ours = inodes(store);
    for (dev, ino, links) in inodes(backup) {
        assert_eq!(links, 1, "a file of the backup has another name");
        assert!(!ours.iter().any(|(other_dev, other, _)| (*other_dev, *other) == (dev, ino)));
    }
}

#[test]
fn a_backup_to_another_file_system_is_a_copy_too() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("directory");
    let other = tempfile::tempdir_in("/dev/shm").expect("directory");
    let device = |path: &Path| std::fs::metadata(path).expect("stat").dev();
    assert_ne!(device(dir.path()), device(other.path()), "two file systems");
    let store = open(&dir.path().join("store"), &log_only());
    crate::support::fill(&store, "g", 3, 200);
    let target = other.path().join("backup");
    store.blocking().backup(&target).expect("backup");
    let expected = crate::support::contents(&store);
    restore(&target, dir.path().join("back")).expect("restore");
    let back = open(&dir.path().join("back"), &log_only());
    assert_eq!(crate::support::contents(&back), expected);
}

#[test]
fn a_store_closed_during_a_backup_can_be_opened_at_once() {
    let dir = tempfile::tempdir().expect("directory");
    let path = dir.path().join("store");
    let (mut made, mut late) = (0, 0);
    for round in 0..8 {
        let store = open(&path, &log_only());
        crate::support::fill(&store, "g", 1, 20);
        let (backup, target) = (store.blocking(), dir.path().join(format!("backup-{round}")));
        let backup = std::thread::spawn(move || backup.backup(&target));
        if round % 2 == 0 {
            std::thread::yield_now();
        } else {
            std::thread::sleep(std::time::Duration::from_millis(5 * round));
        }
        store.blocking().close().expect("close");
        drop(open(&path, &log_only())); // while the old handles still exist
        match backup.join().expect("no panic") {
            Ok(_) => made += 1,
            Err(BackupError::Checkpoint(_)) => late += 1,
            Err(error) => panic!("{error}"),
        }
    }
    println!("backups-while-closing made={made} late={late}");
}

#[test]
fn a_taken_target_and_a_closed_store_are_refused() {
    let dir = tempfile::tempdir().expect("directory");
    let path = dir.path().join("store");
    let store = open(&path, &log_only());
    crate::support::fill(&store, "g", 1, 10);
    let error = store.blocking().backup(dir.path()).expect_err("taken");
    assert!(matches!(&error, BackupError::Open(OpenError::NotAStore { .. })), "{error}");
    let error = store.blocking().backup(&path.join("inside")).expect_err("inside");
    assert_eq!(error.class(), ErrorClass::Rejected, "{error}");
    let error = store.blocking().backup(Path::new("/nowhere/at/all")).expect_err("no parent");
    assert_eq!(error.class(), ErrorClass::Io, "{error}");
    // The store goes on.
    crate::support::fill(&store, "h", 1, 10);
    store.blocking().close().expect("close");
    let error = store.blocking().backup(&dir.path().join("late")).expect_err("closed");
    assert!(matches!(&error, BackupError::Checkpoint(_)), "{error}");
    assert!(!dir.path().join("late").exists());
}
