//! Snapshot against log: only what fits together opens.

use std::sync::atomic::{AtomicUsize, Ordering};

use sharestate::fsio::FsOp;
use sharestate::model::{
    AckRange, AckType, Command, DeliveryState, Marker, Outcome, SharePartitionKey, Stage, State,
    StateBatch,
};
use sharestate::snapshot::MemoryRows;
use sharestate::{ErrorClass, Options};
use uuid::Uuid;

use crate::rw1::{Random, Step};
use crate::scale;
use crate::world::{World, options, state_of};

/// The last entry of the log.
const LAST: u64 = 120;

/// Where the stages of an open transaction lie.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Open {
    Snapshot,
    Log,
    Both,
    Nowhere,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Log {
    /// One segment, without an entry.
    Empty,
    Whole,
    /// Without one of its middle segments.
    Gap,
}

fn key(n: usize) -> SharePartitionKey {
    let partition = i32::try_from(n % 4).expect("small");
    SharePartitionKey::new("g", Uuid::from_u128(0x51), partition).expect("valid")
}

fn stage(lsn: usize) -> Command {
    let first_offset = 100_000 + lsn as i64;
    Command::Stage(Stage {
        key: key(lsn),
        state_epoch: 1,
        leader_epoch: 0,
        producer_id: 77,
        producer_epoch: 0,
        two_phase: false,
        transaction_version: 2,
        transactional_id: "t".to_owned(),
        member_id: "m".to_owned(),
        member_epoch: 1,
        acks: vec![AckRange {
            first_offset,
            last_offset: first_offset,
            ack_type: AckType::Accept,
            commit_target: DeliveryState(2),
            abort_target: DeliveryState(0),
            delivery_count: 1,
        }],
    })
}

/// One entry a step, so that the n-th step has LSN n.
fn history(seed: u64, open: Open) -> Vec<Step> {
    let mut random = Random(seed);
    let mut command = |lsn: usize| {
        let (early, late) = (lsn == 8, lsn as u64 == LAST - 2);
        match (open, lsn) {
            (_, 1..=4) => Command::Initialize { key: key(lsn), state_epoch: 1, start_offset: 0 },
            (Open::Snapshot | Open::Both, _) if early => stage(lsn),
            (Open::Log | Open::Both, _) if late => stage(lsn),
            (Open::Nowhere, _) if early => stage(lsn),
            (Open::Nowhere, 10) => Command::Marker(Marker {
                producer_id: 77,
                producer_epoch: 1,
                coordinator_epoch: 0,
                outcome: Outcome::Commit,
                transaction_version: 2,
            }),
            _ => {
                let batch = |n: i64| StateBatch {
                    first_offset: lsn as i64 * 20 + n * 2,
                    last_offset: lsn as i64 * 20 + n * 2,
                    delivery_state: DeliveryState(2),
                    delivery_count: 1,
                };
                Command::Write {
                    key: key(random.below(4)),
                    state_epoch: 1,
                    leader_epoch: 0,
                    start_offset: -1,
                    delivery_complete_count: 0,
                    batches: (0..1 + random.below(6) as i64).map(batch).collect(),
                }
            }
        }
    };
    (1..=LAST as usize + 100).map(|lsn| Step::Commands(vec![command(lsn)])).collect()
}

/// A log and the rows of every LSN of one and the same store.
struct Store {
    whole: World,
    /// Right behind a rollover: the last segment has no entry.
    rolled: World,
    /// By LSN.
    rows: Vec<MemoryRows>,
    states: Vec<State>,
}

fn small_segments() -> Options {
    let mut options = options();
    options.segment_bytes = 4_096;
    options
}

fn build(seed: u64, open: Open) -> Store {
    let base = World::new(seed);
    let base = World::with(base.fs, base.rows, small_segments());
    drop(base.open().expect("created"));
    let steps = history(seed, open);

    // One run that never folds anything in.
    let log = base.restart();
    let store = log.open().expect("opens");
    for (number, step) in steps.iter().enumerate().take(LAST as usize) {
        log.step(&store, number, step).expect("no fault");
    }
    let whole = log.restart();
    drop(store);
    // The same, cut off behind the name of its last segment.
    let renamed = |call: &&sharestate::fsio::sim::Call| call.op == FsOp::Rename;
    let wal = whole.segments().last().expect("segments").1.clone();
    let trace = log.fs.trace();
    let rename = trace.iter().filter(renamed).rfind(|call| call.path.parent() == wal.parent());
    let rolled = base.restart();
    rolled.fs.crash_after(rename.expect("a rollover").number + 1);
    let store = rolled.open().expect("opens");
    for (number, step) in steps.iter().enumerate() {
        if rolled.step(&store, number, step).is_err() {
            break;
        }
    }
    let cut = rolled.power_cut(sharestate::fsio::sim::PageModel::AllKept);
    drop(store);

    // And one that folds in every entry.
    let snapshots = base.restart();
    let store = snapshots.open().expect("opens");
    let mut rows = vec![snapshots.rows.fork()];
    let mut states = vec![state_of(&store)];
    for (number, step) in steps.iter().enumerate() {
        snapshots.step(&store, number, step).expect("no fault");
        snapshots.step(&store, number, &Step::Checkpoint).expect("no fault");
        rows.push(snapshots.rows.fork());
        states.push(state_of(&store));
    }
    Store { whole, rolled: cut, rows, states }
}

