//! A sample of the same crashes with the real RocksDB under the snapshot: the log on the simulated
//! disk, RocksDB's directory copied at the moment of the crash.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sharestate::ShareStore;
use sharestate::engine::recovery::RowOpener;
use sharestate::fsio::sim::{PageModel, SimFs};
use sharestate::snapshot::{RocksMode, RocksRows, RowStore, SnapshotError};

use crate::reference::Reference;
use crate::scale;
use crate::world::{ROOT, World, state_of};

/// Bytes of RocksDB's block cache.
const CACHE: usize = 1 << 20;

/// Opens RocksDB in a real directory, wherever the simulated store believes it to be.
#[derive(Debug)]
struct RocksAt(PathBuf);

impl RowOpener for RocksAt {
    fn create(&self, _: &Path) -> Result<Box<dyn RowStore>, SnapshotError> {
        RocksRows::destroy(&self.0)?;
        Ok(Box::new(RocksRows::open(&self.0, &RocksMode::Create, CACHE)?))
    }

    fn open(&self, _: &Path) -> Result<Box<dyn RowStore>, SnapshotError> {
        Ok(Box::new(RocksRows::open(&self.0, &RocksMode::ReadWrite, CACHE)?))
    }

    fn look(&self, _: &Path) -> Result<Box<dyn RowStore>, SnapshotError> {
        Ok(Box::new(RocksRows::open(&self.0, &RocksMode::ReadOnly, CACHE)?))
    }
}

fn open(world: &World, rocks: &Path) -> Result<ShareStore, sharestate::OpenError> {
    let opener = RocksAt(rocks.to_owned());
    ShareStore::open_with(Arc::new(world.fs.clone()), &opener, Path::new(ROOT), &world.options)
}

/// Copies RocksDB as a kill at this moment leaves it: it rests, for nothing is folded in.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("directory");
    for entry in std::fs::read_dir(from).expect("listed") {
        let entry = entry.expect("listed");
        std::fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
    }
}

struct Crash {
    world: World,
    dir: tempfile::TempDir,
    answered: usize,
}

/// Runs until the power fails at this call of the log's file system.
fn crash(reference: &Reference, call: u64) -> Crash {
    let dir = tempfile::tempdir().expect("directory");
    let world = World::new(reference.seed);
    world.fs.crash_before(call);
    let live = dir.path().join("live");
    let mut answered = 0;
    let image = dir.path().join("image");
    match open(&world, &live) {
        Ok(store) => {
            for (number, step) in reference.steps.iter().enumerate() {
                if world.step(&store, number, step).is_err() {
                    break;
                }
                answered += 1;
            }
            // At the moment of the crash: a store that has failed writes nothing more.
            assert!(store.poison().is_some() || answered == reference.steps.len());
            copy(&live, &image);
        }
        Err(_) if live.exists() => copy(&live, &image),
        Err(_) => {}
    }
    Crash { world, dir, answered }
}

/// The calls of a run whose rows are RocksDB's: the log's only.
fn calls(reference: &Reference) -> Vec<u64> {
    let dir = tempfile::tempdir().expect("directory");
    let world = World::new(reference.seed);
    let store = open(&world, dir.path()).expect("no fault");
    for (number, step) in reference.steps.iter().enumerate() {
        world.step(&store, number, step).expect("no fault");
    }
    let trace = world.fs.trace();
    trace.iter().filter(|call| call.mutates()).map(|call| call.number).collect()
}

/// `SHARESTATE_ROCKS_CRASHES=N` takes so many crash points, and other seeds when they are used up.
#[test]
fn with_rocksdb_too_a_power_cut_loses_nothing_that_was_answered() {
    let wanted = scale::knob("SHARESTATE_ROCKS_CRASHES", 24);
    let (states, mut points, mut seed) = (AtomicUsize::new(0), 0, 1);
    while points < wanted {
        let reference = Reference::rw1(seed);
        let calls = calls(&reference);
        let stride = (calls.len() / (wanted - points)).max(1);
        let sample: Vec<u64> =
            calls.into_iter().skip(seed as usize % stride).step_by(stride).collect();
        points += sample.len();
        scale::in_parallel(&sample, |call| {
            let crash = crash(&reference, *call);
            for (name, model) in [
                ("kept", PageModel::AllKept),
                ("lost", PageModel::UnsyncedLost),
                ("random", PageModel::Random { seed: *call, granularity: 512 }),
            ] {
                let rocks = crash.dir.path().join(name);
                let image = crash.dir.path().join("image");
                if image.exists() {
                    copy(&image, &rocks);
                }
                let fs: SimFs = crash.world.fs.power_cut(model);
                let world = World::with(fs, crash.world.rows.fork(), crash.world.options.clone());
                let context = || format!("seed {seed}, {model:?}\n{}", crash.world.fs.story());
                let store = open(&world, &rocks).unwrap_or_else(|e| panic!("{e}\n{}", context()));
                let found = state_of(&store);
                let mut allowed = reference.allowed(crash.answered);
                let is_there = allowed.any(|steps| reference.states[steps] == found);
                assert!(is_there, "lost or invented, answered {}\n{}", crash.answered, context());
                states.fetch_add(1, Ordering::Relaxed);
            }
        });
        seed += 1;
    }
    println!("crash-states-with-rocksdb={} lost=0 invented=0", states.into_inner());
}
