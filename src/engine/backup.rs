//! Backups: a store directory of its own, written beside the store, and made a store again.
//!
//! A backup keeps the uuid, for it is the same history, and is marked so that nobody opens it:
//! opened, it would give out LSNs that the original has given out. Restoring it makes a store whose
//! LSNs begin where the original never was.
//!
//! A copy is not accepted by anybody before it is whole and synced: see
//! [`Directory::begin_copy`](super::directory::Directory::begin_copy).

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::directory::{Contents, Directory, Identity, SalvageNote};
use super::recovery::{Recovered, RowOpener};
use super::repair::{Judged, judge, log_options, next_stretch, rebase};
use crate::error::{CheckpointError, ErrorClass, OpenError};
use crate::fsio::{self, Fs, FsError};
use crate::log::{self, LogError, LogIdentity};
use crate::model::Lsn;
use crate::snapshot::{Snapshot, SnapshotError};

/// A finished backup, or a restored store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupReport {
    /// Where it is.
    pub path: PathBuf,
    /// Every entry up to this LSN is in it, and none above.
    pub last_lsn: Lsn,
    /// The first LSN that a restored store gives out; one more than `last_lsn` in a backup.
    pub next_lsn: Lsn,
    /// Incarnation in its `STORE`.
    pub incarnation: u64,
}

/// Why a backup was not made or restored. The source is as it was; the target, if it was begun, is
/// marked as unfinished and accepted by nobody.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The source is no store, in use, of a newer format, or does not read; or the target is taken
    /// or does not write.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The source is damaged: a backup of it would be.
    #[error("{} is damaged, repair it first: {cause}", path.display())]
    Damaged {
        /// The source.
        path: PathBuf,
        /// The first damage.
        cause: String,
    },
    /// The running store could not take the checkpoint that a backup begins with.
    #[error("no backup: {0}")]
    Checkpoint(#[from] CheckpointError),
    /// Only a backup is restored.
    #[error("{} is not a backup: its file BACKUP is missing", path.display())]
    NotABackup {
        /// What was to be restored.
        path: PathBuf,
    },
    /// The target lies inside the source.
    #[error("{} lies inside the store", path.display())]
    Inside {
        /// The target.
        path: PathBuf,
    },
}

impl BackupError {
    /// What a caller can do about it.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Open(error) => error.class(),
            Self::Damaged { .. } => ErrorClass::Corrupt,
            Self::Checkpoint(CheckpointError::Poisoned(_)) => ErrorClass::Poisoned,
            Self::Checkpoint(CheckpointError::Closed) => ErrorClass::Retriable,
            Self::Checkpoint(_) => ErrorClass::Io,
            Self::NotABackup { .. } | Self::Inside { .. } => ErrorClass::Rejected,
        }
    }
}

macro_rules! as_open_error {
    ($($error:ty),*) => {
        $(impl From<$error> for BackupError {
            fn from(error: $error) -> Self {
                Self::Open(error.into())
            }
        })*
    };
}
as_open_error!(FsError, LogError, SnapshotError);

/// What a running store is backed up from.
#[derive(Debug)]
pub(super) struct Source {
    fs: Arc<dyn Fs>,
    root: PathBuf,
    identity: Identity,
    /// The sequencer owns it: when that has ended, the files are closed.
    snapshot: Weak<Snapshot>,
    /// Held while a backup is written.
    running: Mutex<()>,
}

impl Source {
    pub fn new(recovered: &Recovered) -> Self {
        Self {
            fs: Arc::clone(&recovered.fs),
            root: recovered.directory.root().to_owned(),
            identity: recovered.identity,
            snapshot: Arc::downgrade(&recovered.snapshot),
            running: Mutex::new(()),
        }
    }

