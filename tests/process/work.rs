//! A small workload with a record of what was answered, for stores whose ground shakes.

use std::collections::BTreeSet;
use std::path::Path;

use sharestate::{ErrorClass, OpenError, Options, Partition, ShareStore, Stage, StoreError};

use super::support::{self, batch, key, write};

const GROUP: &str = "g";

/// Every tenth operation stages instead of writing.
const STAGE_EVERY: i64 = 10;

pub const SEGMENT_BYTES: u64 = 8 << 10;

/// Small segments and frequent checkpoints.
pub fn options(reserve_bytes: u64) -> Options {
    let mut options = Options::default();
    options.segment_bytes = SEGMENT_BYTES;
    options.checkpoint_log_bytes = Some(12 << 10);
    options.reserve_bytes = reserve_bytes;
    options
}

/// What was asked of one share partition, by the answer it got. Offsets are asked for once each.
#[derive(Debug, Default)]
pub struct Record {
    partition: i32,
    next: i64,
    pub acked: BTreeSet<i64>,
    pub unknown: BTreeSet<i64>,
    pub not_logged: BTreeSet<i64>,
}

impl Record {
    pub fn new(partition: i32) -> Self {
        Self { partition, ..Self::default() }
    }

    /// Goes on with what is known of earlier processes.
    pub fn resume(partition: i32, issued: &[i64], acked: &[i64]) -> Self {
        let acked: BTreeSet<i64> = acked.iter().copied().collect();
        let unknown = issued.iter().copied().filter(|at| !acked.contains(at)).collect();
        let next = issued.iter().max().map_or(0, |last| last + 1);
        Self { partition, next, acked, unknown, not_logged: BTreeSet::new() }
    }

    /// The offset that the next step acknowledges.
    pub fn next(&self) -> i64 {
        self.next
    }

    /// Makes the share partition.
    pub fn start(&self, store: &ShareStore) -> Result<(), StoreError> {
        store.blocking().initialize(&key(GROUP, self.partition), 1, 0).map(drop)
    }

    /// Acknowledges the next offset, plainly or inside a transaction, and takes the answer down.
    pub fn step(&mut self, store: &ShareStore) -> Result<i64, StoreError> {
        let offset = self.next;
        self.next += 1;
        let answer = if offset % STAGE_EVERY == STAGE_EVERY - 1 {
            store.blocking().stage(self.stage(offset)).map(drop)
        } else {
            let batches = [batch(offset, offset, 2, 1)];
            store.blocking().write(&key(GROUP, self.partition), write(&batches)).map(drop)
        };
        match &answer {
            Ok(()) => self.acked.insert(offset),
            Err(StoreError::OutcomeUnknown(_)) => self.unknown.insert(offset),
            Err(StoreError::Poisoned(_) | StoreError::Snapshot(_)) => {
                self.not_logged.insert(offset)
            }
            Err(error) => panic!("offset {offset}: {error}"),
        };
        answer.map(|()| offset)
    }

    /// Works until the store fails. Answers the error, or nothing when it did not within `most`.
    pub fn work(&mut self, store: &ShareStore, most: usize) -> Option<StoreError> {
        (0..most).find_map(|_| self.step(store).err())
    }

    fn stage(&self, offset: i64) -> Stage {
        let ack = support::accept(offset, offset);
        let key = key(GROUP, self.partition);
        Stage { two_phase: true, ..support::stage(key, self.partition.into(), 0, ack) }
    }

    /// Whatever was acknowledged is there, as it was asked for, and nothing else but what has an
    /// unknown outcome, which is known from here on.
    pub fn check(&mut self, store: &ShareStore) {
        let page = store.blocking().list(Some(GROUP), None, 1_000).expect("list");
        let wanted = key(GROUP, self.partition);
        let row = page.partitions.iter().find(|(key, _)| *key == wanted);
        let found = row.map(|(_, row)| offsets(row)).unwrap_or_default();
        let lost: Vec<_> = self.acked.difference(&found).collect();
        let invented: Vec<_> = found
            .iter()
            .filter(|at| !self.acked.contains(at) && !self.unknown.contains(at))
            .collect();
        assert!(lost.is_empty() && invented.is_empty(), "lost {lost:?}, invented {invented:?}");
        self.acked = found;
        self.unknown.clear();
    }
}

/// Offsets whose acknowledgement the store holds; those of a tenth of the calls are prepared.
fn offsets(row: &Partition) -> BTreeSet<i64> {
    let written = row.batches.iter().flat_map(|batch| batch.first_offset..=batch.last_offset);
    let staged = row.pending.iter().flat_map(|ack| ack.first_offset..=ack.last_offset);
    let is_staged = |offset: &i64| offset % STAGE_EVERY == STAGE_EVERY - 1;
    let (written, staged): (BTreeSet<_>, BTreeSet<_>) = (written.collect(), staged.collect());
    assert!(!written.iter().any(is_staged), "a staged ack took effect: {row:?}");
    assert!(staged.iter().all(is_staged), "a plain ack is prepared: {row:?}");
    written.union(&staged).copied().collect()
}

/// An error of the operating system, told as what it is.
#[track_caller]
pub fn assert_io(error: &OpenError, words: &str) {
    assert_eq!(error.class(), ErrorClass::Io, "{error}");
    assert!(error.to_string().contains(words), "{words}: {error}");
}

/// The store failed, and says why.
#[track_caller]
pub fn assert_poisoned(error: &StoreError, words: &str) {
    assert_eq!(error.class(), ErrorClass::Poisoned, "{error}");
    assert!(error.to_string().contains(words), "{words}: {error}");
    assert!(error.to_string().contains("/wal"), "the path is named: {error}");
}

/// A store with something in every place, closed. Answers the record of its share partition.
pub fn made(path: &Path, options: &Options) -> Record {
    let store = ShareStore::open(path, options).expect("open");
    let mut record = Record::new(0);
    record.start(&store).expect("initialize");
    assert!(record.work(&store, 100).is_none());
    store.blocking().close().expect("close");
    record
}
