//! Row 18: no file descriptors left, at open, rollover and checkpoint; and none lost over time.

use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sharestate::{CheckpointError, ErrorClass, ShareStore};

use super::child::{in_namespace, job, knob, memory_dir, respawn, say, succeed};
use super::full_disk::mount_tmpfs;
use super::support::{batch, key, write};
use super::work::{Record, assert_io, assert_poisoned, made, options};

const FEW: &str = "descriptors::a_store_without_descriptors_fails_cleanly_and_goes_on_later";
const LEAK: &str = "descriptors::no_descriptor_is_lost_over_ten_thousand_rollovers";

/// How often each case went well, and how often it did not.
#[derive(Debug, Default)]
struct Counts {
    cases: u32,
    refused_opens: u32,
    poisoned: u32,
    failed_checkpoints: u32,
    /// Of a store whose limit was raised again, until it was opened anew.
    stuck_checkpoints: u32,
}

#[test]
fn a_store_without_descriptors_fails_cleanly_and_goes_on_later() {
    if let Some(job) = job() {
        return starve_all(Path::new(&job[0]));
    }
    let dir = memory_dir();
    let path = dir.path().join("store");
    let said = succeed(respawn(FEW, &[path.to_str().expect("UTF-8")]));
    println!("{}", said.last().expect("counts"));
}

fn starve_all(path: &Path) {
    let mut record = made(path, &options(0));
    let mut counts = Counts::default();
    for limit in 3..=64 {
        at_open(path, limit, &mut record, &mut counts);
        at_rollover(path, limit, &mut record, &mut counts);
        at_checkpoint(path, limit, &mut record, &mut counts);
    }
    let Counts { cases, refused_opens, poisoned, failed_checkpoints, stuck_checkpoints } = counts;
    assert!(refused_opens > 0 && poisoned > 0, "{counts:?}");
    say(&format!(
        "nofile-cases={cases} refused-opens={refused_opens} poisoned={poisoned} \
         failed-checkpoints={failed_checkpoints} stuck-checkpoints={stuck_checkpoints} \
         acknowledged={} lost=0 invented=0",
        record.acked.len()
    ));
}

fn at_open(path: &Path, limit: u64, record: &mut Record, counts: &mut Counts) {
    counts.cases += 1;
    limit_descriptors(Some(limit));
    let opened = ShareStore::open(path, &options(0));
    limit_descriptors(None);
    match opened {
        Ok(store) => record.check(&store),
        Err(error) => {
            assert_io(&error, "Too many open files");
            counts.refused_opens += 1;
        }
    }
    record.check(&ShareStore::open(path, &options(0)).expect("the limit is raised"));
}

/// An 8 KiB segment takes fewer than a hundred of these.
fn at_rollover(path: &Path, limit: u64, record: &mut Record, counts: &mut Counts) {
    counts.cases += 1;
    let store = ShareStore::open(path, &options(0)).expect("open");
    limit_descriptors(Some(limit));
    let failed = record.work(&store, 120);
    limit_descriptors(None);
    match failed {
        Some(error) => {
            assert_poisoned(&error, "Too many open files");
            counts.poisoned += 1;
            assert!(record.step(&store).is_err(), "only a fresh open decides");
        }
        None => assert!(record.work(&store, 20).is_none()),
    }
    drop(store);
    record.check(&ShareStore::open(path, &options(0)).expect("the limit is raised"));
}

