//! The disk is full: once, for a while, or until somebody frees space.

use std::sync::atomic::{AtomicUsize, Ordering};

use sharestate::OpenError;
use sharestate::fsio::FsOp;
use sharestate::fsio::sim::{Call, ENOSPC, Fault, Repeat, When};
use sharestate::log::LogError;

use crate::judged;
use crate::reference::Reference;
use crate::rw1;
use crate::scale;
use crate::world::World;

const RESERVE: u64 = 32 << 10;

fn world(seed: u64) -> World {
    let mut world = World::new(seed);
    world.options.reserve_bytes = RESERVE;
    world
}

/// Calls that need space.
fn takes_space(call: &Call) -> bool {
    let ops = [FsOp::Write, FsOp::Create, FsOp::CreateDir, FsOp::Allocate, FsOp::WriteRows];
    ops.contains(&call.op)
}

fn is_full(error: &OpenError) -> bool {
    match error {
        OpenError::Io(error) => error.is_full(),
        OpenError::Log(LogError::Failed { source, .. } | LogError::Io(source)) => source.is_full(),
        OpenError::Snapshot(error) => error.to_string().contains("No space left"),
        _ => false,
    }
}

#[test]
fn a_full_disk_fails_only_whom_it_concerns_and_works_again_when_there_is_room() {
    let reference = Reference::of(6, rw1::steps(6), world(6));
    let calls: Vec<u64> =
        reference.trace.iter().filter(|call| takes_space(call)).map(|call| call.number).collect();
    let (cases, opened_full, refused_full) =
        (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    scale::in_parallel(&calls, |call| {
        for repeat in [Repeat::Once, Repeat::Times(3), Repeat::Sticky] {
            let world = world(reference.seed);
            world.fs.fail(Fault { when: When::From(*call, takes_space), errno: ENOSPC, repeat });
            let context = || format!("RW-1 seed 6\n{}", world.fs.story());
            let judged = judged::run(&world, &reference.steps, &context);
            if let Some(error) = &judged.open_error {
                assert!(is_full(error), "{error}\n{}", context());
            }
            // Full to the last byte, but what is allocated can be overwritten.
            let full = world.restart();
            full.fs.set_capacity(Some(full.fs.used()));
            let has_reserve = full.fs.content("/store/RESERVE".as_ref()).is_some();
            match full.open() {
                Ok(store) => {
                    drop(store);
                    opened_full.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => {
                    assert!(is_full(&error), "{error}\n{}", context());
                    assert!(!has_reserve, "the reserve should do: {error}\n{}", context());
                    refused_full.fetch_add(1, Ordering::Relaxed);
                }
            }
            // And after that there is room again.
            let freed = full.restart();
            judged.check_image(&freed.restart(), &reference, &context);
            judged.check(&world, &reference, *call, &context);
            freed.goes_on(&context);
            cases.fetch_add(1, Ordering::Relaxed);
        }
    });
    println!(
        "full-disk-cases={} opened-while-full={} refused-while-full={} lost=0 invented=0",
        cases.into_inner(),
        opened_full.load(Ordering::Relaxed),
        refused_full.into_inner()
    );
    assert!(opened_full.into_inner() > 500);
}
