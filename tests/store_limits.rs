//! Bounds are kept with typed refusals, and a full queue holds callers back.
#![cfg(feature = "rocksdb")]

mod support;

use sharestate::{Command, ErrorClass, Rejection, StoreError};
use support::{batch, contents, key, log_only, open, small, write};

#[test]
fn an_entry_that_no_segment_can_hold_is_refused_and_changes_nothing() {
    let dir = tempfile::tempdir().expect("directory");
    let store = open(dir.path(), &small()); // segments of 16 KiB
    let blocking = store.blocking();
    blocking.initialize(&key("g", 0), 1, 0).expect("initialize");
    let before = contents(&store);
    let batches: Vec<_> = (0..2_000).map(|n| batch(n * 2, n * 2, 2, 1)).collect();
    let error = blocking.write(&key("g", 0), write(&batches)).expect_err("refused");
    assert!(matches!(error, StoreError::Rejected(Rejection::TooLarge { .. })), "{error}");
    assert_eq!(error.class(), ErrorClass::Rejected);
    assert_eq!(contents(&store), before);
    blocking.write(&key("g", 0), write(&batches[..500])).expect("this one fits");
}

#[test]
fn the_largest_call_is_taken() {
    let dir = tempfile::tempdir().expect("directory");
    let mut options = log_only();
    options.segment_bytes = 64 << 20;
    let store = open(dir.path(), &options);
    let blocking = store.blocking();
    let group = "g".repeat(32_767);
    let key = key(&group, i32::MAX);
    blocking.initialize(&key, 1, 0).expect("initialize");
    let batches: Vec<_> = (0..65_536).map(|n| batch(n * 2, n * 2, 2, 1)).collect();
    blocking.write(&key, write(&batches)).expect("write");
    let one_more: Vec<_> = (0..65_537).map(|n| batch(n * 2, n * 2, 2, 1)).collect();
    assert_eq!(support::code(blocking.write(&key, write(&one_more))), 42);
    let before = contents(&store);
    blocking.checkpoint().expect("checkpoint");
    drop(blocking);
    drop(store);
    assert_eq!(contents(&open(dir.path(), &options)), before);
}

#[test]
fn a_request_larger_than_the_queue_is_refused_and_a_full_queue_says_so_to_try() {
    let dir = tempfile::tempdir().expect("directory");
    let mut options = log_only();
    options.queue_bytes = 8 << 10;
    let store = open(dir.path(), &options);
    let blocking = store.blocking();
    blocking.initialize(&key("g", 0), 1, 0).expect("initialize");
    let batches: Vec<_> = (0..1_000).map(|n| batch(n, n, 2, 1)).collect();
    let error = blocking.write(&key("g", 0), write(&batches)).expect_err("refused");
    assert!(matches!(error, StoreError::LargerThanQueue { .. }), "{error}");

    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("runtime");
    let (answered, full) = runtime.block_on(async {
        let command = |n: i64| Command::Write {
            key: key("g", 0),
            state_epoch: 1,
            leader_epoch: 0,
            start_offset: -1,
            delivery_complete_count: 0,
            batches: (0..40).map(|b| batch(n * 100 + b, n * 100 + b, 2, 1)).collect(),
        };
        // All are submitted before any is awaited to its end.
        let calls: Vec<_> = (0..64)
            .map(|n| {
                let store = store.clone();
                let mut call = Box::pin(async move { store.try_execute(command(n)).await });
                async move { std::future::poll_fn(|context| call.as_mut().poll(context)).await }
            })
            .collect();
        let mut calls: Vec<_> = calls.into_iter().map(Box::pin).collect();
        let mut results = Vec::new();
        std::future::poll_fn(|context| {
            calls.retain_mut(|call| match call.as_mut().poll(context) {
                std::task::Poll::Ready(result) => {
                    results.push(result);
                    false
                }
                std::task::Poll::Pending => true,
            });
            if calls.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
        let full = results.iter().filter(|r| matches!(r, Err(StoreError::QueueFull))).count();
        (results.iter().filter(|r| r.is_ok()).count(), full)
    });
    assert_eq!(answered + full, 64);
    assert!(full > 0 && answered > 0, "{answered} answered, {full} refused");
    // Waiting callers all get through the same queue.
    let threads: Vec<_> = (0..16)
        .map(|thread| {
            let store = store.clone();
            std::thread::spawn(move || {
                for n in 0..20 {
                    let first = 1_000_000 + thread * 1_000 + n * 10;
                    let batches = [batch(first, first + 5, 2, 1)];
                    store.blocking().write(&key("g", 0), write(&batches)).expect("write");
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("thread"));
}
