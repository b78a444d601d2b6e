//! The state of a store as of now, read beside whoever writes it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;

use super::source::Source;
use crate::engine::directory::Identity;
use crate::engine::recovery::{Replay, scan_error};
use crate::engine::residency::{PartitionPage, ProducerPage};
use crate::error::OpenError;
use crate::log::{self, Scope, TailReport, TailVerdict, TornTail};
use crate::model::{Lsn, Partition, Producer, SharePartitionKey};
use crate::snapshot::{Snapshot, SnapshotError, SnapshotStats};

/// A read-only view of a store: its snapshot with the rest of the log laid over it.
///
/// Takes no lock and changes nothing. What a running store writes after [`open`](Self::open) is not
/// seen. An unfinished frame at the end of the log is left out and [reported](Self::tail_note): a
/// crash tore it, or a running store is writing it just now.
#[derive(Debug)]
pub struct Reader {
    source: Source,
    // The rows are read through files in `_scratch`, which therefore goes last.
    replay: Replay,
    snapshot: Arc<Snapshot>,
    report: TailReport,
    _scratch: TempDir,
}

/// Says that the log ends in an unfinished frame. Prints as one line.
#[derive(Debug, Clone, Copy)]
pub struct TailNote<'a>(pub &'a TornTail);

impl fmt::Display for TailNote<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TornTail { path, offset, lsn, reason, .. } = self.0;
        write!(
            f,
            "the log ends in an unfinished frame at byte {offset} of {} (LSN {lsn}: {reason}): \
             torn by a crash, or being written by a running store; it is not part of the state",
            path.display()
        )
    }
}

impl Reader {
    /// Reads the snapshot's identity and the log behind it.
    ///
    /// When a running store purges or rolls over meanwhile, the reading begins anew, a few times.
    ///
    /// # Errors
    /// [`OpenError`]; [`Overtaken`](crate::log::LogError::Overtaken) when a running store was
    /// faster every time.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let source = Source::find(path.as_ref())?;
        let (replay, snapshot, report, scratch) = source.steadily(|| read(&source))?;
        Ok(Self { source, replay, snapshot, report, _scratch: scratch })
    }

    /// The store's directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.source.directory.root()
    }

    /// Who the store is.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.source.identity
    }

    /// What the log looks like, and how it ends.
    #[must_use]
    pub fn report(&self) -> &TailReport {
        &self.report
    }

    /// The unfinished frame that the log ends in, if it does.
    #[must_use]
    pub fn tail_note(&self) -> Option<TailNote<'_>> {
        match &self.report.verdict {
            TailVerdict::Torn(torn) => Some(TailNote(torn)),
            TailVerdict::End => None,
        }
    }

    /// Every entry up to this LSN is in the snapshot.
    #[must_use]
    pub fn snapshot_lsn(&self) -> Lsn {
        self.snapshot.applied_lsn()
    }

    /// Where the log may be purged up to.
    #[must_use]
    pub fn purge_floor(&self) -> Lsn {
        self.snapshot.previous_applied_lsn()
    }

    /// Entries laid over the snapshot.
    #[must_use]
    pub fn replayed(&self) -> u64 {
        self.replay.applied()
    }

    /// Sizes of the snapshot; row numbers are RocksDB's estimates.
    #[must_use]
    pub fn stats(&self) -> SnapshotStats {
        self.snapshot.stats()
    }

    /// One share partition.
    ///
    /// # Errors
    /// [`SnapshotError`] when its row cannot be read.
    pub fn partition(
        &mut self,
        key: &SharePartitionKey,
    ) -> Result<Option<Arc<Partition>>, SnapshotError> {
        partition(&mut self.replay, key)
    }

    pub(super) fn replay(&mut self) -> &mut Replay {
        &mut self.replay
    }

    /// One producer.
    ///
    /// # Errors
    /// [`SnapshotError`] when its rows cannot be read.
    pub fn producer(&mut self, producer_id: i64) -> Result<Option<Arc<Producer>>, SnapshotError> {
        producer(&mut self.replay, producer_id)
    }

    /// At most `limit` share partitions in key order behind `after`, of one group or of all, and
    /// where to go on.
    ///
    /// # Errors
    /// [`SnapshotError`] when a row cannot be read.
    pub fn partitions(
        &mut self,
        group_id: Option<&str>,
        after: Option<&SharePartitionKey>,
        limit: usize,
    ) -> Result<PartitionPage, SnapshotError> {
        self.replay.resident().partitions(group_id, after, limit)
    }

    /// At most `limit` producers in id order behind `after`, and where to go on.
    ///
    /// # Errors
    /// [`SnapshotError`] when a row cannot be read.
    pub fn producers(
        &mut self,
        after: Option<i64>,
        limit: usize,
    ) -> Result<ProducerPage, SnapshotError> {
        self.replay.resident().producers(after, limit)
    }

    /// Calls `visit` for every share partition in key order.
    ///
    /// # Errors
    /// [`SnapshotError`] when a row cannot be read, or the error of `visit`.
    pub fn for_each_partition<E: From<SnapshotError>>(
        &mut self,
        visit: &mut dyn FnMut(&SharePartitionKey, &Partition) -> Result<(), E>,
    ) -> Result<(), E> {
        const PAGE: usize = 512;
        let mut after = None;
        loop {
            let (page, next) = self.partitions(None, after.as_ref(), PAGE)?;
            for (key, partition) in &page {
                visit(key, partition)?;
            }
            match next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
        }
    }
}

type Parts = (Replay, Arc<Snapshot>, TailReport, TempDir);

fn read(source: &Source) -> Result<Parts, OpenError> {
    let (rows, scratch) = source.rows()?;
    let snapshot = Arc::new(Snapshot::open(Box::new(rows), source.identity.uuid)?);
    let mut replay = Replay::new(Arc::clone(&snapshot));
    let scanned = log::scan(
        Arc::clone(&source.fs),
        &source.directory.wal(),
        source.identity.uuid,
        snapshot.applied_lsn(),
        Scope::Tail,
        &mut |entry| replay.apply(&entry),
    )
    .map_err(scan_error)?;
    let report = scanned.report().clone();
    Ok((replay, snapshot, report, scratch))
}

/// A share partition with everything applied so far.
pub(super) fn partition(
    replay: &mut Replay,
    key: &SharePartitionKey,
) -> Result<Option<Arc<Partition>>, SnapshotError> {
    let resident = replay.resident();
    let (rows, _) = resident.rows(std::slice::from_ref(key))?;
    let row = rows.into_iter().next().map(|(_, row)| row);
    resident.evict(CLEAN_BYTES);
    Ok(row)
}

/// A producer with everything applied so far.
pub(super) fn producer(
    replay: &mut Replay,
    producer_id: i64,
) -> Result<Option<Arc<Producer>>, SnapshotError> {
    let resident = replay.resident();
    let row = resident.producer(producer_id)?;
    resident.evict(CLEAN_BYTES);
    Ok(row)
}

/// Unchanged rows that a reader keeps.
const CLEAN_BYTES: usize = 16 << 20;
