//! Opening a store: identity, snapshot, log, and what a crash left between them. Everything is read
//! and judged before anything is changed.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::directory::{Contents, Directory, Identity};
use super::residency::Resident;
use crate::codec;
use crate::error::{EntryError, OpenError};
use crate::fsio::Fs;
use crate::log::{
    self, Entry, LogIdentity, LogOptions, LogWriter, Prepare, RepairReport, ScanError, Scope,
    TailReport,
};
use crate::model::{Lsn, Transition};
use crate::options::{Create, Options, SyncPolicy};
use crate::seeded;
use crate::snapshot::{RowStore, Snapshot, SnapshotError};

/// Opens the rows of a snapshot.
pub trait RowOpener: std::fmt::Debug {
    /// Makes new rows at `path`; rows left there by a creation that never finished are dropped.
    ///
    /// # Errors
    /// [`SnapshotError`].
    fn create(&self, path: &Path) -> Result<Box<dyn RowStore>, SnapshotError>;

    /// Opens existing rows.
    ///
    /// # Errors
    /// [`SnapshotError`].
    fn open(&self, path: &Path) -> Result<Box<dyn RowStore>, SnapshotError>;

    /// Opens existing rows for reading and changes nothing at that, as [`open`](Self::open) may.
    /// `open` is called while what this gave is still in use.
    ///
    /// # Errors
    /// [`SnapshotError`].
    fn look(&self, path: &Path) -> Result<Box<dyn RowStore>, SnapshotError>;
}

/// Opens RocksDB.
#[cfg(feature = "rocksdb")]
#[derive(Debug, Clone, Copy)]
pub struct RocksOpener {
    /// Bound of the block cache, in bytes.
    pub cache_bytes: usize,
}

#[cfg(feature = "rocksdb")]
impl RowOpener for RocksOpener {
    fn create(&self, path: &Path) -> Result<Box<dyn RowStore>, SnapshotError> {
        use crate::snapshot::{RocksMode, RocksRows};
        RocksRows::destroy(path)?;
        Ok(Box::new(RocksRows::open(path, &RocksMode::Create, self.cache_bytes)?))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn RowStore>, SnapshotError> {
        use crate::snapshot::{RocksMode, RocksRows};
        Ok(Box::new(RocksRows::open(path, &RocksMode::ReadWrite, self.cache_bytes)?))
    }

    fn look(&self, path: &Path) -> Result<Box<dyn RowStore>, SnapshotError> {
        use crate::snapshot::{RocksMode, RocksRows};
        Ok(Box::new(RocksRows::open(path, &RocksMode::ReadOnly, self.cache_bytes)?))
    }
}

#[cfg(any(test, feature = "testing"))]
impl RowOpener for crate::snapshot::MemoryRows {
    fn create(&self, _path: &Path) -> Result<Box<dyn RowStore>, SnapshotError> {
        self.clear();
        Ok(Box::new(self.clone()))
    }

    fn open(&self, _path: &Path) -> Result<Box<dyn RowStore>, SnapshotError> {
        Ok(Box::new(self.clone()))
    }

    fn look(&self, path: &Path) -> Result<Box<dyn RowStore>, SnapshotError> {
        self.open(path)
    }
}

/// What opening found and did.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// The store was made by this call.
    pub created: bool,
    /// Every entry up to this LSN was in the snapshot.
    pub snapshot_lsn: Lsn,
    /// The snapshot was damaged, in RocksDB's words, and an older state of it was opened: the
    /// replay of the log has healed it.
    pub snapshot_damage: Option<String>,
    /// Entries replayed from the log on top of it.
    pub replayed: u64,
    /// Last LSN of the log.
    pub last_lsn: Lsn,
    /// What the log looked like before the repair.
    pub tail: Option<TailReport>,
    /// What was repaired.
    pub repair: Option<RepairReport>,
    /// Which opening this is.
    pub incarnation: u64,
    /// How long it took.
    pub elapsed: Duration,
}

