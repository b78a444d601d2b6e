//! A limit on the size of files: writes that are really cut short, then EFBIG.

use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sharestate::{ErrorClass, ShareStore};

use super::child::{job, knob, memory_dir, program, say, succeed, wrapped};
use super::support::segments;
use super::work::{Record, SEGMENT_BYTES, assert_poisoned, options};

const TEST: &str = "file_size::a_write_that_is_cut_short_by_a_limit_harms_nothing";

#[test]
fn a_write_that_is_cut_short_by_a_limit_harms_nothing() {
    if let Some(job) = job() {
        return cut_all(Path::new(&job[0]), job[1].parse().expect("a number"));
    }
    let dir = memory_dir();
    let limits = knob("SHARESTATE_FILE_LIMITS", 64);
    let wrapper = ["env", "--ignore-signal=XFSZ"];
    let path = dir.path().join("store");
    let job = [path.to_str().expect("UTF-8"), &limits.to_string()];
    println!("{}", succeed(wrapped(&wrapper, &program(), TEST, &job)).last().expect("counts"));
}

fn cut_all(path: &Path, limits: usize) {
    let options = options(0);
    let mut record = Record::new(0);
    let (mut torn, mut unopened) = (0, 0);
    for number in 0..limits as u64 {
        let store = ShareStore::open(path, &options).expect("open");
        torn += usize::from(
            store.recovery().repair.as_ref().is_some_and(|repair| repair.cut.is_some()),
        );
        record.check(&store);
        record.start(&store).expect("initialize");
        // Somewhere inside one of the next frames, seldom at its edge. A limit below the size of a
        // segment also forbids the next one.
        let limit = (log_end(path) + 1 + number * 23 % 700).min(SEGMENT_BYTES - 1);
        limit_files(Some(limit));
        let error = record.work(&store, 200).expect("the limit is noticed");
        assert_poisoned(&error, "File too large");
        let again = record.step(&store).expect_err("poisoned");
        assert_eq!(again.class(), ErrorClass::Poisoned, "{again}");
        drop(store);
        // Under the limit it opens or says why not.
        match ShareStore::open(path, &options) {
            Ok(store) => record.check(&store),
            Err(error) => {
                assert_eq!(error.class(), ErrorClass::Io, "{error}");
                unopened += 1;
            }
        }
        limit_files(None);
    }
    let store = ShareStore::open(path, &options).expect("open");
    record.check(&store);
    assert!(torn > limits / 4, "{torn} frames were cut in the middle");
    let acked = record.acked.len();
    say(&format!(
        "file-size-limits={limits} torn={torn} refused-opens={unopened} acknowledged={acked} lost=0 \
         invented=0"
    ));
}

/// Where the last segment's frames end.
fn log_end(store: &Path) -> u64 {
    let last = segments(store).pop().expect("a segment");
    let bytes = std::fs::read(last).expect("read");
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at as u64 + 1)
}

/// Forbids files of more bytes, or of none any more.
pub fn limit_files(current: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    let current = current.or(maximum);
    setrlimit(Resource::Fsize, Rlimit { current, maximum }).expect("setrlimit");
}