    /// Waits for a backup that is being written.
    pub fn wait(&self) {
        drop(self.running.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Writes the snapshot as it is at some moment of this call, and an empty log behind it. The
    /// caller has just taken a checkpoint of everything that must be in it.
    pub fn write(&self, target: &Path) -> Result<BackupReport, BackupError> {
        refuse_inside(&self.root, target)?;
        let _running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let source = self.snapshot.upgrade().ok_or(CheckpointError::Closed)?;
        let copy = Directory::begin_copy(Arc::clone(&self.fs), target)?;
        let snapshot = copy.snapshot();
        let copied = source.copy_to(&snapshot)?;
        drop(source);
        // The copy may share its files with the store by links, and with them every later rot.
        unshare(&*self.fs, &snapshot)?;
        copied.verify_files()?;
        let last_lsn = copied.applied_lsn();
        drop(copied);
        let next_lsn = last_lsn.saturating_add(1);
        let Identity { uuid, incarnation, .. } = self.identity;
        let log_identity = LogIdentity { uuid, incarnation };
        let options = log_options(&self.identity);
        log::create_from(Arc::clone(&self.fs), &copy.wal(), log_identity, options, next_lsn)?;
        copy.finish_copy(&self.identity, true)?;
        Ok(BackupReport { path: target.to_owned(), last_lsn, next_lsn, incarnation })
    }
}

/// Gives every file of a directory bytes of its own.
fn unshare(fs: &dyn Fs, dir: &Path) -> Result<(), FsError> {
    for entry in fs.list(dir)?.into_iter().filter(|entry| !entry.is_dir) {
        let path = dir.join(&entry.name);
        fsio::copy_file(fs, &path, &path)?;
    }
    fs.sync_dir(dir)?;
    fsio::sync_parent(fs, dir)
}

/// Copies the store in `root`, which nobody has open and which is not changed, to `target`, which
/// does not exist or is empty.
///
/// # Errors
/// [`BackupError`]; [`OpenError::Locked`] when a process has the store open: that process makes
/// the backup itself, with [`ShareStore::backup`](crate::ShareStore::backup).
pub fn backup_with(
    fs: &Arc<dyn Fs>,
    rows: &dyn RowOpener,
    root: &Path,
    target: &Path,
) -> Result<BackupReport, BackupError> {
    refuse_inside(root, target)?;
    let directory = Directory::lock(Arc::clone(fs), root, false)?;
    let identity = store(&directory)?;
    if directory.is_backup()? {
        return Err(OpenError::Backup { path: root.to_owned() }.into());
    }
    sound(fs, rows, &directory, &identity)?;
    let copy = Directory::begin_copy(Arc::clone(fs), target)?;
    copy_store(&**fs, &directory, &copy)?;
    let last_lsn = sound(fs, rows, &copy, &identity)?;
    copy.finish_copy(&identity, true)?;
    let (next_lsn, incarnation) = (last_lsn.saturating_add(1), identity.incarnation);
    Ok(BackupReport { path: target.to_owned(), last_lsn, next_lsn, incarnation })
}

/// Makes a store of a backup, in `target`, which does not exist or is empty. The backup is read and
/// checked as a whole first, and is not changed.
///
/// The store has the backup's uuid, a higher incarnation, and LSNs that the original never gave
/// out.
///
/// # Errors
/// [`BackupError`].
pub fn restore_with(
    fs: &Arc<dyn Fs>,
    rows: &dyn RowOpener,
    backup: &Path,
    target: &Path,
) -> Result<BackupReport, BackupError> {
    refuse_inside(backup, target)?;
    let source = Directory::unlocked(Arc::clone(fs), backup);
    if !source.is_backup()? {
        return Err(BackupError::NotABackup { path: backup.to_owned() });
    }
    let stored = store(&source)?;
    let last_lsn = sound(fs, rows, &source, &stored)?;
    let copy = Directory::begin_copy(Arc::clone(fs), target)?;
    copy_store(&**fs, &source, &copy)?;
    sound(fs, rows, &copy, &stored)?;
    let next_lsn = next_stretch(last_lsn);
    let identity = Identity { incarnation: stored.incarnation.saturating_add(1), ..stored };
    let snapshot = Snapshot::open(rows.open(&copy.snapshot())?, stored.uuid)?;
    let incarnation = identity.incarnation;
    let note = SalvageNote { kept_lsn: last_lsn, next_lsn, incarnation, rebuild: false };
    rebase(fs, &copy, &identity, Arc::new(snapshot), &note, backup)?;
    copy.finish_copy(&identity, false)?;
    Ok(BackupReport { path: target.to_owned(), last_lsn, next_lsn, incarnation })
}

fn store(directory: &Directory) -> Result<Identity, OpenError> {
    match directory.contents()? {
        Contents::Store(identity) => Ok(identity),
        Contents::Empty | Contents::HalfMade => {
            let (path, reason) = (directory.root().to_owned(), "STORE is missing");
            Err(OpenError::NotAStore { path, reason })
        }
    }
}

/// Reads everything; answers the last LSN.
fn sound(
    fs: &Arc<dyn Fs>,
    rows: &dyn RowOpener,
    directory: &Directory,
    identity: &Identity,
) -> Result<Lsn, BackupError> {
    match judge(fs, rows, directory, identity)? {
        Judged::Sound(scanned) => Ok(scanned.report().last_lsn),
        Judged::Damaged(damage) => {
            Err(BackupError::Damaged { path: directory.root().to_owned(), cause: damage.cause })
        }
    }
}

/// Copies log and snapshot, by bytes; all of it durable when it returns.
fn copy_store(fs: &dyn Fs, from: &Directory, to: &Directory) -> Result<(), FsError> {
    let segment = |name: &OsStr| name.to_str().is_some_and(|name| name.ends_with(".wal"));
    fsio::copy_files(fs, &from.wal(), &to.wal(), &segment)?;
    if fs.exists(&from.snapshot())? {
        fsio::copy_files(fs, &from.snapshot(), &to.snapshot(), &|name| name != "LOCK")?;
    }
    Ok(())
}

/// A copy inside the store would be a foreign directory there, and copy itself.
fn refuse_inside(source: &Path, target: &Path) -> Result<(), BackupError> {
    if target.starts_with(source) {
        return Err(BackupError::Inside { path: target.to_owned() });
    }
    Ok(())
}

/// [`backup_with`] over the operating system's files and RocksDB.
///
/// # Errors
/// As [`backup_with`].
#[cfg(feature = "rocksdb")]
pub fn backup(
    root: impl AsRef<Path>,
    target: impl AsRef<Path>,
) -> Result<BackupReport, BackupError> {
    let fs: Arc<dyn Fs> = Arc::new(fsio::RealFs);
    backup_with(&fs, OPENER, root.as_ref(), target.as_ref())
}

/// [`restore_with`] over the operating system's files and RocksDB.
///
/// # Errors
/// As [`restore_with`].
#[cfg(feature = "rocksdb")]
pub fn restore(
    backup: impl AsRef<Path>,
    target: impl AsRef<Path>,
) -> Result<BackupReport, BackupError> {
    let fs: Arc<dyn Fs> = Arc::new(fsio::RealFs);
    restore_with(&fs, OPENER, backup.as_ref(), target.as_ref())
}

#[cfg(feature = "rocksdb")]
const OPENER: &super::recovery::RocksOpener =
    &super::recovery::RocksOpener { cache_bytes: 8 << 20 };