/// A store ready to run.
#[derive(Debug)]
pub struct Recovered {
    pub(super) fs: Arc<dyn Fs>,
    pub(super) directory: Directory,
    pub(crate) identity: Identity,
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) resident: Resident,
    pub(super) log: LogWriter,
    pub(crate) report: RecoveryReport,
}

impl Recovered {
    /// What opening found and did.
    #[must_use]
    pub fn report(&self) -> &RecoveryReport {
        &self.report
    }
}

/// Opens the store in `root` for writing, or makes one.
///
/// # Errors
/// [`OpenError`]. On damage nothing in the log is changed.
pub fn open(
    fs: Arc<dyn Fs>,
    rows: &dyn RowOpener,
    root: &Path,
    options: &Options,
) -> Result<Recovered, OpenError> {
    let started = Instant::now();
    let directory = Directory::lock(Arc::clone(&fs), root, options.create != Create::Never)?;
    if directory.is_backup()? {
        return Err(OpenError::Backup { path: root.to_owned() });
    }
    let mut recovered = match (directory.contents()?, options.create) {
        (Contents::Store(_), Create::New) => {
            return Err(OpenError::Exists { path: root.to_owned() });
        }
        (Contents::Store(identity), _) => reopen(fs, rows, directory, identity, options)?,
        (Contents::Empty | Contents::HalfMade, Create::Never) => {
            let reason = "STORE is missing";
            return Err(OpenError::NotAStore { path: root.to_owned(), reason });
        }
        (Contents::Empty | Contents::HalfMade, _) => create(fs, rows, directory, options)?,
    };
    recovered.directory.keep_reserve(options.reserve_bytes);
    recovered.report.elapsed = started.elapsed();
    Ok(recovered)
}

fn log_options(segment_bytes: u64, options: &Options) -> LogOptions {
    LogOptions {
        segment_bytes,
        relaxed: options.sync != SyncPolicy::Always,
        prepare: if options.background_segments { Prepare::Background } else { Prepare::Inline },
    }
}

fn create(
    fs: Arc<dyn Fs>,
    rows: &dyn RowOpener,
    directory: Directory,
    options: &Options,
) -> Result<Recovered, OpenError> {
    let identity =
        Identity { uuid: Uuid::new_v4(), incarnation: 1, segment_bytes: options.segment_bytes };
    let log_options = log_options(options.segment_bytes, options);
    log_options.check()?;
    directory.begin_creation()?;
    let log_identity = LogIdentity { uuid: identity.uuid, incarnation: identity.incarnation };
    let log = log::create(Arc::clone(&fs), &directory.wal(), log_identity, log_options)?;
    let snapshot = Snapshot::create(rows.create(&directory.snapshot())?, identity.uuid)?;
    let snapshot = Arc::new(snapshot);
    directory.finish_creation(&identity)?;
    let report = RecoveryReport {
        created: true,
        snapshot_lsn: 0,
        snapshot_damage: None,
        replayed: 0,
        last_lsn: 0,
        tail: None,
        repair: None,
        incarnation: identity.incarnation,
        elapsed: Duration::ZERO,
    };
    let resident = Resident::new(Arc::clone(&snapshot));
    Ok(Recovered { fs, directory, identity, snapshot, resident, log, report })
}

