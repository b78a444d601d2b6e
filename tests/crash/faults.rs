//! Every call fails once, or from then on.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use sharestate::fsio::FsOp;
use sharestate::fsio::sim::{
    Call, EACCES, EIO, EMFILE, ENOSPC, EROFS, Fault, PageModel, Repeat, When,
};
use sharestate::log::LogError;
use sharestate::{ErrorClass, Poison, StoreError};

use crate::judged::{self, Judged};
use crate::reference::{Reference, run};
use crate::rw1;
use crate::scale;
use crate::world::{StepError, World};

/// A place in the store's code that makes a call, as far as a trace can tell places apart.
type Site = (&'static str, FsOp, String);

fn site(phase: &'static str, call: &Call) -> Site {
    let name = call.path.file_name().map_or_else(String::new, |name| {
        let name = name.to_string_lossy();
        if name.ends_with(".wal") { "segment".to_owned() } else { name.into_owned() }
    });
    (phase, call.op, name)
}

fn phase(reference: &Reference, call: &Call) -> &'static str {
    let steps = reference.answered.partition_point(|calls| *calls < call.number);
    match steps {
        0 => "open",
        steps if steps > reference.steps.len() => "close",
        steps if matches!(reference.steps[steps - 1], rw1::Step::Checkpoint) => "checkpoint",
        _ => "run",
    }
}

#[derive(Debug, Clone, Copy)]
struct Case {
    call: u64,
    errno: i32,
    repeat: Repeat,
}

/// A store that keeps no row in memory that it can read again, so that reads fail in earnest.
fn world(seed: u64) -> World {
    let mut world = World::new(seed);
    world.options.cache_bytes = 0;
    world
}

/// EIO at the calls, once and for good; the other errors at the first call of every site.
fn cases(sites: &[(u64, Site)], all: bool) -> (Vec<Case>, usize) {
    let (mut cases, mut seen) = (Vec::new(), BTreeSet::new());
    for (index, (call, site)) in sites.iter().enumerate() {
        let is_new = seen.insert(site.clone());
        // Of the many frames and rows that are handled alike every eighth.
        let alike = matches!(site.1, FsOp::Write | FsOp::SyncData | FsOp::ReadRows);
        let is_frame = site.0 == "run" && alike;
        let errnos: &[i32] = match (is_new || all, is_frame) {
            (true, _) => &[EIO, EACCES, EMFILE, ENOSPC, EROFS],
            (false, true) if index % 8 > 1 => &[],
            (false, _) => &[EIO],
        };
        for errno in errnos {
            for repeat in [Repeat::Once, Repeat::Sticky] {
                cases.push(Case { call: *call, errno: *errno, repeat });
            }
        }
    }
    (cases, seen.len())
}

