//! Checkpoints fold the log into the snapshot, the log stays bounded, and a snapshot that lost its
//! newest batch heals.
#![cfg(feature = "rocksdb")]

mod support;

use std::fs;
use std::time::Duration;

use sharestate::ShareStore;
use support::{
    batch, contents, copy_dir, crash_image, fill, key, log_only, open, segments, small, write,
};

fn read(store: &ShareStore, partition: i32) -> Vec<sharestate::StateBatch> {
    let answer = store.blocking().read(&key("g", partition), 0).expect("read");
    answer.partition.batches
}

#[test]
fn the_log_stays_bounded_while_everything_is_kept() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open(dir.path(), &small());
    fill(&store, "g", 5, 6_000);
    let written = store.progress().durable_lsn;
    let before = contents(&store);
    assert!(segments(dir.path()).len() <= 8, "{} segments", segments(dir.path()).len());
    assert!(store.progress().applied_lsn > written / 2);
    drop(store);
    let reopened = open(dir.path(), &small());
    assert_eq!(contents(&reopened), before);
}

#[test]
fn the_log_reaches_back_one_checkpoint_further_than_needed() {
    let dir = tempfile::tempdir().expect("directory");
    let live = dir.path().join("live");
    let store = open(&live, &log_only());
    fill(&store, "g", 3, 1_500);
    let first = store.blocking().checkpoint().expect("checkpoint");
    let old_snapshot = dir.path().join("old-snapshot");
    copy_dir(&live.join("snapshot"), &old_snapshot);
    fill(&store, "h", 3, 1_500);
    let second = store.blocking().checkpoint().expect("checkpoint");
    assert!(second > first);
    fill(&store, "i", 3, 100);
    let before = contents(&store);
    let image = dir.path().join("image");
    crash_image(&live, &image);
    // RocksDB has lost its newest batch.
    fs::remove_dir_all(image.join("snapshot")).expect("remove");
    copy_dir(&old_snapshot, &image.join("snapshot"));
    let healed = open(&image, &log_only());
    assert_eq!(healed.recovery().snapshot_lsn, first);
    assert_eq!(contents(&healed), before);
}

#[test]
fn a_checkpoint_of_an_unchanged_store_is_the_last_one() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open(dir.path(), &log_only());
    assert_eq!(store.blocking().checkpoint().expect("checkpoint"), 0);
    fill(&store, "g", 1, 9);
    assert_eq!(store.blocking().checkpoint().expect("checkpoint"), 10);
    assert_eq!(store.blocking().checkpoint().expect("checkpoint"), 10);
    assert_eq!(store.progress().applied_lsn, 10);
}

