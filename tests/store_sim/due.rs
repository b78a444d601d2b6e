//! What a store does by itself when nobody asks: syncs, marks, checkpoints, and forgetting idle
//! producers. Each is waited for, however long it takes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use sharestate::fsio::FsOp;
use sharestate::fsio::sim::PageModel;
use sharestate::{Clock, ShareStore, SyncPolicy};

use super::support::key;
use super::{Disk, ROOT, commit, everything, put, stage};

const HOUR: Duration = Duration::from_secs(3_600);
const SOON: Duration = Duration::from_millis(2);

#[track_caller]
fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(30), "waited in vain until {what}");
        std::thread::sleep(SOON);
    }
}

/// A while in which much that is due soon happens.
fn a_while() {
    std::thread::sleep(30 * SOON);
}

/// A disk on which nothing is due soon.
fn quiet() -> Disk {
    let mut disk = Disk::empty();
    disk.options.mark_delay = HOUR;
    disk.options.checkpoint_interval = HOUR;
    disk.options.producer_expiry_interval = HOUR;
    disk
}

/// A store with one share partition, and the calls of the disk until now.
fn started(disk: &Disk) -> (ShareStore, u64) {
    let store = disk.open();
    store.blocking().initialize(&key("g", 0), 1, 0).expect("initialize");
    (store, disk.fs.calls())
}

/// Syncs of segments since then.
fn syncs(disk: &Disk, since: u64) -> usize {
    let calls = disk.fs.trace().into_iter().filter(|call| call.number > since);
    calls.filter(|call| matches!(call.op, FsOp::SyncData | FsOp::SyncAll)).count()
}

/// Marks in the only segment.
fn marks(disk: &Disk) -> usize {
    let name = disk.segments().pop().expect("a segment");
    let bytes = disk.fs.content(&Path::new(ROOT).join("wal").join(name)).expect("its bytes");
    bytes.windows(9).step_by(8).filter(|at| at.starts_with(b"SFRM") && at[8] == 2).count()
}

#[test]
fn under_never_only_checkpoints_and_a_close_sync() {
    let mut disk = quiet();
    disk.options.sync = SyncPolicy::Never;
    disk.options.mark_delay = SOON;
    let (store, calls) = started(&disk);
    for offset in 1..4 {
        put(&store, 0, offset);
        a_while();
    }
    assert_eq!((syncs(&disk, calls), store.progress().durable_lsn), (0, 0));
    assert_eq!(store.blocking().checkpoint().expect("checkpoint"), 4);
    assert_eq!(store.progress().durable_lsn, 4);
    put(&store, 0, 9);
    let held = everything(&store);
    store.blocking().close().expect("close");
    let cut = disk.power_cut(PageModel::UnsyncedLost);
    assert_eq!(everything(&cut.open()), held, "synced by the close");
}

#[test]
fn under_every_what_was_answered_is_synced_when_the_interval_is_over_and_not_before() {
    let mut disk = quiet();
    disk.options.sync = SyncPolicy::Every(HOUR);
    let (store, calls) = started(&disk);
    put(&store, 0, 1);
    a_while();
    assert_eq!((syncs(&disk, calls), store.progress().durable_lsn), (0, 0));
    drop(store);

    let mut disk = quiet();
    disk.options.sync = SyncPolicy::Every(10 * SOON);
    let (store, _) = started(&disk);
    for offset in 1..4 {
        put(&store, 0, offset);
        let lsn = u64::try_from(offset).expect("small") + 1;
        wait_until("it is synced", || store.progress().durable_lsn == lsn);
    }
    let calls = disk.fs.calls();
    a_while();
    assert_eq!(syncs(&disk, calls), 0, "there is nothing to sync");
}

#[test]
fn under_every_there_is_no_sync_more_often_than_the_interval() {
    let interval = Duration::from_millis(200);
    let mut disk = quiet();
    disk.options.sync = SyncPolicy::Every(interval);
    disk.options.segment_bytes = 1 << 20; // a rollover syncs too
    let (store, _) = started(&disk);
    wait_until("it is synced once", || store.progress().durable_lsn == 1);
    let (calls, begun) = (disk.fs.calls(), Instant::now());
    (0..100).for_each(|n| put(&store, 0, 2 * n + 1));
    let intervals = begun.elapsed().as_millis() / interval.as_millis();
    let syncs = syncs(&disk, calls) as u128;
    assert!(syncs <= intervals + 1, "{syncs} syncs in {intervals} intervals");
}

/// Bit 0 of a frame's flags: it may have been written behind frames that were not synced.
#[test]
fn frames_are_relaxed_under_the_policies_that_sync_later_and_under_no_other() {
    for (sync, relaxed) in
        [(SyncPolicy::Always, 0), (SyncPolicy::Every(HOUR), 1), (SyncPolicy::Never, 1)]
    {
        let mut disk = quiet();
        disk.options.sync = sync;
        let (store, _) = started(&disk);
        put(&store, 0, 1);
        let name = disk.segments().pop().expect("a segment");
        let bytes = disk.fs.content(&Path::new(ROOT).join("wal").join(name)).expect("its bytes");
        assert_eq!((&bytes[64..68], bytes[64 + 10]), (&b"SFRM"[..], relaxed), "{sync:?}");
        drop(store);
    }
}

