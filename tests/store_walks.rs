//! Walks over producers and prepared acks beside a store at work.
#![cfg(feature = "rocksdb")]

mod support;

use std::sync::atomic::{AtomicBool, Ordering};

use sharestate::{AckRange, Marker, Outcome, PendingFilter, ShareStore, Stage};
use support::{key, log_only, open};

const PRODUCERS: i64 = 8;
const KEYS: i32 = 6;

fn stage(partition: i32, producer_id: i64, producer_epoch: i16) -> Stage {
    let first = producer_id * 10 + i64::from(producer_epoch % 2) * 1_000;
    let ack = AckRange { delivery_count: producer_epoch + 1, ..support::accept(first, first + 3) };
    support::stage(key("g", partition), producer_id, producer_epoch, ack)
}

/// Stages and aborts, in a different number of share partitions each time.
fn work(store: &ShareStore, epoch: i16) {
    let blocking = store.blocking();
    for producer_id in 0..PRODUCERS {
        let keys = 1 + (i32::from(epoch) + i32::try_from(producer_id).expect("small")) % KEYS;
        for partition in 0..keys {
            blocking.stage(stage(partition, producer_id, epoch)).expect("stage");
        }
        let marker = Marker {
            producer_id,
            producer_epoch: epoch + 1,
            coordinator_epoch: 0,
            outcome: Outcome::Abort,
            transaction_version: 2,
        };
        if producer_id % 2 == 0 {
            blocking.marker(marker).expect("marker");
        } else if epoch > 0 {
            // Odd producers keep two epochs open: the one before ends late.
            let marker = Marker { producer_epoch: epoch, ..marker };
            blocking.marker(marker).expect("late marker");
        }
    }
}

/// Ends the other threads, also when this one panics.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_walk_beside_running_checkpoints_sees_whole_producers() {
    let dir = tempfile::tempdir().expect("directory");
    let mut options = log_only();
    options.segment_bytes = 1 << 20;
    let store = open(dir.path(), &options);
    for partition in 0..KEYS {
        store.blocking().initialize(&key("g", partition), 1, 0).expect("initialize");
    }
    let stop = AtomicBool::new(false);
    let walks = std::thread::scope(|scope| {
        let checkpoints = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                store.blocking().checkpoint().expect("checkpoint");
                std::thread::yield_now();
            }
        });
        let walker = scope.spawn(|| {
            let mut walks = 0;
            while !stop.load(Ordering::Relaxed) {
                for entry in store.blocking().pending(PendingFilter::default()).expect("walk") {
                    assert_eq!(entry.offsets(), 4, "{entry:?}");
                }
                let (producers, _) = store.blocking().producers(None, 100).expect("producers");
                assert!(producers.len() <= PRODUCERS as usize);
                walks += 1;
            }
            walks
        });
        let stopped = StopOnDrop(&stop);
        (0..10).for_each(|epoch| work(&store, epoch));
        drop(stopped);
        checkpoints.join().expect("checkpoints");
        walker.join().expect("walker")
    });
    println!("walks={walks}");
    assert!(walks > 1);
    // What is left open are the last epochs of the odd producers.
    let totals = store.blocking().pending_totals().expect("totals");
    assert_eq!((totals.producers, totals.orphaned_epochs), (4, 0));
}