#[test]
fn changes_that_grow_old_are_checkpointed_without_being_asked() {
    let dir = tempfile::tempdir().expect("directory");
    let mut options = log_only();
    options.checkpoint_interval = Duration::from_millis(30);
    let store = open(dir.path(), &options);
    fill(&store, "g", 1, 3);
    for _ in 0..1_000 {
        if store.progress().applied_lsn == 4 {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("no checkpoint in ten seconds");
}

#[test]
fn deleted_rows_leave_the_snapshot_too() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open(dir.path(), &log_only());
    fill(&store, "g", 3, 30);
    store.blocking().checkpoint().expect("checkpoint");
    store.blocking().delete(&key("g", 1)).expect("delete");
    assert_eq!(contents(&store).len(), 2, "a deletion hides the snapshot's row at once");
    store.blocking().checkpoint().expect("checkpoint");
    drop(store);
    let reopened = open(dir.path(), &log_only());
    assert_eq!(contents(&reopened).len(), 2);
    assert_eq!(support::code(reopened.blocking().read(&key("g", 1), 0)), 42);
}

#[test]
fn cold_rows_are_read_through_and_a_small_cache_holds_any_number() {
    let dir = tempfile::tempdir().expect("directory");
    let mut options = log_only();
    options.cache_bytes = 16 << 10;
    let store = open(dir.path(), &options);
    let partitions = 500;
    fill(&store, "g", partitions, 2_000);
    store.blocking().checkpoint().expect("checkpoint");
    for round in 0..3 {
        for partition in 0..partitions {
            assert_eq!(read(&store, partition).len(), 4, "round {round}, partition {partition}");
        }
    }
    // A cold row is changed on top of what the snapshot holds.
    store.blocking().write(&key("g", 7), write(&[batch(9_000, 9_009, 2, 1)])).expect("write");
    assert_eq!(read(&store, 7).len(), 5);
}

#[test]
fn changed_rows_are_bounded_by_checkpoints_that_hold_writers_back() {
    let dir = tempfile::tempdir().expect("directory");
    let mut options = log_only();
    options.memory_bytes = 32 << 10;
    options.cache_bytes = 8 << 10;
    let store = open(dir.path(), &options);
    fill(&store, "g", 400, 4_000);
    assert!(store.progress().applied_lsn > 0, "the budget made checkpoints necessary");
    let before = contents(&store);
    drop(store);
    assert_eq!(contents(&open(dir.path(), &log_only())), before);
}

#[test]
fn a_walk_sees_snapshot_and_memory_as_one() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open(dir.path(), &log_only());
    let blocking = store.blocking();
    let init = |partition: i32| {
        blocking.initialize(&key("g", partition), 1, 0).expect("initialize");
    };
    (0..100).step_by(2).for_each(init);
    blocking.checkpoint().expect("checkpoint");
    (1..100).step_by(2).for_each(init);
    for partition in (0..100).step_by(10) {
        blocking.delete(&key("g", partition)).expect("delete");
    }
    blocking.initialize(&key("a", 0), 1, 0).expect("initialize");
    blocking.initialize(&key("z", 0), 1, 0).expect("initialize");
    for limit in [1, 2, 3, 7, 50, 1_000] {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = blocking.list(Some("g"), after.as_ref(), limit).expect("list");
            assert!(page.partitions.len() <= limit);
            seen.extend(page.partitions.iter().map(|(key, _)| key.partition()));
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        let expected: Vec<i32> = (0..100).filter(|partition| partition % 10 != 0).collect();
        assert_eq!(seen, expected, "limit {limit}");
    }
    let deleted = blocking.delete_group("g").expect("delete");
    assert_eq!((deleted.partitions, deleted.dropped), (90, 0));
    assert_eq!(contents(&store).len(), 2);
    let topic = key("a", 0).topic_id();
    assert_eq!(blocking.delete_topic(topic).expect("delete").partitions, 2);
    assert_eq!(blocking.delete_topic(topic).expect("again").partitions, 0);
}

#[test]
fn rot_in_the_snapshots_own_log_heals_by_replay_and_is_told() {
    let dir = tempfile::tempdir().expect("directory");
    let live = dir.path().join("live");
    let store = open(&live, &log_only());
    fill(&store, "g", 3, 300);
    store.blocking().checkpoint().expect("checkpoint");
    fill(&store, "h", 3, 300);
    store.blocking().checkpoint().expect("checkpoint");
    let before = contents(&store);
    let image = dir.path().join("image");
    crash_image(&live, &image);
    drop(store);
    let rocks_log = fs::read_dir(image.join("snapshot"))
        .expect("list")
        .map(|entry| entry.expect("entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .max_by_key(|path| path.metadata().expect("size").len())
        .expect("RocksDB's log");
    let good = fs::read(&rocks_log).expect("read");
    let mut healed = 0;
    for at in (20..good.len() - 20).step_by(good.len() / 12) {
        let damaged = dir.path().join(format!("damaged-{at}"));
        copy_dir(&image, &damaged);
        let mut bytes = good.clone();
        bytes[at] ^= 0x40;
        fs::write(damaged.join("snapshot").join(rocks_log.file_name().expect("name")), &bytes)
            .expect("write");
        match ShareStore::open(&damaged, &log_only()) {
            Ok(store) => {
                assert_eq!(contents(&store), before, "byte {at}");
                let report = store.recovery();
                assert!(report.snapshot_damage.is_some(), "byte {at}: healed without a word");
                healed += 1;
            }
            // Too much is gone for the log to make good: damage, never an older or empty store.
            Err(error) => {
                assert_eq!(error.class(), sharestate::ErrorClass::Corrupt, "byte {at}: {error}");
            }
        }
    }
    println!("flipped-bytes=12 healed={healed}");
    assert!(healed > 0);
}
