//! Segments that come back after a purge, and segments that are gone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use sharestate::log::LogError;
use sharestate::snapshot::MemoryRows;
use sharestate::{ErrorClass, OpenError, ShareStore};

use crate::reference::Reference;
use crate::rw1::{self, Step};
use crate::world::World;

/// A run of which every moment is kept: what a kill after each number of steps leaves.
struct Moments {
    reference: Reference,
    images: Vec<World>,
    /// What the snapshot held before its last checkpoint, at every moment.
    older_rows: Vec<MemoryRows>,
    /// Every segment that ever was, with its last content.
    ever: BTreeMap<PathBuf, Vec<u8>>,
    /// And with what it held when it was half written.
    younger: BTreeMap<PathBuf, Vec<u8>>,
}

impl Moments {
    fn of(seed: u64) -> Self {
        let reference = Reference::rw1(seed);
        let world = World::new(seed);
        let store = world.open().expect("no fault");
        let mut moments = Self {
            reference,
            images: vec![world.restart()],
            older_rows: vec![world.rows.fork()],
            ever: BTreeMap::new(),
            younger: BTreeMap::new(),
        };
        for number in 0..moments.reference.steps.len() {
            for (first_lsn, path) in world.segments() {
                let content = world.fs.content(&path).expect("listed");
                if store.progress().durable_lsn == first_lsn + 20 {
                    moments.younger.insert(path.clone(), content.clone());
                }
                moments.ever.insert(path, content);
            }
            let step = &moments.reference.steps[number];
            let older = match step {
                Step::Checkpoint => world.rows.fork(),
                Step::Commands(_) => moments.older_rows[number].clone(),
            };
            moments.older_rows.push(older);
            world.step(&store, number, step).expect("no fault");
            moments.images.push(world.restart());
        }
        moments
    }

    /// The state with this number, with segments put back.
    fn with(&self, steps: usize, back: &[(&PathBuf, &Vec<u8>)]) -> World {
        let image = self.images[steps].restart();
        back.iter().for_each(|(path, content)| image.fs.set_content(path, content));
        image
    }
}

/// Opens or refuses for a foreign segment, untouched; in no case is anything replayed that is not
/// of this history.
fn is_never_replayed(moments: &Moments, steps: usize, image: &World, foreign: bool) {
    let before = image.tree();
    match image.restart().open() {
        Ok(store) => drop(store),
        Err(OpenError::Log(LogError::Foreign { .. })) if foreign => {
            assert_eq!(image.tree(), before);
            return;
        }
        Err(error) => panic!("after {steps} steps: {error}"),
    }
    assert!(!foreign, "after {steps} steps: a foreign segment was taken");
    moments.reference.check(image, steps..=steps, &|| format!("after {steps} steps"));
    // Nor does it come back again.
    moments.reference.check(&image.restart(), steps..=steps, &|| format!("{steps} steps, again"));
}

#[test]
fn a_purged_segment_that_comes_back_is_never_replayed() {
    let (moments, others) = (Moments::of(7), Moments::of(8));
    let (mut cases, mut purges, mut last_gone) = (0, 0, 0);
    for steps in 0..moments.images.len() {
        let image = &moments.images[steps];
        let present = image.segments();
        let oldest = &present[0].1;
        let gone: Vec<_> = moments.ever.iter().filter(|(path, _)| *path < oldest).collect();
        purges += usize::from(gone.len() > last_gone);
        if gone.is_empty() || (gone.len() == last_gone && steps % 2 != 0) {
            continue;
        }
        last_gone = gone.len();
        // Each alone, and all at once.
        for back in gone.iter().map(std::slice::from_ref).chain([gone.as_slice()]) {
            is_never_replayed(&moments, steps, &moments.with(steps, back), false);
            cases += 1;
        }
        for (path, _) in &gone {
            // As it was when it was younger, and that of another store.
            if let Some(younger) = moments.younger.get(*path) {
                is_never_replayed(&moments, steps, &moments.with(steps, &[(path, younger)]), false);
                cases += 1;
            }
            let foreign = others.ever.values().next().expect("a segment");
            is_never_replayed(&moments, steps, &moments.with(steps, &[(path, foreign)]), true);
            cases += 1;
        }
    }
    println!("resurrected-segment-cases={cases} purges={purges} replayed=0");
    assert!(cases >= 200 && purges >= 2);
}

