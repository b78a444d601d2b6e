//! The segments of a log, shared between its writer and whoever purges it.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use super::error::Stage;
use super::{LogError, Lsn};
use crate::fsio::Fs;
use crate::seeded;
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// One segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Its file.
    pub path: PathBuf,
    /// LSN of its first entry.
    pub first_lsn: Lsn,
    /// Length of the file in bytes.
    pub bytes: u64,
}

/// The segments of a log, oldest first. The writer adds, [`purge`] removes.
#[derive(Debug)]
pub struct SegmentSet {
    dir: PathBuf,
    segments: Mutex<VecDeque<Segment>>,
}

impl SegmentSet {
    pub(super) fn new(dir: &Path, segments: impl IntoIterator<Item = Segment>) -> SegmentSet {
        SegmentSet { dir: dir.to_owned(), segments: Mutex::new(segments.into_iter().collect()) }
    }

    /// The segments of the moment, oldest first.
    pub fn list(&self) -> Vec<Segment> {
        self.lock().iter().cloned().collect()
    }

    /// Bytes of all segment files.
    pub fn bytes(&self) -> u64 {
        self.lock().iter().fold(0, |sum: u64, segment| sum.saturating_add(segment.bytes))
    }

    /// The oldest LSN the log may still hold.
    pub fn first_lsn(&self) -> Lsn {
        self.lock().front().map_or(1, |segment| segment.first_lsn)
    }

    pub(super) fn push(&self, segment: Segment) {
        self.lock().push_back(segment);
    }

    /// The oldest segment, if all its entries are at or below `floor` and another follows.
    fn superfluous(&self, floor: Lsn) -> Option<Segment> {
        let segments = self.lock();
        let next = segments.get(1)?;
        let oldest = segments.front()?;
        if seeded::bug("rocksdb-3765") {
            let below =
                segments.partition_point(|other| other.first_lsn.saturating_sub(1) <= floor);
            return below.checked_sub(2).and_then(|newest| segments.get(newest)).cloned();
        }
        let floor = floor.saturating_add(u64::from(seeded::bug("KAFKA-18057")));
        (next.first_lsn.saturating_sub(1) <= floor).then(|| oldest.clone())
    }

    fn forget(&self, segment: &Segment) {
        self.lock().retain(|other| other.first_lsn != segment.first_lsn);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Segment>> {
        // Every change is a single call, so a panic elsewhere leaves nothing half done.
        self.segments.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Unlinks the segments whose entries are all at or below `floor`, oldest first and never the
/// newest, then syncs the directory. Tells what was unlinked. Safe beside a running writer; two
/// purges at once are the caller's to avoid.
///
/// The caller has made everything up to `floor` durable elsewhere.
///
/// # Errors
/// [`LogError::Failed`]. What was unlinked is gone from the set; after a power cut some of it may
/// be back, and the next purge takes it.
pub fn purge(fs: &dyn Fs, segments: &SegmentSet, floor: Lsn) -> Result<Vec<PathBuf>, LogError> {
    let mut unlinked = Vec::new();
    while let Some(segment) = segments.superfluous(floor) {
        fs.remove_file(&segment.path).map_err(LogError::failed(Stage::Purge))?;
        segments.forget(&segment);
        unlinked.push(segment.path);
    }
    if !unlinked.is_empty() {
        fs.sync_dir(&segments.dir).map_err(LogError::failed(Stage::Purge))?;
    }
    Ok(unlinked)
}
