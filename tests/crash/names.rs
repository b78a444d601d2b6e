//! Names: each is synced before an answer rests on it, and none that is lost before that matters.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use sharestate::fsio::FsOp;
use sharestate::fsio::sim::{Call, Content, Keep, PageModel, Survivors};

use crate::reference::{Reference, run};
use crate::rw1;
use crate::scale;
use crate::world::World;

/// A store that also keeps a reserve.
fn world(seed: u64) -> World {
    let mut world = World::new(seed);
    world.options.reserve_bytes = 4_096;
    world
}

/// Follows a trace: the directories with names that changed and were not synced.
#[derive(Default)]
struct Unsynced {
    dirs: BTreeSet<PathBuf>,
    changed: usize,
    existing: BTreeSet<PathBuf>,
}

impl Unsynced {
    fn follow(&mut self, call: &Call) {
        let changes = match call.op {
            FsOp::Create | FsOp::CreateDir | FsOp::Rename | FsOp::Remove => true,
            FsOp::Lock => self.existing.insert(call.path.clone()),
            FsOp::SyncDir => {
                self.dirs.remove(&call.path);
                false
            }
            _ => false,
        };
        if changes {
            self.changed += 1;
            self.dirs.insert(call.path.parent().expect("absolute").to_owned());
        }
    }
}

#[test]
fn every_changed_name_is_synced_before_an_answer() {
    let (mut answers, mut changed) = (0, 0);
    for seed in 1..6 {
        let reference = Reference::of(seed, rw1::steps(seed), world(seed));
        let mut unsynced = Unsynced::default();
        let mut answered = reference.answered.iter().copied().peekable();
        for call in &reference.trace {
            while answered.next_if(|calls| call.number > *calls).is_some() {
                answers += 1;
                assert!(unsynced.dirs.is_empty(), "before {call}: {:?}", unsynced.dirs);
            }
            unsynced.follow(call);
        }
        assert!(unsynced.dirs.is_empty(), "at the end: {:?}", unsynced.dirs);
        changed += unsynced.changed;
    }
    println!("changed-names={changed} answers={answers} violations=0");
    assert!(changed > 100);
}

#[test]
fn a_recovery_syncs_every_name_before_it_serves() {
    let reference = Reference::of(1, rw1::steps(1), world(1));
    let (mut changed, mut recoveries) = (0, 0);
    for call in reference.mutating_calls().into_iter().step_by(3) {
        let crashed = world(1);
        crashed.fs.crash_after(call);
        run(&crashed, &reference.steps);
        let image = crashed.power_cut(PageModel::Random { seed: call, granularity: 512 });
        let store = image.open().unwrap_or_else(|error| panic!("call {call}: {error}"));
        let mut unsynced = Unsynced::default();
        unsynced.existing.insert(PathBuf::from("/store/LOCK"));
        image.fs.trace().iter().for_each(|call| unsynced.follow(call));
        let left = image.fs.unsynced_names();
        let left: Vec<_> = left.iter().filter(|call| call.op != FsOp::Lock).collect();
        assert!(left.is_empty() && unsynced.dirs.is_empty(), "call {call}: {left:?}");
        changed += unsynced.changed;
        recoveries += 1;
        drop(store);
    }
    println!("recoveries={recoveries} changed-names={changed} violations=0");
}

#[test]
fn a_creation_that_was_killed_leaves_no_name_that_the_next_one_does_not_sync() {
    let reference = Reference::of(1, rw1::steps(1), world(1));
    let creation =
        reference.mutating_calls().into_iter().take_while(|c| *c <= reference.answered[0]);
    let mut killed = 0;
    for call in creation {
        let world = world(1);
        world.fs.crash_before(call);
        let opened = world.open(); // fails, unless only the reserve was left to make
        // The machine stays up, so what was made is seen and believed.
        let again = world.restart();
        drop(opened);
        again.goes_on(&|| format!("killed before call {call}\n{}", world.fs.story()));
        killed += 1;
    }
    println!("killed-creations={killed} lost=0");
}

/// Each un-synced name lost alone, each pair of them lost, and each alone kept.
fn losses(names: usize) -> Vec<Keep> {
    let single = (0..names).map(|lost| Keep::except([lost]));
    let pairs = (0..names).flat_map(|a| (0..a).map(move |b| Keep::except([a, b])));
    let alone = (0..names).map(|kept| Keep::Only(BTreeSet::from([kept])));
    single.chain(pairs).chain(alone).collect()
}

/// `SHARESTATE_LOST_NAMES=N` takes so many seeds.
#[test]
fn a_lost_name_alone_or_in_a_pair_loses_nothing_that_was_answered() {
    let states = AtomicUsize::new(0);
    let most = AtomicUsize::new(0);
    for seed in 1..=scale::knob("SHARESTATE_LOST_NAMES", 1) as u64 {
        let reference = Reference::of(seed, rw1::steps(seed), world(seed));
        scale::in_parallel(&reference.mutating_calls(), |call| {
            let crashed = world(seed);
            crashed.fs.crash_before(*call);
            let outcome = run(&crashed, &reference.steps);
            let names = crashed.fs.unsynced_names().len();
            most.fetch_max(names, Ordering::Relaxed);
            for names in losses(names) {
                for writes in [Keep::All, Keep::None] {
                    let content = Content::Writes(writes);
                    let survivors = Survivors { names: names.clone(), content };
                    let image = crashed.power_cut_leaving(&survivors);
                    let context = || {
                        let story = crashed.fs.story();
                        format!("RW-1 seed {seed}, power_cut_leaving({survivors:?})\n{story}")
                    };
                    reference.check(&image, reference.allowed(outcome.answered), &context);
                    states.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    }
    let (states, most) = (states.into_inner(), most.into_inner());
    println!("lost-name-states={states} names-at-once={most} lost=0 invented=0");
    assert!(most >= 2, "pairs were lost too");
}
