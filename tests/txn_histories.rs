//! The recorded histories of `tests/data/transactions*.json` through a real store that is closed,
//! killed and checkpointed at random points in between: every answer, the final state, and at the
//! end of each the promise that memory is the replayed log is the snapshot with the rest.
#![cfg(all(feature = "rocksdb", feature = "testing"))]

#[path = "support/histories.rs"]
mod histories;
#[path = "txn_support/real.rs"]
mod real;
mod support;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use histories::{answer_as_json, command, is_unrepresentable, state_as_json};
use real::{Real, state_of};
use serde_json::Value;
use sharestate::fsio::RealFs;
use sharestate::model::State;
use sharestate::snapshot::{MemoryRows, Snapshot};
use sharestate::{ShareStore, StoreError};

/// The smallest that there is, so that a history of forty operations fills several.
const SEGMENT_BYTES: u64 = 4 << 10;

/// Keeps a copy of every segment that the store ever had, as it was when it was last seen: a
/// checkpoint may purge it.
fn archive_log(real: &Real) {
    let archive = real.beside("archive");
    std::fs::create_dir_all(&archive).expect("create");
    for segment in support::segments(real.path()) {
        let name = segment.file_name().expect("name");
        std::fs::copy(&segment, archive.join(name)).expect("copy");
    }
}

/// What the whole log alone comes to: a copy of the store with every segment that it ever had, over
/// an empty snapshot. Answers the state and the number of entries replayed.
fn replay_of_the_log_alone(real: &Real) -> (State, u64) {
    archive_log(real);
    let copy = real.beside("log-alone");
    support::crash_image(real.path(), &copy);
    support::copy_dir(&real.beside("archive"), &copy.join("wal"));
    let rows = MemoryRows::default();
    Snapshot::create(Box::new(rows.clone()), real.store().uuid()).expect("empty rows");
    let options = real::options(SEGMENT_BYTES);
    let store = ShareStore::open_with(Arc::new(RealFs), &rows, &copy, &options)
        .unwrap_or_else(|error| panic!("the log alone: {error}"));
    assert_eq!(store.recovery().snapshot_lsn, 0);
    (state_of(&store), store.recovery().replayed)
}

/// What a killed process leaves: the snapshot with the rest of the log.
fn state_of_image(store: &Path, image: &Path) -> State {
    support::crash_image(store, image);
    state_of(&support::open(image, &real::options(SEGMENT_BYTES)))
}

/// Decides by a seed where to interrupt.
struct Points(u64);

impl Points {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Fills most of a segment beside the history, so that a checkpoint has something to purge.
fn fill(real: &Real) {
    let (store, key) = (real.blocking(), support::key("filler", 0));
    store.initialize(&key, 1, 0).expect("initialize");
    let batches: Vec<_> = (0..160).map(|n| support::batch(n * 2, n * 2, 2, 1)).collect();
    store.write(&key, support::write(&batches)).expect("write");
    store.delete(&key).expect("delete");
}

#[derive(Debug, Default)]
struct Tally {
    operations: u64,
    reopened: usize,
    checkpoints: u64,
    purged: u64,
}

fn play(seed: u64, name: &str, sequence: &Value, tally: &mut Tally) {
    let mut points = Points(seed);
    let mut real = Real::open(real::options(SEGMENT_BYTES));
    for (step, op) in sequence["ops"].as_array().expect("ops").iter().enumerate() {
        tally.operations += 1;
        if is_unrepresentable(op) {
            continue;
        }
        real.clock.advance(1);
        let answer = real.blocking().execute(command(op)).map_err(|error| match error {
            StoreError::Rejected(rejection) => rejection,
            error => panic!("{name}, step {step}: {error}"),
        });
        assert_eq!(answer_as_json(&answer), op["expect"], "{name}, step {step}: {op}");
        let point = points.below(60);
        if point < 6 {
            archive_log(&real);
        }
        match point {
            0 => real.close_and_open(),
            1 => real.kill_and_open(),
            2..6 => {
                fill(&real);
                archive_log(&real);
                real.checkpoint();
                tally.checkpoints += 1;
            }
            _ => {}
        }
    }
    let memory = real.state();
    assert_eq!(state_as_json(&memory), sequence["final"], "{name}");
    assert_eq!(memory.check_invariants(), Ok(()), "{name}");
    let (replayed, entries) = replay_of_the_log_alone(&real);
    assert_eq!(replayed, memory, "{name}: the log alone");
    assert_eq!(entries, real.logged(), "{name}: the whole log");
    let first = support::segments(real.path()).remove(0);
    tally.purged += u64::from(!first.ends_with("00000000000000000001.wal"));
    let recovered = state_of_image(real.path(), &real.beside("image"));
    assert_eq!(recovered, memory, "{name}: snapshot and log");
    real.close_and_open();
    assert_eq!(real.state(), memory, "{name}: after a clean close");
    tally.reopened += real.reopened + 2;
}

#[test]
fn recorded_histories_survive_every_reopening() {
    let sequences = histories::sequences();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut tally = Tally::default();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some((name, sequence)) = sequences.get(number) else { return tally };
            play(0x9e37_79b9_7f4a_7c15 + number as u64, name, sequence, &mut tally);
        }
    };
    let mut sum = Tally::default();
    std::thread::scope(|scope| {
        // Most of the time goes into waiting for the disk.
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            let tally = thread.join().expect("every history is right");
            sum.operations += tally.operations;
            sum.reopened += tally.reopened;
            sum.checkpoints += tally.checkpoints;
            sum.purged += tally.purged;
        }
    });
    let Tally { operations, reopened, checkpoints, purged } = sum;
    println!(
        "sequences={} operations={operations} reopened={reopened} checkpoints={checkpoints} \
         purged={purged}",
        sequences.len()
    );
    assert!(sequences.len() >= 200 && operations >= 8_416);
    assert!(reopened > 600 && checkpoints > 400 && purged > 50);
}
