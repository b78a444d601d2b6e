//! What was answered is there after any end of the process.
#![cfg(feature = "rocksdb")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sharestate::{Create, Options, SyncPolicy};
use support::{batch, contents, crash_image, fill, key, log_only, open, small, write};

#[test]
fn a_clean_close_and_a_kill_give_the_same_state() {
    for options in [small(), log_only()] {
        let dir = tempfile::tempdir().expect("directory");
        let (live, killed) = (dir.path().join("live"), dir.path().join("killed"));
        let store = open(&live, &options);
        fill(&store, "g", 7, 2_000);
        let before = contents(&store);
        crash_image(&live, &killed);
        store.blocking().close().expect("close");
        drop(store);
        let (closed, killed) = (open(&live, &options), open(&killed, &options));
        assert_eq!(contents(&closed), before);
        assert_eq!(contents(&killed), before);
        assert_eq!(closed.recovery().replayed, 0, "a clean close leaves nothing to replay");
    }
}

#[test]
fn recovering_twice_gives_the_same_as_once() {
    let dir = tempfile::tempdir().expect("directory");
    let live = dir.path().join("live");
    let store = open(&live, &log_only());
    fill(&store, "g", 3, 500);
    let before = contents(&store);
    let mut image = live;
    for round in 0..3 {
        let next = dir.path().join(format!("image-{round}"));
        crash_image(&image, &next);
        let recovered = open(&next, &log_only());
        assert_eq!(recovered.recovery().replayed, 503, "nothing was folded in between");
        assert_eq!(contents(&recovered), before);
        image = dir.path().join(format!("crashed-{round}"));
        crash_image(&next, &image);
    }
}

#[test]
fn memory_is_the_replayed_log_is_the_snapshot_with_the_rest() {
    let dir = tempfile::tempdir().expect("directory");
    let live = dir.path().join("live");
    let store = open(&live, &log_only());
    fill(&store, "a", 5, 400);
    let log_alone = dir.path().join("log-alone");
    crash_image(&live, &log_alone);
    let first = contents(&store);
    store.blocking().checkpoint().expect("checkpoint");
    store.blocking().delete(&key("a", 0)).expect("delete");
    store.blocking().write(&key("a", 1), write(&[batch(9_000, 9_010, 4, 3)])).expect("write");
    fill(&store, "b", 2, 100);
    let memory = contents(&store);
    let mixed = dir.path().join("mixed");
    crash_image(&live, &mixed);

    let replayed = open(&log_alone, &log_only());
    assert_eq!((replayed.recovery().snapshot_lsn, replayed.recovery().replayed), (0, 405));
    assert_eq!(contents(&replayed), first);
    let mixed = open(&mixed, &log_only());
    assert_eq!((mixed.recovery().snapshot_lsn, mixed.recovery().replayed), (405, 104));
    assert_eq!(contents(&mixed), memory);
}

