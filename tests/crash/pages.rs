//! Un-synced pages are lost: every subset of them, at sector and page granularity.

use std::sync::atomic::{AtomicUsize, Ordering};

use sharestate::SyncPolicy;
use sharestate::fsio::sim::{Content, Keep, Survivors};
use sharestate::log::FRAME_HEADER_BYTES;
use sharestate::model::{Command, DeliveryState, SharePartitionKey, StateBatch};
use uuid::Uuid;

use crate::reference::{Reference, run};
use crate::rw1::{self, Random, Step};
use crate::scale::{self, Progress};
use crate::world::World;

/// How many of the possible losses are tried.
#[derive(Debug, Clone, Copy)]
struct Extent {
    /// Up to so many dirty pages, all.
    exhaustive: usize,
    /// Above, so many samples.
    samples: usize,
}

/// Every way in which so many pages can be lost, or samples where there are too many.
fn subsets(pages: usize, extent: Extent, seed: u64) -> Vec<Keep> {
    if pages <= extent.exhaustive {
        return (0..1 << pages).map(Keep::subset).collect();
    }
    let mut random = Random(seed);
    let mut sample = || (0..pages).filter(|_| random.below(2) == 0).collect();
    (0..extent.samples).map(|_| Keep::Only(sample())).collect()
}

/// What of the un-synced can survive at a crash.
fn losses(world: &World, extent: Extent, seed: u64) -> Vec<Survivors> {
    let names = match world.fs.unsynced_names().len() {
        0 => vec![Keep::All],
        _ => vec![Keep::All, Keep::None],
    };
    let mut losses = Vec::new();
    for granularity in [512, 4_096] {
        let pages = world.fs.unsynced_pages(granularity).len();
        for keep in subsets(pages, extent, seed ^ granularity as u64) {
            for names in &names {
                let content = Content::Pages { granularity, keep: keep.clone() };
                losses.push(Survivors { names: names.clone(), content });
            }
        }
    }
    losses
}

/// All losses at all crashes of one seed. Answers how many states were checked.
fn explore(seed: u64, sync: SyncPolicy, extent: Extent, progress: &Progress) -> usize {
    let reference = Reference::of(seed, rw1::steps(seed), World::new(seed).sync(sync));
    let states = AtomicUsize::new(0);
    scale::in_parallel(&reference.mutating_calls(), |call| {
        let world = World::new(seed).sync(sync);
        world.fs.crash_before(*call);
        let outcome = run(&world, &reference.steps);
        if world.fs.unsynced_writes().is_empty() {
            return; // nothing can be lost
        }
        let allowed = match sync {
            SyncPolicy::Always => reference.allowed(outcome.answered),
            _ => reference.allowed_relaxed(&outcome),
        };
        for survivors in losses(&world, extent, *call) {
            let image = world.power_cut_leaving(&survivors);
            let context = || {
                let story = world.fs.story();
                format!("RW-1 seed {seed}, {sync:?}, power_cut_leaving({survivors:?})\n{story}")
            };
            reference.check(&image, allowed.clone(), &context);
            states.fetch_add(1, Ordering::Relaxed);
            progress.count();
        }
    });
    states.into_inner()
}

/// `SHARESTATE_LOST_PAGES=N` tries all subsets of up to 12 dirty units and 1,000 samples above, with
/// other seeds, until so many states were checked.
#[test]
fn lost_pages_lose_nothing_that_was_answered() {
    let wanted = scale::knob("SHARESTATE_LOST_PAGES", 1_500);
    let progress = Progress::new("lost-page-states", wanted);
    let (strict, relaxed) = if wanted > 1_500 {
        let extent = Extent { exhaustive: 12, samples: 1_000 };
        (extent, extent)
    } else {
        (Extent { exhaustive: 12, samples: 16 }, Extent { exhaustive: 2, samples: 2 })
    };
    let (mut states, mut seed) = (0, 2);
    while states < wanted {
        states += explore(seed, SyncPolicy::Always, strict, &progress);
        states += explore(seed, SyncPolicy::Never, relaxed, &progress);
        seed += 1;
    }
    println!("lost-page-states={states} seeds={} lost=0 invented=0", seed - 2);
}

/// Writes whose frames take so many batches that they lie on several sectors.
fn large_writes() -> Vec<Step> {
    let key = SharePartitionKey::new("g", Uuid::from_u128(0x51), 0).expect("valid");
    let initialize = Command::Initialize { key: key.clone(), state_epoch: 1, start_offset: 0 };
    let mut steps = vec![Step::Commands(vec![initialize])];
    for write in 0..80 {
        let batch = |n: i64| StateBatch {
            first_offset: n * 2,
            last_offset: n * 2,
            delivery_state: DeliveryState(2),
            delivery_count: 1,
        };
        let count = 34 + write % 16;
        let write = Command::Write {
            key: key.clone(),
            state_epoch: 1,
            leader_epoch: 0,
            start_offset: write * 100,
            delivery_complete_count: 0,
            batches: (write * 50..write * 50 + count).map(batch).collect(),
        };
        steps.push(Step::Commands(vec![write]));
    }
    steps
}

#[test]
fn a_frame_of_several_pages_is_there_whole_or_not_at_all() {
    let reference = Reference::of(5, large_writes(), World::new(5));
    let (of_three, states) = (AtomicUsize::new(0), AtomicUsize::new(0));
    scale::in_parallel(&reference.mutating_calls(), |call| {
        let world = World::new(5);
        world.fs.crash_before(*call);
        let outcome = run(&world, &reference.steps);
        let pages = world.fs.unsynced_pages(512).len();
        let is_data_frame = match world.fs.unsynced_writes().as_slice() {
            [write] => write.bytes > FRAME_HEADER_BYTES && write.offset > 0,
            _ => false,
        };
        if !is_data_frame || !(2..=3).contains(&pages) {
            return;
        }
        of_three.fetch_add(usize::from(pages == 3), Ordering::Relaxed);
        for bits in 0..1_u64 << pages {
            let content = Content::Pages { granularity: 512, keep: Keep::subset(bits) };
            let image = world.power_cut_leaving(&Survivors { names: Keep::All, content });
            let context = || format!("pages {bits:03b}\n{}", world.fs.story());
            let found = reference.check(&image, reference.allowed(outcome.answered), &context);
            let whole = bits == (1 << pages) - 1;
            assert_eq!(found > outcome.answered, whole, "{}", context());
            states.fetch_add(1, Ordering::Relaxed);
        }
    });
    let (of_three, states) = (of_three.into_inner(), states.into_inner());
    println!("torn-frame-states={states} frames-of-three-pages={of_three}");
    assert!(of_three >= 20);
}
