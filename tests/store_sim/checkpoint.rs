//! What a checkpoint writes, when it may, and what may be purged behind it.

use std::path::Path;
use std::sync::Arc;

use sharestate::fsio::Fs;
use sharestate::fsio::sim::{PageModel, SimFs};
use sharestate::snapshot::MemoryRows;
use sharestate::{ShareStore, SyncPolicy};

use super::support::{batch, key, write};
use super::{Disk, ROOT, commit, everything, fill, options, put, stage};

/// A store with three share partitions.
fn started(disk: &Disk) -> sharestate::ShareStore {
    let store = disk.open();
    for partition in 0..3 {
        store.blocking().initialize(&key("g", partition), 1, 0).expect("initialize");
    }
    store
}

#[test]
fn a_checkpoint_is_one_atomic_write_however_many_rows_it_has() {
    let disk = Disk::empty();
    let store = started(&disk);
    stage(&store, 0, 7, 5);
    let before = disk.control.writes();
    store.blocking().checkpoint().expect("checkpoint");
    assert_eq!(disk.control.writes() - before, 1);
}

#[test]
fn every_changed_row_is_in_the_snapshot_and_no_deleted_one() {
    let disk = Disk::empty();
    let store = started(&disk);
    store.blocking().read(&key("g", 0), 7).expect("a leader epoch");
    // A new incarnation of the share partition keeps the fence but has no leader yet.
    store.blocking().initialize(&key("g", 0), 2, 0).expect("initialize again");
    put_at_epoch_two(&store);
    store.blocking().initialize(&key("g", 8), 1, 0).expect("initialize");
    store.blocking().checkpoint().expect("checkpoint");
    store.blocking().delete(&key("g", 8)).expect("delete");
    // One producer has only pending acks, one has completed a transaction.
    stage(&store, 1, 7, 5);
    stage(&store, 1, 8, 6);
    commit(&store, 8);
    store.blocking().checkpoint().expect("checkpoint");
    stage(&store, 2, 9, 7);
    let held = everything(&store);
    store.blocking().checkpoint().expect("checkpoint");
    drop(store);
    let reopened = disk.open();
    assert_eq!(reopened.recovery().replayed, 0, "all of it comes from the snapshot");
    assert_eq!(everything(&reopened), held);
    assert!(!held.iter().any(|row| row.starts_with("g:") && row.contains(":8 ")));
    // The fence that no leader has reached yet is there too.
    let error = reopened.blocking().write(&key("g", 0), write(&[])).expect_err("a stale leader");
    assert_eq!(error.kafka_code(), Some(74), "{error}");
}

#[test]
fn a_close_leaves_nothing_to_replay_also_behind_earlier_checkpoints() {
    let disk = Disk::empty();
    for offset in [1, 3, 5] {
        let store = disk.open();
        let initialized = store.blocking().initialize(&key("g", 0), 1, 0);
        initialized.expect("initialize, or a repeat of it");
        store.blocking().checkpoint().expect("checkpoint");
        put(&store, 0, offset);
        store.blocking().close().expect("close");
        let store = disk.open();
        assert_eq!(store.recovery().replayed, 0);
        let row = store.blocking().read(&key("g", 0), 0).expect("read").partition;
        assert_eq!(row.batches.last().map(|batch| batch.last_offset), Some(offset));
    }
}

#[test]
fn nobody_holds_the_files_once_a_close_has_answered() {
    for offset in 1..20 {
        let fs: Arc<dyn Fs> = Arc::new(SimFs::new(1));
        let rows = MemoryRows::default();
        let root = Path::new(ROOT);
        let store = ShareStore::open_with(Arc::clone(&fs), &rows, root, &options()).expect("open");
        store.blocking().initialize(&key("g", 0), 1, 0).expect("initialize");
        put(&store, 0, offset);
        store.blocking().close().expect("close");
        drop(store);
        assert_eq!(Arc::strong_count(&fs), 1);
    }
}

