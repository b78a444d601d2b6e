//! Writes of RocksDB's that fail while the log goes on: checkpoints go on too, as soon as they can,
//! without a restart.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use sharestate::{CheckpointError, Options, ShareStore, StateBatch};

use super::child::{job, knob, memory_dir, program, say, succeed, wrapped};
use super::file_size::limit_files;
use super::support::{batch, contents, key, segments, write};
use super::work::Record;

const TEST: &str = "snapshot_writes::a_checkpoint_that_failed_succeeds_once_there_is_room";

/// Enough for a segment, too little for what RocksDB needs to be opened.
const LIMIT: u64 = 60_000;

/// Share partitions whose rows are too large together to be written under the limit.
const LARGE: std::ops::Range<i32> = 1..9;
const BATCHES: i64 = 1_000;

#[test]
fn a_checkpoint_that_failed_succeeds_once_there_is_room() {
    if let Some(job) = job() {
        return fail_and_go_on(Path::new(&job[0]), job[1].parse().expect("a number"));
    }
    let dir = memory_dir();
    let rounds = knob("SHARESTATE_SNAPSHOT_FAILURES", 20);
    let path = dir.path().join("store");
    let job = [path.to_str().expect("UTF-8"), &rounds.to_string()];
    let wrapper = ["env", "--ignore-signal=XFSZ"];
    println!("{}", succeed(wrapped(&wrapper, &program(), TEST, &job)).last().expect("counts"));
}

fn options() -> Options {
    let mut options = Options::default();
    options.segment_bytes = 48 << 10;
    options.checkpoint_log_bytes = Some(u64::MAX); // none but those asked for
    options.reserve_bytes = 64 << 10;
    options.cache_bytes = 0; // every reading meets RocksDB
    options
}

fn fail_and_go_on(path: &Path, rounds: usize) {
    let options = options();
    let mut store = ShareStore::open(path, &options).expect("open");
    let mut record = Record::new(0);
    record.start(&store).expect("initialize");
    for partition in LARGE {
        store.blocking().initialize(&key("large", partition), 1, 0).expect("initialize");
    }
    store.blocking().checkpoint().expect("nothing is wrong yet");
    let (mut failures, readings) = (0, AtomicU64::new(0));
    for round in 0..rounds {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Acquire) {
                    store.blocking().list(None, None, 100).expect("rows are read throughout");
                    readings.fetch_add(1, Ordering::Relaxed);
                }
            });
            let _over = OnDrop(&over);
            failures += fail_one(&store, &mut record, round);
        });
        record.check(&store);
        assert!(segments(path).len() <= 8, "the log is purged again: {:?}", segments(path));
        if round % 5 == 4 {
            let before = contents(&store);
            drop(store);
            store = ShareStore::open(path, &options).expect("open");
            assert_eq!(contents(&store), before, "round {round}");
        }
    }
    store.blocking().close().expect("close");
    let (acked, readings) = (record.acked.len(), readings.into_inner());
    say(&format!(
        "snapshot-failures={failures} rounds={rounds} acknowledged={acked} \
         readings-meanwhile={readings} lost=0 invented=0"
    ));
}

/// Ends the reader also when the test fails.
struct OnDrop<'a>(&'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Lets checkpoints fail, then no more. Answers how many failed.
fn fail_one(store: &ShareStore, record: &mut Record, round: usize) -> usize {
    let blocking = store.blocking();
    for partition in LARGE {
        blocking.write(&key("large", partition), write(&many_batches(round))).expect("write");
    }
    limit_files(Some(LIMIT));
    let mut failed = 0;
    for attempt in 0..3 {
        let error = blocking.checkpoint().expect_err("there is no room");
        let told = error.to_string();
        assert!(matches!(error, CheckpointError::Snapshot(_)), "{told}");
        assert!(told.contains("File too large"), "attempt {attempt}: {told}");
        failed += 1;
        assert!(record.work(store, 10).is_none(), "the log goes on");
    }
    limit_files(None);
    blocking.checkpoint().expect("there is room now");
    assert!(record.work(store, 10).is_none(), "the log goes on");
    blocking.checkpoint().expect("the log is purged up to the one before");
    failed
}

/// Neighbours differ, so that they cannot be joined.
fn many_batches(round: usize) -> Vec<StateBatch> {
    let round = i16::try_from(round % 1_000).expect("small");
    let count = |offset: i64| 1 + round * 2 + i16::try_from(offset % 2).expect("0 or 1");
    (0..BATCHES).map(|offset| batch(offset, offset, 0, count(offset))).collect()
}