/// `SHARESTATE_FAULTS=1` takes every error at every call.
#[test]
fn after_a_failing_call_nothing_answered_is_lost_and_nothing_later_succeeds() {
    let reference = Reference::of(3, rw1::steps(3), world(3));
    let sites: Vec<_> = reference
        .trace
        .iter()
        .map(|call| (call.number, site(phase(&reference, call), call)))
        .collect();
    let (cases, places) = cases(&sites, scale::knob("SHARESTATE_FAULTS", 0) > 0);
    let (poisoned, refused, skipped) =
        (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let unnoticed = Mutex::new(BTreeSet::new());
    scale::in_parallel(&cases, |case| {
        let world = world(reference.seed);
        let Case { call, errno, repeat } = *case;
        world.fs.fail(Fault { when: When::Call(call), errno, repeat });
        let context = || format!("RW-1 seed 3, {case:?}\n{}", world.fs.story());
        let judged = judged::run(&world, &reference.steps, &context);
        tells_what_failed(&judged, &reference.trace[call as usize - 1], *case, &context);
        judged.check(&world, &reference, call, &context);
        poisoned.fetch_add(usize::from(judged.failure.is_some()), Ordering::Relaxed);
        refused.fetch_add(usize::from(judged.open_error.is_some()), Ordering::Relaxed);
        skipped.fetch_add(usize::from(judged.skipped > 0), Ordering::Relaxed);
        if judged.is_unnoticed() {
            unnoticed.lock().expect("set").insert(sites[call as usize - 1].1.clone());
        }
    });
    // A purge that fails is tried again by the next checkpoint; and the reads are of the call that
    // only holds the store up.
    let is_expected = |(phase, op, _): &Site| match op {
        FsOp::Remove | FsOp::SyncDir => *phase == "checkpoint" || *phase == "close",
        FsOp::ReadRows => *phase == "run",
        _ => false,
    };
    let unnoticed = unnoticed.into_inner().expect("set");
    assert!(unnoticed.iter().all(is_expected), "nobody was told: {unnoticed:?}");
    println!(
        "poisoned={} refused-to-open={} steps-refused={}",
        poisoned.into_inner(),
        refused.into_inner(),
        skipped.into_inner()
    );
    println!("failing-call-cases={} call-sites={places} lost=0 invented=0", cases.len());
    assert!(cases.len() >= 800);
}

/// The error of a store that failed names the call: what, where, and the system's answer.
fn tells_what_failed(judged: &Judged, call: &Call, case: Case, context: &dyn Fn() -> String) {
    if let Some(error) = &judged.open_error {
        // What is tried next, on a full disk, may fail too and be told instead.
        let path = call.path.display().to_string();
        let text = error.to_string();
        let is_told = text.contains(&path);
        let is_later = case.repeat == Repeat::Sticky && text.contains("/store");
        assert!(is_told || is_later, "{text}\n{}", context());
    }
    let Some(failure) = &judged.failure else { return };
    let StepError::Store(StoreError::OutcomeUnknown(Poison::Log(error))) = failure else {
        panic!("{failure}\n{}", context());
    };
    let LogError::Failed { source, .. } = &**error else { panic!("{error}\n{}", context()) };
    assert_eq!(source.raw_os_error(), Some(case.errno), "{}", context());
    assert_eq!((source.op, &source.path), (call.op, &call.path), "{}", context());
    if call.op == FsOp::Write {
        assert_eq!(source.offset, Some(call.offset), "{}", context());
    }
}

/// What crashes leave: torn frames, unfinished rollovers, checkpoints, purges and creations.
fn crashed(reference: &Reference, step: usize) -> Vec<(World, usize)> {
    let mut images = Vec::new();
    for call in reference.mutating_calls().into_iter().step_by(step) {
        let world = World::new(reference.seed);
        world.fs.crash_after(call);
        let answered = run(&world, &reference.steps).answered;
        let model = PageModel::Random { seed: call, granularity: 512 };
        images.push((world.power_cut(model), answered));
    }
    images
}

#[test]
fn a_failing_call_of_a_recovery_leaves_everything_for_the_next() {
    let reference = Reference::rw1(4);
    let (cases, refused, sites) =
        (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(BTreeSet::new()));
    let step = if scale::knob("SHARESTATE_FAULTS", 0) > 0 { 3 } else { 37 };
    scale::in_parallel(&crashed(&reference, step), |(start, answered)| {
        let dry = start.restart();
        drop(dry.open().expect("no fault"));
        for call in dry.fs.trace() {
            for repeat in [Repeat::Once, Repeat::Sticky] {
                let world = start.restart();
                let fault = Fault { when: When::Call(call.number), errno: EIO, repeat };
                world.fs.fail(fault);
                let context = || format!("RW-1 seed 4, {repeat:?} {call}\n{}", world.fs.story());
                if let Err(error) = world.open() {
                    assert_eq!(error.class(), ErrorClass::Io, "{error}\n{}", context());
                    refused.fetch_add(1, Ordering::Relaxed);
                }
                let models = [PageModel::AllKept, PageModel::UnsyncedLost];
                for image in models.map(|model| world.power_cut(model)) {
                    reference.check(&image, reference.allowed(*answered), &context);
                }
                cases.fetch_add(1, Ordering::Relaxed);
                sites.lock().expect("set").insert(site("recover", &call));
            }
        }
    });
    let (cases, refused) = (cases.into_inner(), refused.into_inner());
    let sites = sites.into_inner().expect("set").len();
    println!(
        "failing-recovery-cases={cases} refused={refused} call-sites={sites} lost=0 invented=0"
    );
    assert!(cases > 500 && refused > 100);
}
