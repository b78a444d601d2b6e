//! Short writes, short reads and interrupted calls change nothing.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use sharestate::fsio::FsOp;
use sharestate::fsio::sim::{EINTR, Fault, PageModel, Repeat, Transfer, When};

use crate::reference::{Reference, run};
use crate::rw1::{Random, Step};
use crate::scale;
use crate::world::World;

type Tree = Vec<(PathBuf, Option<Vec<u8>>)>;

/// A store that was just made, from which all runs start, so that they have one identity.
fn made(seed: u64) -> World {
    let world = World::new(seed);
    drop(world.open().expect("created"));
    world
}

fn run_on(base: &World, steps: &[Step], disturb: impl Fn(&World)) -> (World, Tree) {
    let world = base.restart();
    disturb(&world);
    let outcome = run(&world, steps);
    assert_eq!(outcome.answered, steps.len(), "{:?}", outcome.error);
    let tree = world.tree();
    (world, tree)
}

#[test]
fn every_short_length_of_every_frame_and_every_interruption_give_the_same_bytes() {
    let (base, steps) = (made(12), crate::rw1::steps(12));
    let (plain, expected) = run_on(&base, &steps, |_| {});
    let trace = plain.fs.trace();
    let frames: Vec<usize> = trace
        .iter()
        .filter(|call| call.op == FsOp::Write && call.path.extension().is_some_and(|e| e == "wal"))
        .map(|call| call.bytes)
        .collect();
    let longest = frames.iter().copied().max().expect("frames");

    let lengths: Vec<usize> = (1..longest).collect();
    let cases = AtomicUsize::new(0);
    scale::in_parallel(&lengths, |length| {
        let (_, tree) =
            run_on(&base, &steps, |world| world.fs.set_writes(Transfer::AtMost(*length)));
        assert!(tree == expected, "writes of at most {length} bytes");
        let shortened = frames.iter().filter(|bytes| *bytes > length).count();
        cases.fetch_add(shortened, Ordering::Relaxed);
    });

    let transfers = trace.iter().filter(|call| matches!(call.op, FsOp::Write | FsOp::Read));
    let transfers: Vec<u64> = transfers.map(|call| call.number).collect();
    scale::in_parallel(&transfers, |call| {
        let fault = Fault { when: When::Call(*call), errno: EINTR, repeat: Repeat::Once };
        let (_, tree) = run_on(&base, &steps, |world| world.fs.fail(fault));
        assert!(tree == expected, "call {call} interrupted");
    });
    let cases = cases.into_inner();
    println!("short-write-cases={cases} interrupted-calls={} differences=0", transfers.len());
    assert!(cases >= 12_736);
}

/// `SHARESTATE_SHORT_READS=N` tries so many seeds.
#[test]
fn a_recovery_by_short_and_interrupted_reads_finds_the_same() {
    let seeds: Vec<u64> = (0..scale::knob("SHARESTATE_SHORT_READS", 1_000) as u64).collect();
    let reference = Reference::rw1(13);
    let calls = reference.mutating_calls();
    let crashes = calls.iter().copied().step_by(calls.len() / 8);
    let images: Vec<_> = crashes
        .map(|call| {
            let world = World::new(13);
            world.fs.crash_after(call);
            let answered = run(&world, &reference.steps).answered;
            let image = world.power_cut(PageModel::Random { seed: call, granularity: 512 });
            let found = reference
                .check(&image.restart(), reference.allowed(answered), &|| format!("{call}"));
            (image, found)
        })
        .collect();
    scale::in_parallel(&seeds, |seed| {
        let mut random = Random(*seed);
        let (image, found) = &images[random.below(images.len())];
        let world = image.restart();
        world.fs.reseed(*seed);
        world.fs.set_reads(Transfer::UpTo(1 << random.below(13)));
        world.fs.interrupt_every(2 + random.below(5) as u64);
        reference.check(&world, *found..=*found, &|| format!("seed {seed}"));
    });
    println!("short-read-seeds={} differences=0", seeds.len());
}