#[test]
fn concurrent_callers_share_frames_and_lose_nothing() {
    const CALLERS: i32 = 64;
    const WRITES: i64 = 50;
    let dir = tempfile::tempdir().expect("directory");
    let store = open(dir.path(), &small());
    let runtime = tokio::runtime::Builder::new_multi_thread().build().expect("runtime");
    runtime.block_on(async {
        let tasks: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let store = store.clone();
                tokio::spawn(async move {
                    let key = key("g", caller);
                    store.initialize(&key, 1, 0).await.expect("initialize");
                    for n in 0..WRITES {
                        store
                            .write(&key, write(&[batch(n * 2, n * 2, 2, 1)]))
                            .await
                            .expect("write");
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("task");
        }
    });
    let image = dir.path().with_extension("image");
    crash_image(dir.path(), &image);
    let recovered = open(&image, &small());
    let page = recovered.blocking().list(None, None, 1_000).expect("list");
    assert_eq!(page.partitions.len(), CALLERS as usize);
    for (key, partition) in page.partitions {
        assert_eq!(partition.batches.len(), WRITES as usize, "{key}");
    }
    let entries = (WRITES as u64 + 1) * CALLERS as u64;
    assert_eq!(recovered.progress().durable_lsn, entries);
    drop(recovered);
    std::fs::remove_dir_all(image).expect("remove");
}

#[test]
fn an_accepted_command_survives_the_caller_who_stops_waiting() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open(dir.path(), &small());
    store.blocking().initialize(&key("g", 0), 1, 0).expect("initialize");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("runtime");
    runtime.block_on(async {
        let call_store = store.clone();
        let mut call = Box::pin(async move {
            let batches = [batch(0, 9, 2, 1)];
            call_store.write(&key("g", 0), write(&batches)).await
        });
        // One poll submits; then the caller goes away.
        let _ = std::future::poll_fn(|context| {
            std::task::Poll::Ready(call.as_mut().poll(context).is_ready())
        })
        .await;
        drop(call);
    });
    let answer = store.blocking().read(&key("g", 0), 0).expect("read");
    assert_eq!(answer.partition.batches, [batch(0, 9, 2, 1)]);
}

#[test]
fn dropping_the_last_handle_closes_cleanly() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open(dir.path(), &log_only());
    fill(&store, "g", 1, 50);
    let other = store.clone();
    drop(store);
    fill(&other, "h", 1, 1);
    drop(other);
    let mut options = Options::default();
    options.create = Create::Never;
    let reopened = open(dir.path(), &options);
    assert_eq!(reopened.recovery().replayed, 0);
    assert_eq!(contents(&reopened).len(), 2);
}

#[test]
fn calls_after_close_are_told_so_and_closing_twice_is_harmless() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open(dir.path(), &small());
    store.blocking().close().expect("close");
    store.blocking().close().expect("close again");
    let error = store.blocking().initialize(&key("g", 0), 1, 0).expect_err("closed");
    assert!(matches!(error, sharestate::StoreError::Closed), "{error}");
    let error = store.blocking().checkpoint().expect_err("closed");
    assert!(matches!(error, sharestate::CheckpointError::Closed), "{error}");
}

#[test]
fn every_queued_call_is_answered_when_the_store_closes_under_load() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open(dir.path(), &small());
    store.blocking().initialize(&key("g", 0), 1, 0).expect("initialize");
    let acknowledged = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            let (store, acknowledged) = (store.clone(), Arc::clone(&acknowledged));
            std::thread::spawn(move || {
                for n in 0.. {
                    let offset = thread * 1_000_000 + n * 2;
                    let write = write(&[batch(offset, offset, 2, 1)]);
                    match store.blocking().write(&key("g", 0), write) {
                        Ok(_) => acknowledged.fetch_add(1, Ordering::Relaxed),
                        Err(sharestate::StoreError::Closed) => return,
                        Err(error) => panic!("{error}"),
                    };
                }
            })
        })
        .collect();
    while acknowledged.load(Ordering::Relaxed) < 200 {
        std::thread::yield_now();
    }
    store.blocking().close().expect("close");
    for thread in threads {
        thread.join().expect("thread");
    }
    drop(store);
    let reopened = open(dir.path(), &small());
    let answer = reopened.blocking().read(&key("g", 0), 0).expect("read");
    let stored = answer.partition.batches.len() as u64;
    assert_eq!(stored, acknowledged.load(Ordering::Relaxed), "each write is one batch of its own");
}

#[test]
fn the_relaxed_policies_keep_everything_over_a_kill_and_a_close() {
    for sync in [SyncPolicy::Never, SyncPolicy::Every(std::time::Duration::from_millis(5))] {
        let dir = tempfile::tempdir().expect("directory");
        let (live, killed) = (dir.path().join("live"), dir.path().join("killed"));
        let mut options = small();
        options.sync = sync;
        let store = open(&live, &options);
        fill(&store, "g", 3, 1_000);
        let before = contents(&store);
        crash_image(&live, &killed); // a killed process loses no page of the cache
        store.blocking().close().expect("close");
        drop(store);
        assert_eq!(contents(&open(&live, &options)), before, "{sync:?}");
        assert_eq!(contents(&open(&killed, &options)), before, "{sync:?}");
    }
}