fn at_checkpoint(path: &Path, limit: u64, record: &mut Record, counts: &mut Counts) {
    counts.cases += 1;
    let store = ShareStore::open(path, &options(0)).expect("open");
    assert!(record.work(&store, 5).is_none());
    limit_descriptors(Some(limit));
    let result = store.blocking().checkpoint();
    limit_descriptors(None);
    if let Err(error) = result {
        assert!(matches!(&error, CheckpointError::Snapshot(e) if !e.is_corruption()), "{error}");
        counts.failed_checkpoints += 1;
    }
    // RocksDB whose background work has failed takes nothing more until it is opened anew; the log
    // goes on.
    assert!(record.work(&store, 5).is_none(), "the limit is raised");
    if let Err(error) = store.blocking().checkpoint() {
        assert!(matches!(&error, CheckpointError::Snapshot(e) if !e.is_corruption()), "{error}");
        counts.stuck_checkpoints += 1;
    }
    record.check(&store);
    drop(store);
    let store = ShareStore::open(path, &options(0)).expect("open");
    record.check(&store);
    store.blocking().checkpoint().expect("after a fresh open it goes on");
    store.blocking().close().expect("close");
}

#[test]
fn no_descriptor_is_lost_over_ten_thousand_rollovers() {
    if let Some(job) = job() {
        return roll_over(Path::new(&job[0]), job[1].parse().expect("a number"));
    }
    let dir = tempfile::tempdir().expect("directory");
    let rollovers = knob("SHARESTATE_ROLLOVERS", 10_000).to_string();
    let said = succeed(in_namespace(LEAK, &[dir.path().to_str().expect("UTF-8"), &rollovers]));
    println!("{}", said.last().expect("counts"));
}

/// Every write fills a segment of its own. On a memory file system, where a sync costs nothing.
fn roll_over(mount: &Path, rollovers: i64) {
    mount_tmpfs(mount, "size=64m");
    let mut options = options(0);
    options.segment_bytes = 4 << 10;
    options.background_segments = false;
    let store = ShareStore::open(mount.join("store"), &options).expect("open");
    store.blocking().initialize(&key("g", 0), 1, 0).expect("initialize");
    let step = |n: i64| {
        // States differ, so that nothing merges; the same offsets again, so that the row stays.
        let batches: Vec<_> = (0..140)
            .map(|at| {
                batch(at, at, if at % 2 == 0 { 0 } else { 2 }, i16::try_from(n % 30_000).unwrap())
            })
            .collect();
        store.blocking().write(&key("g", 0), write(&batches)).expect("write");
    };
    (1..100).for_each(step);
    store.blocking().checkpoint().expect("checkpoint");
    let before = descriptors();
    (100..100 + rollovers).for_each(step);
    store.blocking().checkpoint().expect("checkpoint");
    // RocksDB tidies up in the background.
    let after = (0..100).map(|_| rest()).find(|now| *now <= before).unwrap_or_else(descriptors);
    let durable = store.progress().durable_lsn;
    assert_eq!(before, after, "descriptors");
    let segments = super::support::segments(&mount.join("store"));
    let last = segments.last().and_then(|path| path.file_stem()?.to_str()?.parse::<u64>().ok());
    assert!(durable - last.expect("a segment") <= 1, "every write rolled over");
    say(&format!("rollovers={rollovers} descriptors-before={before} descriptors-after={after}"));
}

fn rest() -> usize {
    std::thread::sleep(std::time::Duration::from_millis(20));
    descriptors()
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("/proc").count()
}

fn limit_descriptors(current: Option<u64>) {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let current = current.or(maximum);
    setrlimit(Resource::Nofile, Rlimit { current, maximum }).expect("setrlimit");
}

/// Kept apart so that the class of a refused open stays what a broker can act on.
#[test]
fn running_out_of_descriptors_is_told_as_an_io_error() {
    if let Some(job) = job() {
        limit_descriptors(Some(3));
        let error = ShareStore::open(&job[0], &options(0)).expect_err("no descriptor is left");
        assert_eq!(error.class(), ErrorClass::Io, "{error}");
        assert!(error.to_string().contains(&job[0]), "the path is named: {error}");
        limit_descriptors(None);
        return say("told");
    }
    let dir = tempfile::tempdir().expect("directory");
    let path = dir.path().join("store");
    drop(made(&path, &options(0)));
    let test = "descriptors::running_out_of_descriptors_is_told_as_an_io_error";
    assert_eq!(succeed(respawn(test, &[path.to_str().expect("UTF-8")])), ["told"]);
}
