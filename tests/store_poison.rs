//! After the first failed write or sync nothing is written, synced or deleted any more, and nobody
//! is told a lie.
#![cfg(feature = "testing")]

mod support;

use std::path::Path;
use std::sync::Arc;

use sharestate::fsio::FsOp;
use sharestate::fsio::sim::{Fault, PageModel, Repeat, SimFs, When};
use sharestate::snapshot::MemoryRows;
use sharestate::{ErrorClass, Options, ShareStore, StoreError, SyncPolicy};
use support::{batch, contents, key, write};

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

fn options() -> Options {
    let mut options = Options::default();
    options.segment_bytes = 64 << 10;
    options.checkpoint_log_bytes = Some(u64::MAX);
    options.background_segments = false;
    options.reserve_bytes = 0;
    options
}

fn open(fs: &SimFs, rows: &MemoryRows) -> ShareStore {
    ShareStore::open_with(Arc::new(fs.clone()), rows, Path::new("/s"), &options()).expect("open")
}

fn started() -> (SimFs, MemoryRows, ShareStore) {
    let (fs, rows) = (SimFs::new(1), MemoryRows::default());
    let store = open(&fs, &rows);
    store.blocking().initialize(&key("g", 0), 1, 0).expect("initialize");
    store.blocking().initialize(&key("g", 1), 1, 0).expect("initialize");
    (fs, rows, store)
}

fn put(store: &ShareStore, partition: i32, offset: i64) -> Result<(), StoreError> {
    let batches = [batch(offset, offset, 2, 1)];
    store.blocking().write(&key("g", partition), write(&batches)).map(drop)
}

#[test]
fn the_first_failure_says_unknown_and_every_later_one_not_logged() {
    for (op, errno) in [(FsOp::Write, EIO), (FsOp::Write, ENOSPC), (FsOp::SyncData, EIO)] {
        let (fs, rows, store) = started();
        put(&store, 0, 1).expect("write");
        let fault = Fault { when: When::Op(op), errno, repeat: Repeat::Once };
        fs.fail(fault);
        let error = put(&store, 0, 3).expect_err("fails");
        assert!(matches!(error, StoreError::OutcomeUnknown(_)), "{op:?}: {error}");
        assert_eq!((error.class(), error.kafka_code()), (ErrorClass::Poisoned, Some(56)));
        assert!(error.to_string().contains("/s/wal/"), "the path is named: {error}");

        // The fault is over, but nothing is retried.
        let calls = fs.calls();
        let error = put(&store, 0, 5).expect_err("poisoned");
        assert!(matches!(error, StoreError::Poisoned(_)), "{op:?}: {error}");
        assert!(store.blocking().checkpoint().is_err());
        // Reads answer what is proven durable: partition 1, but not partition 0 with its unproven
        // write.
        let answer = store.blocking().read(&key("g", 1), 0).expect("durable");
        assert!(answer.partition.batches.is_empty());
        let error = store.blocking().read(&key("g", 0), 0).expect_err("not proven");
        assert!(matches!(error, StoreError::Poisoned(_)), "{error}");
        assert!(store.blocking().close().is_err());
        drop(store);
        assert_eq!(fs.calls(), calls, "{op:?}: a file was touched after the failure");

        // A fresh open decides, and both outcomes of the failed write are honest.
        for model in [PageModel::AllKept, PageModel::UnsyncedLost] {
            let reopened = open(&fs.power_cut(model), &rows.fork());
            let answer = reopened.blocking().read(&key("g", 0), 0).expect("read");
            let found = answer.partition.batches;
            assert!(found.starts_with(&[batch(1, 1, 2, 1)]), "{op:?}: {found:?}");
            assert!(found.len() <= 2 && !found.contains(&batch(5, 5, 2, 1)), "{op:?}: {found:?}");
            put(&reopened, 0, 7).expect("the reopened store writes");
        }
    }
}

