//! A whole store directory, damaged and opened. The input names one of three stores, the LSN of its
//! snapshot, and changes to its files: torn, rotten, lost, exchanged, or forged with checksums made
//! right again.
//!
//! Unless a file was forged, opening either recovers a state that the store has truly been in, and
//! not an older one than anything left on the disk proves to have been durable, or refuses. It
//! never makes a new store of the old one, never removes or changes a byte that it has not copied,
//! and comes to the same result when it is repeated. A scan of the whole log, as verification does
//! it, never finds less than opening does.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sharestate::engine::recovery::{self, RecoveryReport};
use sharestate::fsio::Fs;
use sharestate::fsio::sim::SimFs;
use sharestate::log::{self, Lsn, SEGMENT_HEADER_BYTES, Scope, TailVerdict};
use sharestate::model::{State, apply};
use sharestate::snapshot::{MemoryRows, Snapshot};
use sharestate::{Clock, OpenError, Options, ShareStore, codec};

use super::damage::{Damaged, EDIT_BYTES, Files, ROOT, segment_path, wal};
use super::store_base::{STORE, bases};

/// Longest script: longer ones find nothing that a short one does not.
const EDITS_MAX: usize = 24;

pub fn run(input: &[u8]) {
    let [base, applied, flags, script @ ..] = input else { return };
    let base = &bases()[usize::from(*base) % bases().len()];
    let applied = Lsn::from(*applied) % (base.last_lsn() + 1);
    let mut disk = Damaged::new(base);
    for edit in script.chunks_exact(EDIT_BYTES).take(EDITS_MAX) {
        disk.edit(edit.try_into().expect("8 bytes"));
    }
    let found = disk.open_and_check(applied);
    if let (Some(lsn), true) = (found, flags % 8 == 0) {
        disk.run_store(applied, lsn);
    }
}

impl Damaged<'_> {
    /// What the disk still proves to have been durable.
    fn vouched(&self, applied: Lsn) -> Lsn {
        let mut vouched = applied;
        for (file, (first_lsn, whole)) in self.base.segments.iter().enumerate() {
            let Some(bytes) = self.files.get(&segment_path(*first_lsn)) else { continue };
            let same = |from: usize, to: usize| bytes.get(from..to) == whole.get(from..to);
            if !same(0, SEGMENT_HEADER_BYTES) {
                continue;
            }
            vouched = vouched.max(*first_lsn - 1);
            for frame in self.base.frames.iter().filter(|frame| frame.file == file) {
                if same(frame.from, frame.to) {
                    vouched = vouched.max(frame.fields.durable_mark);
                }
            }
        }
        vouched
    }

    fn open_and_check(&self, applied: Lsn) -> Option<Lsn> {
        let (fs, rows) = (self.disk(), self.base.rows_at(applied));
        let before = contents(&fs);
        let scanned = replayed(&fs, &rows, Scope::Tail);
        let whole = replayed(&fs, &rows, Scope::All);
        assert_eq!(contents(&fs), before, "a scan writes nothing");
        let opened = open(&fs, &rows);
        let after = contents(&fs);
        let report = match (&scanned, opened) {
            (Ok(found), Ok(report)) => {
                assert!(!report.created && report.last_lsn == found.lsn);
                report
            }
            (_, Err(error)) => {
                self.check_refusal(&scanned, &error, &before, &after);
                assert!(scanned.is_ok() || whole.is_err(), "verification misses: {error}");
                return None;
            }
            (Err(error), Ok(report)) => {
                assert!(report.created, "opens in spite of: {error}");
                panic!("an empty store was made of an old one");
            }
        };
        let found = scanned.expect("matched");
        if let Ok(whole) = &whole {
            assert_eq!((whole.lsn, &whole.verdict), (found.lsn, &found.verdict));
        }
        check_repair(&report, &before, &after);
        if !self.forged {
            self.check_truth(&found, applied);
        }
        check_again(&fs.restart(), &rows, &found);
        Some(found.lsn)
    }

    fn check_refusal(
        &self,
        scanned: &Result<Found, String>,
        error: &OpenError,
        before: &Files,
        after: &Files,
    ) {
        assert!(!error.to_string().is_empty());
        if self.forged {
            return; // `STORE` itself may be forged, which repair sees last
        }
        let store_is_whole =
            self.files.get(&Path::new(ROOT).join("STORE")) == Some(&self.base.store);
        assert!(scanned.is_err() || !store_is_whole, "refused without a reason: {error}");
        let mut after = after.clone();
        after.remove(&Path::new(ROOT).join("LOCK"));
        assert_eq!(&after, before, "changed in spite of: {error}");
        assert_ne!(before, &contents(&Damaged::new(self.base).disk()), "nothing is wrong: {error}");
    }

    fn check_truth(&self, found: &Found, applied: Lsn) {
        let truth = self.base.states.get(usize::try_from(found.lsn).expect("small"));
        assert_eq!(Some(&found.state), truth, "LSN {}", found.lsn);
        let vouched = self.vouched(applied);
        assert!(found.lsn >= vouched, "LSN {} although {vouched} was durable", found.lsn);
    }

    /// Through the public handle: the same state; it works on, and survives a kill.
    fn run_store(&self, applied: Lsn, lsn: Lsn) {
        let (fs, rows) = (self.disk(), self.base.rows_at(applied));
        let truth = replayed(&fs, &rows, Scope::Tail).expect("was opened before").state;
        let open = |fs: &SimFs, rows: &MemoryRows| {
            ShareStore::open_with(Arc::new(fs.clone()), rows, Path::new(ROOT), &options())
                .expect("was opened before")
        };
        let store = open(&fs, &rows);
        assert_eq!(state_of(&store), truth);
        let key = sharestate::SharePartitionKey::new("after", STORE, 0).expect("valid");
        store.blocking().initialize(&key, 1, 0).expect("works on");
        assert_eq!(store.progress().durable_lsn, lsn + 1);
        let before = state_of(&store);
        let killed = (fs.restart(), rows.fork());
        drop(store);
        assert_eq!(state_of(&open(&killed.0, &killed.1)), before);
        assert_eq!(state_of(&open(&fs.restart(), &rows)), before);
    }
}