#[test]
fn the_log_reaches_back_to_the_checkpoint_before_the_last() {
    let moments = Moments::of(7);
    let (mut cases, mut last_lsns) = (0, BTreeSet::new());
    for (steps, older) in moments.older_rows.iter().enumerate() {
        let image = moments.images[steps].restart();
        let rows = older.fork_on(&image.fs);
        let image = World::with(image.fs, rows, image.options);
        let context = || format!("after {steps} steps, the last checkpoint is lost");
        let store = image.restart().open().expect("opens");
        last_lsns.insert(store.recovery().snapshot_lsn);
        moments.reference.check(&image, steps..=steps, &context);
        cases += 1;
    }
    println!("lost-checkpoint-cases={cases} older-snapshots={}", last_lsns.len());
    assert_eq!(last_lsns.len(), 3, "none, the first and the second: {last_lsns:?}");
}

/// The log of about ten small segments from which nothing was purged.
fn unpurged() -> World {
    let mut world = World::new(9);
    world.options.segment_bytes = 4_096;
    let store = world.open().expect("no fault");
    for (number, step) in rw1::steps(9).iter().enumerate() {
        if matches!(step, Step::Commands(_)) {
            world.step(&store, number, step).expect("no fault");
        }
        if world.segments().len() == 10 && store.progress().durable_lsn > last_lsn_of(&world) + 3 {
            break;
        }
    }
    world.restart()
}

fn last_lsn_of(world: &World) -> u64 {
    world.segments().last().expect("segments").0
}

/// Refused as damage, with nothing changed. Answers why.
fn refused(image: &World) -> LogError {
    let before = image.tree();
    let error: OpenError = match image.open() {
        Ok(store) => panic!("opened, {:?}", ShareStore::recovery(&store)),
        Err(error) => error,
    };
    assert_eq!(error.class(), ErrorClass::Corrupt, "{error}");
    assert_eq!(image.tree(), before, "{error}");
    match error {
        OpenError::Log(error) => error,
        other => panic!("{other}"),
    }
}

/// The first LSN that the error says is missing.
fn missing(error: &LogError) -> u64 {
    match error {
        LogError::Missing { first, .. } => *first,
        LogError::MissingSuccessor { next_lsn, .. } => *next_lsn,
        other => panic!("{other}"),
    }
}

#[test]
fn a_missing_segment_is_told_by_its_number() {
    let whole = unpurged();
    let segments = whole.segments();
    assert_eq!(segments.len(), 10);
    let (mut alone, mut pairs, mut empty) = (0, 0, 0);
    for (number, path) in &segments {
        let image = whole.restart();
        image.fs.remove_content(path);
        assert_eq!(missing(&refused(&image)), *number);
        alone += 1;

        let image = whole.restart();
        image.fs.set_content(path, b"");
        match refused(&image) {
            LogError::Corrupt { path: found, offset, lsn, .. } => {
                assert_eq!((&found, offset, lsn), (path, 0, *number));
            }
            error => panic!("{error}"),
        }
        empty += 1;

        for (later, other) in segments.iter().filter(|(later, _)| later > number) {
            let image = whole.restart();
            image.fs.remove_content(path);
            image.fs.remove_content(other);
            let told = missing(&refused(&image));
            assert!(told == *number || told == *later, "{number}, {later}: {told}");
            pairs += 1;
        }
    }
    println!(
        "missing-segment-cases={} alone={alone} pairs={pairs} empty={empty}",
        alone + pairs + empty
    );
    assert_eq!((alone, pairs, empty), (10, 45, 10));
}
