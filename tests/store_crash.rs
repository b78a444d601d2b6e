//! Power cuts at every call of a small workload, on a simulated disk: what was answered is there,
//! and nothing else.
#![cfg(feature = "testing")]

mod support;

use std::path::Path;
use std::sync::Arc;

use sharestate::fsio::sim::{PageModel, SimFs};
use sharestate::snapshot::MemoryRows;
use sharestate::{Clock, Options, ShareStore, StoreError};
use support::{batch, contents, key, write};

/// Time stands still, so that states can be compared to the letter.
#[derive(Debug)]
struct Frozen;

impl Clock for Frozen {
    fn now_ms(&self) -> i64 {
        1_000
    }
}

fn options() -> Options {
    let mut options = Options::default();
    options.segment_bytes = 4 << 10;
    options.checkpoint_log_bytes = Some(u64::MAX);
    options.background_segments = false;
    options.reserve_bytes = 0;
    options.clock = Arc::new(Frozen);
    options
}

const STEPS: usize = 60;

/// The n-th step of the workload: three share partitions, a deletion, two checkpoints, several
/// rollovers.
fn step(store: &ShareStore, n: usize) -> Result<(), StoreError> {
    let blocking = store.blocking();
    let offset = i64::try_from(n).expect("small") * 10;
    let key = |n: usize| key("g", i32::try_from(n % 3).expect("small"));
    match n {
        0..3 => blocking.initialize(&key(n), 1, 0).map(drop),
        20 | 40 => match blocking.checkpoint() {
            Ok(_) => Ok(()),
            Err(sharestate::CheckpointError::Poisoned(poison)) => Err(StoreError::Poisoned(poison)),
            Err(error) => panic!("{error}"),
        },
        30 => blocking.delete(&key(0)).map(drop),
        31 => blocking.initialize(&key(0), 2, 100).map(drop),
        33 => blocking.read(&key(0), 5).map(drop),
        _ => {
            let batches: Vec<_> = (0..6).map(|b| batch(offset + b, offset + b, 2, 1)).collect();
            let mut write = write(&batches);
            write.state_epoch = 2;
            write.leader_epoch = 5;
            blocking.write(&key(n), write).map(drop)
        }
    }
}

struct Disk {
    fs: SimFs,
    rows: MemoryRows,
}

impl Disk {
    fn open(&self) -> Result<ShareStore, sharestate::OpenError> {
        ShareStore::open_with(
            Arc::new(self.fs.clone()),
            &self.rows,
            Path::new("/store"),
            &options(),
        )
    }
}

/// The state after each number of steps, without faults, and the number of calls of the whole run.
fn reference() -> (Vec<Vec<String>>, u64) {
    let disk = Disk { fs: SimFs::new(1), rows: MemoryRows::default() };
    let store = disk.open().expect("open");
    let mut states = vec![contents(&store)];
    for n in 0..STEPS {
        step(&store, n).expect("no fault");
        states.push(contents(&store));
    }
    drop(store);
    (states, disk.fs.calls())
}

/// Runs the workload until it fails. Answers the steps that were answered with success; none if it
/// did not open.
fn run(disk: &Disk) -> usize {
    let Ok(store) = disk.open() else { return 0 };
    (0..STEPS).position(|n| step(&store, n).is_err()).unwrap_or(STEPS)
}

/// Opens after a crash and compares: `acknowledged` steps are there, at most the one in flight
/// beyond them.
fn check(disk: &Disk, states: &[Vec<String>], acknowledged: usize, context: &str) {
    let store = disk.open().unwrap_or_else(|error| panic!("{context}: {error}"));
    let found = contents(&store);
    let allowed = &states[acknowledged..=(acknowledged + 1).min(STEPS)];
    assert!(allowed.contains(&found), "{context}: acknowledged {acknowledged}, found {found:#?}");
    // The store works on.
    store
        .blocking()
        .initialize(&key("after", 0), 1, 0)
        .unwrap_or_else(|e| panic!("{context}: {e}"));
}

#[test]
fn a_power_cut_at_any_call_loses_nothing_that_was_answered() {
    let (states, calls) = reference();
    let mut crash_states = 0;
    for call in 1..=calls {
        for before in [true, false] {
            let disk = Disk { fs: SimFs::new(call), rows: MemoryRows::default() };
            if before {
                disk.fs.crash_before(call)
            } else {
                disk.fs.crash_after(call)
            }
            let acknowledged = run(&disk);
            for (name, model) in [
                ("all kept", PageModel::AllKept),
                ("unsynced lost", PageModel::UnsyncedLost),
                ("random 512", PageModel::Random { seed: call, granularity: 512 }),
                ("random 4096", PageModel::Random { seed: call, granularity: 4096 }),
            ] {
                let image = Disk { fs: disk.fs.power_cut(model), rows: disk.rows.fork() };
                let context = format!("call {call}, before {before}, {name}");
                check(&image, &states, acknowledged, &context);
                crash_states += 1;
            }
        }
    }
    println!("crash-states={crash_states} calls={calls} lost=0 invented=0");
    assert!(crash_states > 500);
}

#[test]
fn a_crash_within_recovery_changes_nothing() {
    let (states, calls) = reference();
    let mut crash_states = 0;
    for call in (1..=calls).step_by(7) {
        let disk = Disk { fs: SimFs::new(call), rows: MemoryRows::default() };
        disk.fs.crash_after(call);
        let acknowledged = run(&disk);
        let model = PageModel::Random { seed: call, granularity: 512 };
        let first = disk.fs.power_cut(model);
        let again = first.power_cut(PageModel::AllKept);
        // How many calls does recovery make?
        let probe = Disk { fs: again, rows: disk.rows.fork() };
        let recovery_calls = probe.open().map(|_| probe.fs.calls()).expect("recovers");
        for crash in (1..=recovery_calls).step_by(3) {
            let image = Disk { fs: first.power_cut(PageModel::AllKept), rows: disk.rows.fork() };
            image.fs.crash_after(crash);
            drop(image.open());
            let model = PageModel::Random { seed: crash, granularity: 512 };
            let image = Disk { fs: image.fs.power_cut(model), rows: image.rows.fork() };
            check(&image, &states, acknowledged, &format!("call {call}, then {crash}"));
            crash_states += 1;
        }
    }
    println!("crash-in-recovery-states={crash_states} lost=0 invented=0");
}