fn reopen(
    fs: Arc<dyn Fs>,
    rows: &dyn RowOpener,
    directory: Directory,
    stored: Identity,
    options: &Options,
) -> Result<Recovered, OpenError> {
    // RocksDB deletes what it has no use for as soon as it is opened for writing, also when the log
    // does not reach the state that it fell back to. So it is only looked at until all is judged.
    let seen = Arc::new(Snapshot::open(rows.look(&directory.snapshot())?, stored.uuid)?);
    let mut replay = Replay::new(Arc::clone(&seen));
    let scanned = log::scan(
        Arc::clone(&fs),
        &directory.wal(),
        stored.uuid,
        seen.applied_lsn(),
        Scope::Tail,
        &mut |entry| replay.apply(&entry),
    )
    .map_err(scan_error)?;
    let tail = scanned.report().clone();

    // Everything fits together. From here on the directory is changed: first the snapshot, by
    // RocksDB, then the incarnation, durably, then the log.
    let snapshot = Arc::new(Snapshot::open(open_rows(rows, &directory)?, stored.uuid)?);
    if snapshot.applied_lsn() != seen.applied_lsn() {
        return Err(SnapshotError::Storage {
            path: directory.snapshot(),
            operation: "open",
            reason: format!(
                "it is at LSN {}, and was at {} a moment ago",
                snapshot.applied_lsn(),
                seen.applied_lsn()
            ),
            corrupt: true,
        }
        .into());
    }
    replay.resident.rest_on_snapshot(Arc::clone(&snapshot));
    drop(seen);
    let incarnation = stored.incarnation.max(tail.incarnation).saturating_add(1);
    let identity = Identity { incarnation, ..stored };
    directory.write_identity(&identity)?;
    directory.clear_creating()?;
    let log_options = log_options(stored.segment_bytes, options);
    let (log, repair) = scanned.repair(&directory.quarantine(), incarnation, log_options)?;
    if let Some(damage) = snapshot.damage() {
        tracing::error!(damage, "the snapshot was damaged; replaying the log has healed it");
        metrics::counter!("sharestate_healed_snapshots_total").increment(1);
    }
    let report = RecoveryReport {
        created: false,
        snapshot_lsn: snapshot.applied_lsn(),
        snapshot_damage: snapshot.damage().map(str::to_owned),
        replayed: replay.applied,
        last_lsn: tail.last_lsn,
        tail: Some(tail),
        repair: Some(repair),
        incarnation,
        elapsed: Duration::ZERO,
    };
    Ok(Recovered { fs, directory, identity, snapshot, resident: replay.resident, log, report })
}

/// Opens the snapshot's rows. RocksDB writes files of its own at that; when it cannot, the disk may
/// be full, so the reserve is given up for it.
fn open_rows(rows: &dyn RowOpener, directory: &Directory) -> Result<Box<dyn RowStore>, OpenError> {
    let path = directory.snapshot();
    match rows.open(&path) {
        Err(error) if !error.is_corruption() && directory.release_reserve()? => {
            tracing::warn!(%error, "the reserve is given up to open the snapshot");
            Ok(rows.open(&path)?)
        }
        opened => Ok(opened?),
    }
}

/// Applies entries to rows: what recovery and the offline tools share.
#[derive(Debug)]
pub struct Replay {
    resident: Resident,
    applied: u64,
}

impl Replay {
    /// Starts from a snapshot.
    #[must_use]
    pub fn new(snapshot: Arc<Snapshot>) -> Self {
        Self { resident: Resident::new(snapshot), applied: 0 }
    }

    /// Applies the next entry.
    ///
    /// # Errors
    /// [`EntryError`] when it does not decode or is impossible.
    pub fn apply(&mut self, entry: &Entry<'_>) -> Result<(), EntryError> {
        let transition = codec::decode_transition(entry.kind, entry.version, entry.body)?;
        if matches!(transition, Transition::LeaderEpoch { .. }) && seeded::bug("KAFKA-15910") {
            return Ok(());
        }
        self.resident.load_for(&transition)?;
        self.resident.apply(entry.lsn, &transition)?;
        self.applied = self.applied.saturating_add(1);
        Ok(())
    }

    /// Entries applied.
    #[must_use]
    pub fn applied(&self) -> u64 {
        self.applied
    }

    /// The rows, with what was applied laid over the snapshot.
    #[must_use]
    pub fn resident(&mut self) -> &mut Resident {
        &mut self.resident
    }
}

pub(crate) fn scan_error(error: ScanError<EntryError>) -> OpenError {
    match error {
        ScanError::Log(error) => OpenError::Log(error),
        ScanError::Visit { lsn, path, offset, source } => {
            OpenError::Entry { path, offset, lsn, source }
        }
    }
}
