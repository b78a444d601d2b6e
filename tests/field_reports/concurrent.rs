//! Many callers at once.

use std::sync::Barrier;

use crate::disk::{Disk, log_only};
use crate::support::{batch, contents, key};

/// Kafka KAFKA-19204: retried and racing initializations.
#[test]
fn racing_initializations_end_at_the_highest_epoch_that_was_answered() {
    const CALLERS: i32 = 16;
    let disk = Disk::new();
    let store = disk.open(&log_only());
    let rounds = 200;
    for round in 0..rounds {
        let key = key("g", round);
        let barrier = Barrier::new(CALLERS.unsigned_abs() as usize);
        let highest = std::thread::scope(|scope| {
            let calls: Vec<_> = (1..=CALLERS)
                .map(|epoch| {
                    let (store, key, barrier) = (&store, &key, &barrier);
                    scope.spawn(move || {
                        barrier.wait();
                        store.blocking().initialize(key, epoch, 0).ok().map(|_| epoch)
                    })
                })
                .collect();
            calls.into_iter().filter_map(|call| call.join().expect("no panic")).max()
        });
        assert_eq!(highest, Some(CALLERS), "nobody fences the highest epoch");
        let logged = store.progress().durable_lsn;
        store.blocking().initialize(&key, CALLERS, 0).expect("a repeat succeeds");
        let row = store.blocking().read(&key, 0).expect("read").partition;
        assert_eq!((row.state_epoch, store.progress().durable_lsn), (CALLERS, logged));
    }
    let before = contents(&store);
    drop(store);
    assert_eq!(contents(&disk.after_power_cut().open(&log_only())), before);
    println!("racing-initializations={}", rounds * CALLERS);
}

/// Kafka KAFKA-19760: what waits together is more than one frame can hold.
#[test]
fn a_thousand_large_calls_at_once_are_split_into_frames_and_none_is_refused() {
    const CALLS: i64 = 1_000;
    let disk = Disk::new();
    let store = disk.open(&log_only());
    store.blocking().initialize(&key("g", 0), 1, 0).expect("initialize");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("runtime");
    let answers = runtime.block_on(async {
        // Over a kilobyte each, against segments of 16 KiB.
        let calls: Vec<_> = (0..CALLS)
            .map(|n| {
                let batches: Vec<_> =
                    (0..60).map(|b| batch(n * 200 + b * 2, n * 200 + b * 2, 2, 1)).collect();
                let store = store.clone();
                let command = sharestate::Command::Write {
                    key: key("g", 0),
                    state_epoch: 1,
                    leader_epoch: 0,
                    start_offset: -1,
                    delivery_complete_count: -1,
                    batches,
                };
                async move { store.execute(command).await }
            })
            .collect();
        let mut tasks = tokio::task::JoinSet::new();
        calls.into_iter().for_each(|call| drop(tasks.spawn(call)));
        tasks.join_all().await
    });
    let refused = answers.iter().filter(|answer| answer.is_err()).count();
    assert_eq!((answers.len(), refused), (1_000, 0));
    drop(store);
    let reopened = disk.after_power_cut().open(&log_only());
    let row = reopened.blocking().read(&key("g", 0), 0).expect("read").partition;
    assert_eq!(row.batches.len(), 60_000);
}
