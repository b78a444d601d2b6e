//! The power fails during a recovery, and again during the next.

use std::sync::atomic::{AtomicUsize, Ordering};

use sharestate::fsio::sim::PageModel;

use crate::reference::{Reference, run};
use crate::scale::{self, Progress};
use crate::world::World;

/// Images that a recovery starts from.
const STARTS: usize = 50;

/// Calls of a recovery at which a crash makes a difference, and one behind the last.
fn recovery_calls(image: &World) -> Vec<u64> {
    let dry = image.restart();
    let store = dry.open().expect("no fault");
    let trace = dry.fs.trace();
    let mut calls: Vec<u64> =
        trace.iter().filter(|call| call.mutates()).map(|call| call.number).collect();
    calls.push(dry.fs.calls() + 1);
    drop(store);
    calls
}

/// What is found when the power fails at this call of a recovery.
fn cut_within(image: &World, call: u64, model: PageModel) -> World {
    let world = image.restart();
    world.fs.crash_before(call);
    let store = world.open(); // fails, unless the crash comes behind it
    let cut = world.power_cut(model);
    drop(store);
    cut
}

fn model(salt: u64) -> PageModel {
    match salt % 4 {
        0 => PageModel::AllKept,
        1 => PageModel::UnsyncedLost,
        2 => PageModel::Random { seed: salt, granularity: 512 },
        _ => PageModel::Random { seed: salt, granularity: 4_096 },
    }
}

/// `SHARESTATE_RECOVERY_PAIRS=N` goes on with more start images until so many pairs were tried, and
/// tries every pair; normally about every third.
#[test]
fn two_crashes_within_recoveries_change_nothing() {
    let wanted = scale::knob("SHARESTATE_RECOVERY_PAIRS", 1);
    let stride = if wanted > 1 { 1 } else { 4 };
    let progress = Progress::new("crash-in-recovery-pairs", wanted);
    let (pairs, again, most) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let mut seed = 10;
    while pairs.load(Ordering::Relaxed) < wanted {
        let reference = Reference::rw1(seed);
        let calls = reference.mutating_calls();
        let starts: Vec<u64> = calls.iter().copied().step_by(calls.len() / STARTS).collect();
        scale::in_parallel(&starts, |start| {
            let world = World::new(seed);
            world.fs.crash_after(*start);
            let answered = run(&world, &reference.steps).answered;
            let start_model = PageModel::Random { seed: *start, granularity: 512 };
            let image = world.power_cut(start_model);
            for first in recovery_calls(&image) {
                let once = cut_within(&image, first, model(start * 31 + first));
                let calls = recovery_calls(&once);
                most.fetch_max(calls.len(), Ordering::Relaxed);
                for second in calls.into_iter().skip(first as usize % stride).step_by(stride) {
                    let twice = cut_within(&once, second, model(first * 7 + second));
                    let context = || {
                        let story = world.fs.story();
                        format!(
                            "RW-1 seed {seed}, {start_model:?}; recovery cut at call {first}, the \
                             next at {second}\n{story}"
                        )
                    };
                    let found = reference.check(&twice, reference.allowed(answered), &context);
                    if pairs.fetch_add(1, Ordering::Relaxed) % 8 == 0 {
                        // Recovered twice is the same as recovered once.
                        reference.check(&twice.restart(), found..=found, &context);
                        again.fetch_add(1, Ordering::Relaxed);
                    }
                    progress.count();
                }
            }
        });
        seed += 1;
    }
    println!(
        "crash-in-recovery-pairs={} starts={} calls-of-a-recovery={} recovered-again={} lost=0 \
         invented=0",
        pairs.load(Ordering::Relaxed),
        STARTS * (seed as usize - 10),
        most.into_inner(),
        again.into_inner()
    );
    assert!(pairs.into_inner() > 1_000);
}