/// What a scan with replay comes to.
struct Found {
    lsn: Lsn,
    state: State,
    verdict: TailVerdict,
}

fn replayed(fs: &SimFs, rows: &MemoryRows, scope: Scope) -> Result<Found, String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    let snapshot = Snapshot::open(Box::new(rows.clone()), STORE).map_err(|e| text(&e))?;
    let applied = snapshot.applied_lsn();
    let partitions = snapshot.partitions(None, None, usize::MAX).map_err(|e| text(&e))?;
    let producers = snapshot.producers(None, usize::MAX).map_err(|e| text(&e))?;
    let mut state = State {
        partitions: partitions.into_iter().map(|(key, row)| (key, Arc::new(row))).collect(),
        producers: producers.into_iter().map(|(id, row)| (id, Arc::new(row))).collect(),
    };
    let scanned = log::scan(Arc::new(fs.clone()), &wal(), STORE, applied, scope, &mut |entry| {
        let transition = codec::decode_transition(entry.kind, entry.version, entry.body)
            .map_err(|error| error.to_string())?;
        if entry.lsn > applied {
            apply(&mut state, entry.lsn, &transition).map_err(|error| error.to_string())?;
        }
        Ok::<(), String>(())
    });
    let scanned = scanned.map_err(|error| error.to_string())?;
    let report = scanned.report();
    Ok(Found { lsn: report.last_lsn, state, verdict: report.verdict.clone() })
}

#[derive(Debug)]
struct Frozen;

impl Clock for Frozen {
    fn now_ms(&self) -> i64 {
        2_000
    }
}

fn options() -> Options {
    let mut options = Options::default();
    options.checkpoint_log_bytes = Some(u64::MAX);
    options.background_segments = false;
    options.reserve_bytes = 0;
    options.clock = Arc::new(Frozen);
    options
}

fn open(fs: &SimFs, rows: &MemoryRows) -> Result<RecoveryReport, OpenError> {
    recovery::open(Arc::new(fs.clone()), rows, Path::new(ROOT), &options())
        .map(|recovered| recovered.report().clone())
}

fn check_again(fs: &SimFs, rows: &MemoryRows, found: &Found) {
    let again = replayed(fs, rows, Scope::Tail).expect("what was opened opens again");
    assert!(again.lsn == found.lsn && again.state == found.state);
    assert_eq!(again.verdict, TailVerdict::End);
    let report = open(fs, rows).expect("what was opened opens again");
    assert_eq!(report.last_lsn, found.lsn);
    assert_eq!(report.repair.and_then(|repair| repair.cut), None);
}

/// Repair unlinks what the report names, writes into zeros, and cuts what it has copied.
fn check_repair(report: &RecoveryReport, before: &Files, after: &Files) {
    let (tail, repair) = (report.tail.as_ref().expect("reopened"), report.repair.as_ref());
    let repair = repair.expect("reopened");
    for (path, old) in before {
        if path.parent() != Some(&wal()) {
            continue;
        }
        let Some(new) = after.get(path) else {
            assert!(repair.unlinked.contains(path), "{} is gone", path.display());
            let is_leftover = path.ends_with("prepared.tmp");
            assert!(is_leftover || tail.unfinished_purge.contains(path), "{}", path.display());
            continue;
        };
        let cut = repair.cut.as_ref().filter(|cut| cut.path == *path);
        let copied = repair.evidence.as_ref().and_then(|evidence| after.get(evidence));
        for (at, byte) in old.iter().enumerate().filter(|(_, byte)| **byte != 0) {
            if new.get(at) != Some(byte) {
                let cut = cut.unwrap_or_else(|| panic!("{} changed at {at}", path.display()));
                let from = usize::try_from(cut.offset).expect("small");
                let kept = copied.and_then(|copied| copied.get(at.checked_sub(from)?));
                assert_eq!(kept, Some(byte), "{} cut without a copy at {at}", path.display());
            }
        }
    }
}

fn contents(fs: &SimFs) -> Files {
    let mut files = Files::new();
    let mut dirs = vec![PathBuf::from(ROOT)];
    while let Some(dir) = dirs.pop() {
        for entry in fs.list(&dir).expect("memory") {
            let path = dir.join(entry.name);
            if entry.is_dir {
                dirs.push(path);
            } else {
                files.insert(path.clone(), fs.content(&path).expect("is there"));
            }
        }
    }
    files
}

/// Every row of a store.
pub fn state_of(store: &ShareStore) -> State {
    let (store, mut state) = (store.blocking(), State::default());
    let page = store.list(None, None, usize::MAX).expect("list");
    state.partitions.extend(page.partitions);
    let (producers, _) = store.producers(None, usize::MAX).expect("list");
    state.producers.extend(producers);
    state
}