#[test]
fn rows_that_are_not_cached_are_read_as_the_newest_checkpoint_wrote_them() {
    let mut disk = Disk::empty();
    disk.options.cache_bytes = 0;
    drop(started(&disk));
    let store = disk.open();
    for offset in [1, 3, 5] {
        put(&store, 0, offset);
        store.blocking().checkpoint().expect("checkpoint");
        put(&store, 1, offset); // and what the cache held is given up
        let row = store.blocking().read(&key("g", 0), 0).expect("read").partition;
        assert_eq!(row.batches.last().map(|batch| batch.last_offset), Some(offset));
    }
}

fn put_at_epoch_two(store: &sharestate::ShareStore) {
    let mut write = write(&[batch(3, 3, 2, 1)]);
    write.state_epoch = 2;
    write.leader_epoch = 7;
    store.blocking().write(&key("g", 0), write).expect("write");
}

#[test]
fn a_row_that_changes_while_its_checkpoint_is_written_is_in_the_next_one() {
    let disk = Disk::empty();
    let store = started(&disk);
    put(&store, 0, 1);
    disk.control.hold();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| store.blocking().checkpoint());
        disk.control.until_a_write_waits();
        put(&store, 0, 3);
        disk.control.release();
        running.join().expect("caller").expect("checkpoint");
    });
    store.blocking().checkpoint().expect("checkpoint");
    let held = everything(&store);
    drop(store);
    let reopened = disk.open();
    assert_eq!((reopened.recovery().replayed, everything(&reopened)), (0, held));
}

#[test]
fn the_rows_of_a_failed_checkpoint_are_in_the_next_one() {
    let disk = Disk::empty();
    let store = started(&disk);
    put(&store, 0, 1);
    disk.control.fail(1);
    store.blocking().checkpoint().expect_err("told to fail");
    put(&store, 1, 1);
    store.blocking().checkpoint().expect("the next one");
    let held = everything(&store);
    drop(store);
    let reopened = disk.open();
    assert_eq!((reopened.recovery().replayed, everything(&reopened)), (0, held));
}

#[test]
fn nothing_is_purged_for_a_checkpoint_that_was_not_written() {
    let disk = Disk::empty();
    let store = started(&disk);
    fill(&store, 0);
    let segments = disk.segments();
    assert!(segments.len() > 4, "{segments:?}");
    disk.control.fail(1);
    store.blocking().checkpoint().expect_err("told to fail");
    assert_eq!(disk.segments(), segments);
    let held = everything(&store);
    let image = disk.power_cut(PageModel::UnsyncedLost);
    drop(store);
    assert_eq!(everything(&image.open()), held);
}

#[test]
fn the_log_reaches_back_one_checkpoint_further_than_the_newest() {
    let disk = Disk::empty();
    let store = started(&disk);
    let mut older = None;
    for round in 0..4 {
        fill(&store, round * 1_000);
        store.blocking().checkpoint().expect("checkpoint");
        // The rows of the newest checkpoint are lost; those of the one before are there.
        if let Some(rows) = older.replace(disk.rows.fork()) {
            let image = Disk::with(disk.fs.power_cut(PageModel::UnsyncedLost), rows);
            assert_eq!(everything(&image.open()), everything(&store), "round {round}");
        }
    }
    let first = disk.segments()[0].clone();
    assert_ne!(first, "00000000000000000001.wal", "nothing was purged");
}

#[test]
fn a_checkpoint_waits_until_the_log_is_durable_up_to_it() {
    let mut disk = Disk::empty();
    disk.options.sync = SyncPolicy::Never;
    let store = started(&disk);
    put(&store, 0, 1);
    store.blocking().checkpoint().expect("checkpoint");
    let held = everything(&store);
    let mut image = disk.power_cut(PageModel::UnsyncedLost);
    image.options.sync = SyncPolicy::Never;
    let reopened = image.open();
    assert_eq!(everything(&reopened), held);
    // And the log goes on from there.
    put(&reopened, 0, 3);
}
