//! Entries and frames up to what the log can take.

use sharestate::StoreError;
use sharestate::model::Rejection;

use super::support::{batch, key, stage, write};
use super::{Disk, everything};

#[test]
fn the_largest_entry_that_a_segment_can_take_is_taken_and_one_byte_more_refused() {
    let disk = Disk::empty();
    let store = disk.open();
    store.blocking().initialize(&key("g", 0), 1, 0).expect("initialize");
    let mut offset = 0;
    let mut with_id = |length: usize| {
        offset += 2;
        let mut stage = stage(key("g", 0), 7, 4, super::support::accept(offset, offset));
        stage.transactional_id = "t".repeat(length);
        store.blocking().stage(stage)
    };
    let too_large = |error: StoreError| match error {
        StoreError::Rejected(Rejection::TooLarge { found, bound, .. }) => (found, bound),
        other => panic!("{other}"),
    };
    // What 4,096 bytes of id take is known from the refusal.
    let (found, bound) = too_large(with_id(4_096).expect_err("too large"));
    assert_eq!(bound, 4_096 - 64 - 56 - 56, "a segment with its header, a seal, and the frame's");
    let largest = 4_096 - (found - bound);
    with_id(largest).expect("it fits");
    assert_eq!(too_large(with_id(largest + 1).expect_err("too large")), (bound + 1, bound));
    assert!(store.poison().is_none());
    let held = everything(&store);
    drop(store);
    assert_eq!(everything(&disk.open()), held);
}

/// Commands that arrive while writers are held back come to more than one frame.
#[test]
fn what_was_held_back_goes_into_as_many_frames_as_it_takes() {
    let mut disk = Disk::empty();
    disk.options.memory_bytes = 40_000;
    let store = disk.open();
    for partition in 0..30 {
        store.blocking().initialize(&key("g", partition), 1, 0).expect("initialize");
    }
    store.blocking().checkpoint().expect("checkpoint");
    disk.control.hold();
    std::thread::scope(|scope| {
        // Fills the memory: the checkpoint that would free it waits.
        let fills = scope.spawn(|| {
            for partition in 100..300 {
                store.blocking().initialize(&key("g", partition), 1, 0).expect("initialize");
            }
        });
        disk.control.until_a_write_waits();
        while store.progress().durable_lsn < 31 {
            std::thread::yield_now();
        }
        let writers: Vec<_> = (0..30)
            .map(|partition| {
                let store = &store;
                scope.spawn(move || {
                    let batches: Vec<_> = (0..12).map(|n| batch(3 * n, 3 * n, 2, 1)).collect();
                    store.blocking().write(&key("g", partition), write(&batches)).map(drop)
                })
            })
            .collect();
        // All of them wait, or what follows proves nothing and is true as well.
        std::thread::sleep(std::time::Duration::from_millis(50));
        let answered = store.progress().durable_lsn;
        assert!(answered < 200, "{answered} answers: nobody is held back");
        disk.control.release();
        for writer in writers {
            writer.join().expect("caller").expect("write");
        }
        fills.join().expect("caller");
    });
    assert!(store.poison().is_none());
    let held = everything(&store);
    drop(store);
    assert_eq!(everything(&disk.open()), held);
}
