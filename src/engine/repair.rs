//! Repair of a store that nobody has open: what is wrong with it, what a repair would do, and doing
//! it.
//!
//! Owns the judgement over the whole directory and the order in which it is changed. What the log
//! proves is the log's affair ([`crate::log::salvage`]), what an entry does to the rows recovery's.

mod damage;
mod rows;
mod salvage;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use damage::{Damage, OpenTransaction};
pub use salvage::{SALVAGE_STRETCH, Salvaged};
pub(super) use salvage::{next_stretch, rebase};

use super::directory::{Contents, Directory, Identity, SalvageNote};
use super::recovery::{Replay, RowOpener, scan_error};
use crate::error::{EntryError, ErrorClass, OpenError};
use crate::fsio::Fs;
use crate::log::{
    self, Evidence, LogError, LogOptions, Prepare, RepairReport, ScannedLog, Scope, TailVerdict,
    TornTail,
};

/// How a store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Whole: there is nothing to repair but, perhaps, leftovers that are in nobody's way.
    Whole,
    /// The log ends in an unfinished frame, as a crash leaves it. Nothing in it was answered for.
    Torn(TornTail),
    /// Something that was once whole no longer is.
    Damaged(Box<Damage>),
    /// A salvage was interrupted; another one goes on with it. Nothing more is lost by that.
    Interrupted,
}

/// Why a store is not repaired. Unless a variant says otherwise, nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepairError {
    /// The directory is not a store, is in use, of a newer format, or does not read or write; in
    /// the last case a repair may have been begun, and another one goes on with it.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// This is no torn tail: only a salvage, which gives up what does not read, goes on from here.
    #[error("{}", .0.cause)]
    NeedsSalvage(Box<Damage>),
    /// Not even a salvage can prove anything.
    #[error("{}: {reason}", .damage.cause)]
    Hopeless {
        /// What is missing.
        reason: String,
        /// What is wrong.
        damage: Box<Damage>,
    },
}

impl RepairError {
    /// What a caller can do about it.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Open(error) => error.class(),
            Self::NeedsSalvage(_) | Self::Hopeless { .. } => ErrorClass::Corrupt,
        }
    }
}

macro_rules! as_open_error {
    ($($error:ty),*) => {
        $(impl From<$error> for RepairError {
            fn from(error: $error) -> Self {
                Self::Open(error.into())
            }
        })*
    };
}
as_open_error!(crate::fsio::FsError, LogError, crate::snapshot::SnapshotError);

/// What a repair changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired {
    /// What was done to the log.
    pub log: RepairReport,
    /// Further leftovers of a crash that were removed.
    pub removed: Vec<PathBuf>,
    /// Incarnation of the repair.
    pub incarnation: u64,
}

/// A locked store, looked at and not changed yet.
#[derive(Debug)]
pub struct Repair<'a> {
    fs: Arc<dyn Fs>,
    rows: &'a dyn RowOpener,
    directory: Directory,
    identity: Identity,
    condition: Condition,
    leftovers: Vec<PathBuf>,
    scanned: Option<ScannedLog>,
    note: Option<SalvageNote>,
}

#[cfg(feature = "rocksdb")]
impl Repair<'static> {
    /// Locks the store in `path` and finds out how it is. Reads the whole log and all rows; changes
    /// nothing.
    ///
    /// # Errors
    /// [`OpenError`] when that cannot be found out. Damage is a [`Condition`].
    pub fn plan(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        const OPENER: &super::recovery::RocksOpener =
            &super::recovery::RocksOpener { cache_bytes: 8 << 20 };
        Self::plan_with(Arc::new(crate::fsio::RealFs), OPENER, path.as_ref())
    }
}

impl<'a> Repair<'a> {
    /// As `plan`, over the given file system and rows, for crash tests.
    ///
    /// # Errors
    /// As `plan`.
    pub fn plan_with(
        fs: Arc<dyn Fs>,
        rows: &'a dyn RowOpener,
        root: &Path,
    ) -> Result<Self, OpenError> {
        let directory = Directory::lock(Arc::clone(&fs), root, false)?;
        if directory.is_backup()? {
            return Err(OpenError::Backup { path: root.to_owned() });
        }
        let identity = match directory.contents_for_repair()? {
            Contents::Store(identity) => identity,
            Contents::Empty | Contents::HalfMade => {
                let reason = "STORE is missing; nothing was ever answered from it";
                return Err(OpenError::NotAStore { path: root.to_owned(), reason });
            }
        };
        let note = directory.salvage_note()?;
        let mut repair = Self {
            fs,
            rows,
            directory,
            identity,
            condition: Condition::Interrupted,
            leftovers: Vec::new(),
            scanned: None,
            note,
        };
        if repair.note.is_none() {
            repair.judge()?;
        }
        Ok(repair)
    }

    fn judge(&mut self) -> Result<(), OpenError> {
        self.leftovers = self.directory.leftovers()?;
        let judged = judge(&self.fs, self.rows, &self.directory, &self.identity)?;
        self.condition = match judged {
            Judged::Sound(scanned) => {
                let report = scanned.report();
                self.leftovers.extend(report.unfinished_purge.iter().cloned());
                self.leftovers.extend(scanned.prepared().map(Path::to_owned));
                let condition = match &report.verdict {
                    TailVerdict::Torn(torn) => Condition::Torn(torn.clone()),
                    TailVerdict::End => Condition::Whole,
                };
                self.scanned = Some(*scanned);
                condition
            }
            Judged::Damaged(damage) => Condition::Damaged(damage),
        };
        Ok(())
    }