#[test]
fn a_failed_checkpoint_is_tried_again_after_a_while() {
    let mut disk = quiet();
    disk.options.checkpoint_log_bytes = Some(500);
    let (store, _) = started(&disk);
    disk.control.fail(usize::MAX);
    let begun = Instant::now();
    let mut offset = 1;
    let mut busy = || {
        put(&store, 0, offset);
        offset += 2;
    };
    while disk.control.failed() == 0 {
        busy();
    }
    (0..20).for_each(|_| {
        busy();
        std::thread::sleep(SOON);
    });
    let (failed, seconds) = (disk.control.failed(), begun.elapsed().as_secs() as usize);
    assert!(failed <= seconds + 1, "{failed} in {seconds} s");
    disk.control.fail(0);
    wait_until("it is in the snapshot", || store.progress().applied_lsn > 0);
}

#[test]
fn an_idle_store_vouches_for_its_last_frame_once() {
    let mut disk = quiet();
    disk.options.mark_delay = SOON;
    let (store, _) = started(&disk);
    put(&store, 0, 1);
    wait_until("there is a mark", || marks(&disk) > 0);
    let before = marks(&disk);
    a_while();
    assert_eq!(marks(&disk), before, "nothing was written since");
    put(&store, 0, 2);
    wait_until("there is another", || marks(&disk) > before);
    store.blocking().close().expect("close");
    assert_eq!(marks(&disk), before + 1, "a close finds the last frame vouched for");
}

#[test]
fn changes_are_checkpointed_when_they_are_old_enough_and_only_then() {
    let mut disk = quiet();
    let (store, _) = started(&disk);
    put(&store, 0, 1);
    a_while();
    assert_eq!(store.progress().applied_lsn, 0, "an hour is not over");
    drop(store);
    disk.options.checkpoint_interval = 10 * SOON;
    let store = disk.open();
    for offset in 2..5 {
        put(&store, 0, offset);
        let lsn = store.progress().durable_lsn;
        wait_until("it is in the snapshot", || store.progress().applied_lsn >= lsn);
    }
    a_while();
    let writes = disk.control.writes();
    a_while();
    assert_eq!(disk.control.writes(), writes, "nothing has changed since");
}

#[test]
fn changes_are_checkpointed_after_so_many_bytes_of_log_or_of_memory() {
    let mut disk = quiet();
    disk.options.checkpoint_log_bytes = Some(4_000);
    let (store, _) = started(&disk);
    let mut offset = 0;
    let mut puts = |store: &ShareStore, times: i64| {
        (0..times).for_each(|_| {
            offset += 2;
            put(store, 0, offset);
        });
    };
    // An entry of a write has some 100 bytes.
    puts(&store, 10);
    a_while();
    assert_eq!(store.progress().applied_lsn, 0, "some 1,000 bytes");
    puts(&store, 60);
    wait_until("it is in the snapshot", || store.progress().applied_lsn > 30);
    drop(store);

    let mut disk = quiet();
    disk.options.memory_bytes = 64 << 10;
    let store = disk.open();
    // A row has a few hundred bytes. At half the bound there is a checkpoint.
    for partition in 0..20 {
        store.blocking().initialize(&key("g", partition), 1, 0).expect("initialize");
    }
    a_while();
    assert_eq!(store.progress().applied_lsn, 0);
    for partition in 20..600 {
        store.blocking().initialize(&key("g", partition), 1, 0).expect("initialize");
    }
    wait_until("it is in the snapshot", || store.progress().applied_lsn > 20);
}

/// A clock that is moved by hand.
#[derive(Debug, Default)]
struct Moved(AtomicI64);

impl Clock for Moved {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

#[test]
fn idle_producers_are_forgotten_page_by_page_and_those_with_pending_acks_are_not() {
    let clock = Arc::new(Moved::default());
    let mut disk = quiet();
    disk.options.clock = Arc::clone(&clock) as Arc<dyn Clock>;
    disk.options.producer_id_expiration = Duration::from_secs(10);
    let (store, _) = started(&disk);
    // More than are looked at in one step.
    let producers = 600;
    for id in 0..producers {
        stage(&store, 0, id, 2 * id);
        if id != 300 {
            commit(&store, id);
        }
    }
    clock.0.store(5_000, Ordering::SeqCst);
    stage(&store, 0, producers, 5_000);
    commit(&store, producers);
    drop(store);
    disk.options.producer_expiry_interval = SOON;
    let store = disk.open();
    let left = || {
        let page = store.blocking().producers(None, 1_000).expect("producers");
        page.0.into_iter().map(|(id, _)| id).collect::<Vec<_>>()
    };
    clock.0.store(9_999, Ordering::SeqCst);
    a_while();
    assert_eq!(left().len() as i64, producers + 1, "not yet");
    clock.0.store(10_000, Ordering::SeqCst);
    wait_until("those of the beginning are forgotten", || left() == [300, producers]);
    clock.0.store(14_999, Ordering::SeqCst);
    a_while();
    assert_eq!(left(), [300, producers]);
    clock.0.store(15_000, Ordering::SeqCst);
    wait_until("the later one too", || left() == [300]);
    clock.0.store(i64::MAX, Ordering::SeqCst);
    a_while();
    assert_eq!(left(), [300], "its transaction is open");
}

#[test]
fn idle_producers_are_looked_for_at_intervals_only() {
    let mut disk = quiet();
    disk.options.producer_id_expiration = Duration::ZERO;
    let (store, _) = started(&disk);
    stage(&store, 0, 7, 5);
    commit(&store, 7);
    for offset in [11, 13, 15] {
        put(&store, 0, offset);
        a_while();
    }
    assert!(store.blocking().producer(7).expect("readable").is_some(), "an hour is not over");
}