/// The first and the last LSN of a log, and which are missing between.
struct Extent {
    first: u64,
    last: u64,
    gap: Option<(u64, u64)>,
}

fn log_image(store: &Store, log: Log) -> (World, Extent) {
    let source = if log == Log::Empty { &store.rolled } else { &store.whole };
    let image = source.restart();
    let segments = image.segments();
    assert!(segments.len() >= 5, "{} segments", segments.len());
    let first = if log == Log::Empty { segments.len() - 1 } else { 2 };
    segments[..first].iter().for_each(|(_, path)| image.fs.remove_content(path));
    let mut gap = None;
    if log == Log::Gap {
        image.fs.remove_content(&segments[3].1);
        gap = Some((segments[3].0, segments[4].0 - 1));
    }
    let first = segments[first].0;
    let last = if log == Log::Empty { first - 1 } else { LAST };
    (image, Extent { first, last, gap })
}

impl Extent {
    /// Whether nothing that a snapshot of this LSN lacks is missing, and it holds nothing more.
    fn fits(&self, snapshot: u64) -> bool {
        let gap_matters = self.gap.is_some_and(|(_, last)| snapshot < last);
        snapshot + 1 >= self.first && snapshot <= self.last && !gap_matters
    }
}

fn cell(store: &Store, log: Log, snapshot: Option<u64>, context: &str) -> bool {
    let (image, extent) = log_image(store, log);
    let rows = match snapshot {
        Some(lsn) => store.rows[lsn as usize].fork_on(&image.fs),
        None => MemoryRows::on(&image.fs),
    };
    let kept = rows.fork();
    let image = World::with(image.fs, rows, small_segments());
    let before = image.tree();
    match image.open() {
        Ok(opened) => {
            assert!(snapshot.is_some_and(|lsn| extent.fits(lsn)), "{context}: opened");
            assert_eq!(state_of(&opened), store.states[extent.last as usize], "{context}");
            assert_eq!(opened.progress().durable_lsn, extent.last, "{context}");
            true
        }
        Err(error) => {
            assert!(!snapshot.is_some_and(|lsn| extent.fits(lsn)), "{context}: {error}");
            assert_eq!(error.class(), ErrorClass::Corrupt, "{context}: {error}");
            assert_eq!(image.tree(), before, "{context}: something was touched");
            assert_eq!(
                format!("{:?}", image.rows.fork_on(&image.fs)),
                format!("{:?}", kept.fork_on(&image.fs))
            );
            false
        }
    }
}

#[test]
fn only_a_snapshot_and_a_log_that_fit_together_open() {
    let seeds: Vec<u64> = (1..=10).collect();
    let (cells, opened) = (AtomicUsize::new(0), AtomicUsize::new(0));
    scale::in_parallel(&seeds, |seed| {
        for open in [Open::Snapshot, Open::Log, Open::Both, Open::Nowhere] {
            let store = build(*seed, open);
            for log in [Log::Empty, Log::Whole, Log::Gap] {
                let (_, extent) = log_image(&store, log);
                let (first, last) = (extent.first, extent.last);
                let inside = first + 5;
                let snapshots = [first - 2, first - 1, inside, last, last + 1, last + 100];
                for snapshot in snapshots.map(Some).into_iter().chain([None]) {
                    let context = format!(
                        "seed {seed}, {open:?}, {log:?}, snapshot {snapshot:?} of {first}..={last}"
                    );
                    let did = cell(&store, log, snapshot, &context);
                    cells.fetch_add(1, Ordering::Relaxed);
                    opened.fetch_add(usize::from(did), Ordering::Relaxed);
                }
            }
        }
    });
    let (cells, opened) = (cells.into_inner(), opened.into_inner());
    println!("snapshot-log-cells={cells} opened={opened} refused={}", cells - opened);
    assert_eq!(cells, 840);
    assert!(opened > 200 && opened < cells);
}
