//! Row 14: memory runs out. Rust ends a process whose allocation fails, so that is a crash like any
//! other: nothing acknowledged is lost.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::Output;

use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use sharestate::ShareStore;

use super::allocator;
use super::child::{finish, job, knob, memory_dir, respawn, said, told};
use super::work::{Record, options};

const KTH: &str = "memory::an_allocation_that_fails_is_a_crash_that_loses_nothing";
const SPACE: &str = "memory::an_address_space_that_is_too_small_loses_nothing";

/// Row 14 counts the first so many allocations.
const ALLOCATIONS: u64 = 2_000;

/// Operations of a child: enough for a rollover and a checkpoint.
const OPS: usize = 60;

/// What children asked for and were answered, kept in files that survive them. Appending to them
/// allocates nothing.
struct Journal {
    dir: PathBuf,
}

impl Journal {
    fn store(&self) -> PathBuf {
        self.dir.join("store")
    }

    fn open(&self, name: &str) -> File {
        let mut options = OpenOptions::new();
        options.create(true).append(true).open(self.dir.join(name)).expect("journal")
    }

    fn read(&self, name: &str) -> Vec<i64> {
        let bytes = std::fs::read(self.dir.join(name)).unwrap_or_default();
        let number = |bytes: &[u8]| i64::from_le_bytes(bytes.try_into().expect("8 bytes"));
        bytes.chunks(8).map(number).collect()
    }

    /// Checks the store against the journal, which then tells what was found. Answers how many
    /// offsets are acknowledged.
    fn check(&self) -> Record {
        let mut record = Record::resume(0, &self.read("issued"), &self.read("acked"));
        let store = ShareStore::open(self.store(), &options(0)).expect("it is intact");
        record.check(&store);
        store.blocking().close().expect("close");
        let found: Vec<u8> = record.acked.iter().flat_map(|offset| offset.to_le_bytes()).collect();
        std::fs::write(self.dir.join("acked"), found).expect("journal");
        record
    }

    /// Opens the store, works and closes it, taking everything down. Ends early on any error.
    fn work(&self, mut record: Record) -> Result<(), Box<dyn std::error::Error>> {
        let (mut issued, mut acked) = (self.open("issued"), self.open("acked"));
        let store = ShareStore::open(self.store(), &options(0))?;
        record.start(&store)?;
        for _ in 0..OPS {
            issued.write_all(&record.next().to_le_bytes())?;
            let offset = record.step(&store)?;
            acked.write_all(&offset.to_le_bytes())?;
        }
        store.blocking().close()?;
        Ok(())
    }
}

#[test]
fn an_allocation_that_fails_is_a_crash_that_loses_nothing() {
    if let Some(job) = job() {
        let journal = Journal { dir: job[0].as_str().into() };
        let record = journal.check();
        allocator::fail_at(job[1].parse().expect("a number"));
        let ended = journal.work(record);
        let has_failed = allocator::has_failed();
        allocator::fail_at(0);
        assert!(has_failed, "there were fewer allocations: {ended:?}");
        return;
    }
    let dir = memory_dir();
    let journal = Journal { dir: dir.path().to_owned() };
    let cases = knob("SHARESTATE_ALLOCATIONS", 80) as u64;
    let (mut crashes, mut survived) = (0, 0);
    for case in 0..cases {
        let k = 1 + case * ALLOCATIONS / cases;
        let output = finish(respawn(KTH, &[dir.path().to_str().expect("UTF-8"), &k.to_string()]));
        if is_crash(&output, k) { crashes += 1 } else { survived += 1 }
    }
    let acked = journal.check().acked.len();
    assert!(crashes > cases / 2, "{crashes} of {cases}");
    println!(
        "failed-allocations={cases} crashes={crashes} survived={survived} acknowledged={acked} \
         lost=0 invented=0"
    );
}

/// An abort because of memory, or an end that is none.
fn is_crash(output: &Output, case: u64) -> bool {
    let text = told(output);
    if output.status.success() {
        return false;
    }
    let abort = Signal::ABORT.as_raw();
    assert_eq!(output.status.signal(), Some(abort), "case {case}: {}: {text}", output.status);
    true
}

#[test]
fn an_address_space_that_is_too_small_loses_nothing() {
    if let Some(job) = job() {
        let journal = Journal { dir: job[0].as_str().into() };
        let record = journal.check();
        let bytes = job[1].parse::<u64>().expect("a number") << 20;
        let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
        setrlimit(Resource::As, limit).expect("setrlimit");
        match journal.work(record) {
            Ok(()) => super::child::say("worked"),
            Err(error) => super::child::say(&format!("told {error}")),
        }
        return;
    }
    let dir = memory_dir();
    let journal = Journal { dir: dir.path().to_owned() };
    let (mut worked, mut refused, mut crashes) = (0, 0, 0);
    let sizes = [1_024, 512, 256, 192, 160, 128, 112, 96, 80, 64, 48, 32, 16, 8, 4, 1];
    for mib in sizes {
        let output =
            finish(respawn(SPACE, &[dir.path().to_str().expect("UTF-8"), &mib.to_string()]));
        match said(&output).last().map(String::as_str) {
            Some("worked") => worked += 1,
            Some(_) => refused += 1,
            None => {
                let text = told(&output);
                // The harness itself needs memory; without any it may end in other ways.
                assert!(!output.status.success(), "{mib} MiB: {text}");
                assert!(!text.contains("lost ["), "{mib} MiB: {text}");
                crashes += 1;
            }
        }
    }
    let acked = journal.check().acked.len();
    assert!(worked > 0 && crashes + refused > 0, "{worked} {refused} {crashes}");
    println!(
        "address-spaces={} worked={worked} refused={refused} crashes={crashes} \
         acknowledged={acked} lost=0 invented=0",
        sizes.len()
    );
}