    /// Takes the snapshot for damaged, although it reads: a closer look has found that its rows
    /// contradict each other. `cause` is that finding.
    ///
    /// # Errors
    /// As `plan`.
    pub fn distrust_snapshot(&mut self, cause: String) -> Result<(), OpenError> {
        self.scanned = None;
        let damage = damage::assess(&self.fs, &self.directory, &self.identity, None, cause)?;
        self.condition = Condition::Damaged(Box::new(damage));
        Ok(())
    }

    /// How the store is.
    #[must_use]
    pub fn condition(&self) -> &Condition {
        &self.condition
    }

    /// Who the store is.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Files that a crash left behind and that a repair, as the next opening, removes.
    #[must_use]
    pub fn leftovers(&self) -> &[PathBuf] {
        &self.leftovers
    }

    /// Whether [`cut`](Self::cut) would change anything.
    #[must_use]
    pub fn is_needed(&self) -> bool {
        let unfinished =
            self.scanned.as_ref().is_some_and(|scanned| scanned.report().unfinished_rollover);
        self.condition != Condition::Whole || !self.leftovers.is_empty() || unfinished
    }

    /// Cuts a torn tail, after a durable copy of it, and removes what the next opening would
    /// remove. Other damage is refused. Does nothing to a store that needs nothing.
    ///
    /// # Errors
    /// [`RepairError`]. Without the copy, as on a full disk, nothing is cut.
    pub fn cut(self) -> Result<Option<Repaired>, RepairError> {
        if let Condition::Damaged(damage) = self.condition {
            return Err(RepairError::NeedsSalvage(damage));
        }
        if self.condition == Condition::Interrupted {
            self.directory.contents()?; // the error that says so
        }
        if !self.is_needed() {
            return Ok(None);
        }
        let Some(scanned) = self.scanned else { return Ok(None) };
        // From here on as an opening does it: the incarnation first, durably.
        let incarnation =
            self.identity.incarnation.max(scanned.report().incarnation).saturating_add(1);
        self.directory.write_identity(&Identity { incarnation, ..self.identity })?;
        self.directory.clear_creating()?;
        let options = log_options(&self.identity);
        let quarantine = self.directory.quarantine();
        let (_, log) =
            scanned.repair_with(&quarantine, incarnation, options, Evidence::Required)?;
        let mut removed = self.leftovers;
        removed.retain(|path| !log.unlinked.contains(path));
        Ok(Some(Repaired { log, removed, incarnation }))
    }

    /// Gives up what does not read and keeps what is provable: see [`Damage`] for what that is.
    /// Everything is copied to `quarantine/` first, durably. A store that needs no salvage is
    /// repaired as by [`cut`](Self::cut), unless `force`.
    ///
    /// # Errors
    /// [`RepairError`]. A salvage that was begun leaves a note, with which the store opens for
    /// nobody until another salvage has gone on.
    pub fn salvage(self, force: bool) -> Result<Salvaged, RepairError> {
        match &self.condition {
            Condition::Damaged(damage) => {
                if let Some(reason) = damage.hopeless() {
                    return Err(RepairError::Hopeless { reason, damage: damage.clone() });
                }
                salvage::begin(self)
            }
            Condition::Interrupted => salvage::go_on(self),
            _ if force => salvage::begin(self),
            _ => Ok(Salvaged::NotNeeded(self.cut()?)),
        }
    }
}

pub(super) fn log_options(identity: &Identity) -> LogOptions {
    let segment_bytes = identity.segment_bytes;
    LogOptions { segment_bytes, relaxed: false, prepare: Prepare::Inline }
}

/// What a look at a whole store tells.
pub(super) enum Judged {
    /// Snapshot and log are whole and fit together, but for a torn tail.
    Sound(Box<ScannedLog>),
    /// They are not.
    Damaged(Box<Damage>),
}

/// Reads everything: all rows, all frames, every entry, and whether they follow each other.
pub(super) fn judge(
    fs: &Arc<dyn Fs>,
    rows: &dyn RowOpener,
    directory: &Directory,
    identity: &Identity,
) -> Result<Judged, OpenError> {
    let snapshot = match rows::look(fs, rows, directory, identity)? {
        Ok(snapshot) => snapshot,
        Err(cause) => {
            let damage = damage::assess(fs, directory, identity, None, cause)?;
            return Ok(Judged::Damaged(Box::new(damage)));
        }
    };
    let applied_lsn = snapshot.applied_lsn();
    let mut replay = Replay::new(Arc::clone(&snapshot));
    let scanned = log::scan(
        Arc::clone(fs),
        &directory.wal(),
        identity.uuid,
        applied_lsn,
        Scope::All,
        &mut |entry| -> Result<(), EntryError> {
            if entry.lsn > applied_lsn {
                return replay.apply(&entry);
            }
            crate::codec::decode_transition(entry.kind, entry.version, entry.body)?;
            Ok(())
        },
    );
    let error = match scanned.map_err(scan_error) {
        Ok(scanned) => return Ok(Judged::Sound(Box::new(scanned))),
        Err(error) => error,
    };
    if error.class() != ErrorClass::Corrupt {
        return Err(error);
    }
    let cause = error.to_string();
    drop(replay);
    let damage = damage::assess(fs, directory, identity, Some(snapshot), cause)?;
    Ok(Judged::Damaged(Box::new(damage)))
}
