//! What opening a directory takes for a store, and what it does to it.

use std::path::Path;
use std::sync::Arc;

use sharestate::engine::directory::{Contents, Directory};
use sharestate::engine::recovery::Replay;
use sharestate::fsio::Fs;
use sharestate::fsio::sim::PageModel;
use sharestate::log::{Entry, Scope, scan};
use sharestate::snapshot::Snapshot;
use sharestate::{Create, OpenError};

use super::support::{key, write};
use super::{Disk, ROOT, commit, everything, put, stage};

#[test]
fn a_store_is_open_once_at_a_time() {
    let disk = Disk::empty();
    let store = disk.open();
    let error = disk.try_open().expect_err("it is open");
    assert!(matches!(error, OpenError::Locked { .. }), "{error}");
    drop(store);
    disk.open();
}

#[test]
fn a_damaged_identity_is_refused_and_nothing_is_made_anew() {
    let disk = Disk::empty();
    let store = disk.open();
    store.blocking().initialize(&key("g", 0), 1, 0).expect("initialize");
    put(&store, 0, 1);
    let held = everything(&store);
    drop(store);
    let path = Path::new(ROOT).join("STORE");
    let whole = disk.fs.content(&path).expect("STORE");
    let segments = disk.segments();
    for bit in 0..whole.len() * 8 {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        disk.fs.set_content(&path, &damaged);
        let error = disk.try_open().expect_err("damaged");
        let told = matches!(error, OpenError::BadIdentity { .. } | OpenError::NewerFormat { .. });
        assert!(told, "bit {bit}: {error}");
        assert_eq!(disk.segments(), segments, "bit {bit}");
    }
    for cut in 0..whole.len() {
        disk.fs.set_content(&path, &whole[..cut]);
        let error = disk.try_open().expect_err("cut short");
        assert!(matches!(error, OpenError::BadIdentity { .. }), "cut {cut}: {error}");
    }
    disk.fs.set_content(&path, &whole);
    assert_eq!(everything(&disk.open()), held);
}

#[test]
fn every_opening_raises_the_incarnation_durably_also_when_it_writes_nothing() {
    let mut disk = Disk::empty();
    disk.open();
    for expected in 2..6 {
        let store = disk.open();
        assert_eq!(store.recovery().incarnation, expected);
        drop(store);
        disk = disk.power_cut(PageModel::UnsyncedLost);
    }
}

/// RocksDB writes when it is opened, so a full disk can fail it.
#[test]
fn the_reserve_is_given_up_to_open_the_snapshot_and_not_for_a_damaged_one() {
    let reserve = Path::new(ROOT).join("RESERVE");
    for (failing, corrupt, reserved, opens, left) in [
        (1, false, true, true, true),
        (2, false, true, false, false),
        (1, true, true, false, true),
        (1, false, false, false, false),
    ] {
        let mut disk = Disk::empty();
        disk.options.reserve_bytes = if reserved { 4_096 } else { 0 };
        drop(disk.open());
        assert_eq!(disk.fs.exists(&reserve).expect("answer"), reserved);
        disk.control.fail_opens(failing, corrupt);
        let opened = disk.try_open();
        let what = format!("{failing} {corrupt} {reserved}: {opened:?}");
        assert_eq!(opened.is_ok(), opens, "{what}");
        // An opening that succeeds makes it anew.
        assert_eq!(disk.fs.exists(&reserve).expect("answer"), left, "{what}");
    }
}

#[test]
fn a_store_is_made_and_found_as_the_caller_asks() {
    let mut disk = Disk::empty();
    disk.options.create = Create::Never;
    assert!(matches!(disk.try_open(), Err(OpenError::NotAStore { .. })));
    disk.options.create = Create::New;
    let store = disk.open();
    assert!(store.recovery().created);
    drop(store);
    assert!(matches!(disk.try_open(), Err(OpenError::Exists { .. })));
    disk.options.create = Create::Never;
    let store = disk.open();
    assert!(!store.recovery().created);
    store.blocking().initialize(&key("g", 0), 1, 0).expect("initialize");
    put(&store, 0, 1);
    let killed = disk.power_cut(PageModel::AllKept);
    let recovered = killed.open().recovery().clone();
    assert_eq!((recovered.snapshot_lsn, recovered.replayed, recovered.last_lsn), (0, 2, 2));
    // A close takes a checkpoint.
    drop(store);
    let recovered = disk.open().recovery().clone();
    assert_eq!((recovered.snapshot_lsn, recovered.replayed, recovered.last_lsn), (2, 0, 2));
}

#[test]
fn damage_that_the_log_heals_is_reported() {
    let disk = Disk::empty();
    drop(disk.open());
    assert_eq!(disk.open().recovery().snapshot_damage, None);
    disk.control.damage();
    assert_eq!(disk.open().recovery().snapshot_damage.as_deref(), Some("an older state"));
}

#[test]
fn a_reserve_that_was_given_up_is_made_anew_by_a_close() {
    let mut disk = Disk::empty();
    disk.options.reserve_bytes = 4_096;
    let store = disk.open();
    let reserve = Path::new(ROOT).join("RESERVE");
    disk.fs.remove_file(&reserve).expect("given up");
    store.blocking().close().expect("close");
    assert_eq!(disk.fs.content(&reserve).map(|bytes| bytes.len()), Some(4_096));
}

#[test]
fn entries_are_replayed_over_rows_of_the_snapshot_that_they_do_not_name() {
    let disk = Disk::empty();
    let store = disk.open();
    for partition in 0..3 {
        store.blocking().initialize(&key("g", partition), 1, 0).expect("initialize");
        stage(&store, partition, 7, 5);
    }
    store.blocking().checkpoint().expect("checkpoint");
    // The marker names the producer only, and its row the share partitions.
    commit(&store, 7);
    store.blocking().read(&key("g", 1), 9).expect("a leader epoch");
    let killed = disk.power_cut(PageModel::AllKept);
    let reopened = killed.open();
    assert_eq!(reopened.recovery().replayed, 2);
    assert_eq!(everything(&reopened), everything(&store));
    let mut stale = write(&[]);
    stale.leader_epoch = 8;
    let error = reopened.blocking().write(&key("g", 1), stale).expect_err("a stale leader");
    assert_eq!(error.kafka_code(), Some(74), "{error}");
}

#[test]
fn a_replay_counts_the_entries_that_it_applied() {
    let disk = Disk::empty();
    let store = disk.open();
    for partition in 0..3 {
        store.blocking().initialize(&key("g", partition), 1, 0).expect("initialize");
    }
    let killed = disk.power_cut(PageModel::AllKept);
    let fs: Arc<dyn Fs> = Arc::new(killed.fs.clone());
    let directory = Directory::unlocked(Arc::clone(&fs), Path::new(ROOT));
    let Contents::Store(identity) = directory.contents().expect("readable") else { panic!() };
    let snapshot = Snapshot::open(Box::new(killed.rows.clone()), identity.uuid).expect("rows");
    let mut replay = Replay::new(Arc::new(snapshot));
    let mut apply = |entry: Entry<'_>| replay.apply(&entry);
    scan(fs, &directory.wal(), identity.uuid, 0, Scope::All, &mut apply).expect("whole");
    assert_eq!((replay.applied(), replay.resident().state().partitions.len()), (3, 3));
}
