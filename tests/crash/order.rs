//! The disk reorders: a later write survives, an earlier one does not.

use std::sync::atomic::{AtomicUsize, Ordering};

use sharestate::SyncPolicy;
use sharestate::fsio::FsOp;
use sharestate::fsio::sim::{Content, Keep, Survivors};

use crate::reference::{Reference, run};
use crate::scale::{self, Progress};
use crate::world::World;

fn relaxed(seed: u64) -> World {
    World::new(seed).sync(SyncPolicy::Never)
}

/// The calls right before which the most is un-synced: the syncs of segments that hold frames.
fn barriers(reference: &Reference) -> Vec<u64> {
    let is_barrier = |call: &&sharestate::fsio::sim::Call| {
        let is_sync = matches!(call.op, FsOp::SyncData | FsOp::SyncAll);
        is_sync && call.path.extension().is_some_and(|extension| extension == "wal")
    };
    reference.trace.iter().filter(is_barrier).map(|call| call.number).collect()
}

/// Every pair: of the writes between two barriers, `later` survives, and of those from `earlier`
/// on, it alone.
fn pairs(writes: usize) -> Vec<(usize, usize)> {
    (0..writes).flat_map(|later| (0..later).map(move |earlier| (earlier, later))).collect()
}

fn explore(reference: &Reference, barrier: u64, progress: &Progress) -> usize {
    let world = relaxed(reference.seed);
    world.fs.crash_before(barrier);
    let outcome = run(&world, &reference.steps);
    let pairs = pairs(world.fs.unsynced_writes().len());
    let states = AtomicUsize::new(0);
    scale::in_parallel(&pairs, |(earlier, later)| {
        let kept = (0..*earlier).chain([*later]).collect();
        let content = Content::Writes(Keep::Only(kept));
        let image = world.power_cut_leaving(&Survivors { names: Keep::All, content });
        let context = || {
            let (seed, story) = (reference.seed, world.fs.story());
            format!("RW-1 seed {seed}, lost {earlier}.., kept {later}\n{story}")
        };
        let found = reference.check(&image, reference.allowed_relaxed(&outcome), &context);
        // What was written behind a hole is no part of the log.
        assert!(found <= outcome.answered - (later - earlier) + 1, "{}", context());
        states.fetch_add(1, Ordering::Relaxed);
        progress.count();
    });
    states.into_inner()
}

/// `SHARESTATE_REORDERED_WRITES=N` takes every barrier, and other seeds, until so many states were
/// checked.
#[test]
fn reordered_writes_leave_a_prefix_without_a_hole() {
    let wanted = scale::knob("SHARESTATE_REORDERED_WRITES", 1_000);
    let progress = Progress::new("reordered-states", wanted);
    let (mut states, mut seed, mut most) = (0, 1, 0);
    while states < wanted {
        let reference = Reference::of(seed, crate::rw1::steps(seed), relaxed(seed));
        for barrier in barriers(&reference) {
            let found = explore(&reference, barrier, &progress);
            most = most.max(found);
            states += found;
            if states >= wanted {
                break;
            }
        }
        seed += 1;
    }
    println!("reordered-states={states} pairs-between-two-barriers={most} lost=0 invented=0");
    assert!(states >= wanted && most > 100);
}