/// Under a policy that syncs later an answer needs the write only, until something fails.
#[test]
fn after_a_failure_only_what_is_on_disk_is_answered_for() {
    let (fs, rows) = (SimFs::new(1), MemoryRows::default());
    let mut options = options();
    options.sync = SyncPolicy::Never;
    let root = Path::new("/s");
    let store = ShareStore::open_with(Arc::new(fs.clone()), &rows, root, &options).expect("open");
    store.blocking().initialize(&key("g", 0), 1, 0).expect("initialize");
    store.blocking().checkpoint().expect("checkpoint");
    store.blocking().initialize(&key("g", 1), 1, 0).expect("initialize");
    assert!(store.blocking().summary(&key("g", 1)).is_ok(), "written, not synced");
    fs.fail(Fault { when: When::Op(FsOp::Write), errno: EIO, repeat: Repeat::Once });
    put(&store, 0, 1).expect_err("fails");
    store.blocking().initialize(&key("g", 1), 1, 0).expect_err("it rests on what is not on disk");
    store.blocking().initialize(&key("g", 1), 1, 0).expect_err("still");
}

#[test]
fn an_answer_is_never_given_for_what_a_failed_call_left_behind() {
    // Every call of the log in turn fails once, under concurrent callers.
    for nth in 1..40 {
        let (fs, rows, store) = started();
        let when = When::Call(fs.calls() + nth);
        fs.fail(Fault { when, errno: EIO, repeat: Repeat::Once });
        let acknowledged: Vec<i64> = std::thread::scope(|scope| {
            let callers: Vec<_> = (0..8_i64)
                .map(|caller| {
                    let store = &store;
                    scope.spawn(move || {
                        let offsets = (0..20).map(|n| caller * 1_000 + n * 2);
                        offsets.take_while(|offset| put(store, 0, *offset).is_ok()).collect()
                    })
                })
                .collect();
            let answers = callers.into_iter().map(|caller| caller.join().expect("caller"));
            answers.collect::<Vec<Vec<i64>>>().concat()
        });
        drop(store);
        let reopened = open(&fs.power_cut(PageModel::UnsyncedLost), &rows.fork());
        let answer = reopened.blocking().read(&key("g", 0), 0).expect("read");
        for offset in acknowledged {
            let kept = answer.partition.batches.iter().any(|b| b.first_offset == offset);
            assert!(kept, "call {nth}: offset {offset} was answered and is lost");
        }
    }
}

#[test]
fn a_full_disk_refuses_writes_and_opens_again_when_there_is_room() {
    let (fs, rows, store) = started();
    fs.set_capacity(Some(fs.used()));
    let mut written = 0;
    let error = loop {
        let batches: Vec<_> =
            (0..50).map(|n| batch(written * 100 + n, written * 100 + n, 2, 1)).collect();
        match store.blocking().write(&key("g", 0), write(&batches)) {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 10_000, "the disk never filled");
    };
    assert_eq!(error.class(), ErrorClass::Poisoned, "{error}");
    drop(store);
    // Opening needs no space that is not there.
    let full = open(&fs.restart(), &rows);
    let before = contents(&full);
    assert_eq!(before.len(), 2);
    drop(full);
    fs.set_capacity(None);
    let freed = open(&fs.restart(), &rows);
    assert_eq!(contents(&freed), before);
    put(&freed, 1, 1).expect("write");
}

#[test]
fn a_failed_checkpoint_loses_nothing_and_the_store_goes_on() {
    let fs = SimFs::new(1);
    let rows = MemoryRows::on(&fs);
    let store = open(&fs, &rows);
    store.blocking().initialize(&key("g", 0), 1, 0).expect("initialize");
    fs.fail(Fault { when: When::Op(FsOp::WriteRows), errno: ENOSPC, repeat: Repeat::Once });
    let error = store.blocking().checkpoint().expect_err("no space");
    assert!(matches!(error, sharestate::CheckpointError::Snapshot(_)), "{error}");
    put(&store, 0, 1).expect("the log has room");
    assert!(store.poison().is_none());
    store.blocking().checkpoint().expect("there is room again");
    put(&store, 0, 3).expect("write");
    let before = contents(&store);
    let cut = fs.power_cut(PageModel::UnsyncedLost);
    assert_eq!(contents(&open(&cut, &rows.fork_on(&cut))), before);
}
