//! The power fails before or after every call that changes something.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use sharestate::fsio::sim::PageModel;

use crate::reference::{Reference, run};
use crate::rw1;
use crate::scale::{self, Progress};
use crate::world::World;

/// What a reboot may find; the random ones are others at every call and in every round.
fn models(salt: u64) -> [PageModel; 4] {
    [
        PageModel::AllKept,
        PageModel::UnsyncedLost,
        PageModel::Random { seed: salt, granularity: 512 },
        PageModel::Random { seed: salt, granularity: 4_096 },
    ]
}

/// All crashes of one seed. Answers how many states were checked.
fn explore(reference: &Reference, round: u64, progress: &Progress) -> usize {
    let calls = reference.mutating_calls();
    let states = AtomicUsize::new(0);
    scale::in_parallel(&calls, |call| {
        for before in [true, false] {
            let world = World::new(reference.seed);
            if before {
                world.fs.crash_before(*call);
            } else {
                world.fs.crash_after(*call);
            }
            let outcome = run(&world, &reference.steps);
            reference.assert_same_calls(&world, *call);
            let models = models(round << 32 | call << 1 | u64::from(before));
            let last = models[2 + usize::from(before)];
            for model in models {
                let image = world.power_cut(model);
                let context = || {
                    let seed = reference.seed;
                    format!("RW-1 seed {seed}, power_cut({model:?})\n{}", world.fs.story())
                };
                reference.check(&image, reference.allowed(outcome.answered), &context);
                if model == last {
                    world.power_cut(model).goes_on(&context);
                }
                states.fetch_add(1, Ordering::Relaxed);
                progress.count();
            }
        }
    });
    states.into_inner()
}

/// `SHARESTATE_CRASH_STATES=N` goes on with other seeds until so many states were checked.
#[test]
fn a_power_cut_at_any_call_loses_nothing_that_was_answered() {
    let wanted = scale::knob("SHARESTATE_CRASH_STATES", 1_500);
    let started = Instant::now();
    let progress = Progress::new("crash-states", wanted);
    let (mut states, mut calls, mut seed) = (0, 0, 1);
    while states < wanted {
        let reference = Reference::rw1(seed);
        if seed == 1 {
            println!(
                "RW-1: {} frames, {} bytes each on average, {} segments of {} bytes",
                rw1::FRAMES,
                reference.frame_bytes / rw1::FRAMES,
                reference.segments,
                rw1::SEGMENT_BYTES
            );
        }
        calls += reference.mutating_calls().len();
        states += explore(&reference, seed, &progress);
        seed += 1;
    }
    let rate = states as f64 / started.elapsed().as_secs_f64();
    println!("seeds={} states-per-second={rate:.0}", seed - 1);
    println!("crash-states={states} calls={calls} lost=0 invented=0");
    assert!(states >= wanted);
}
