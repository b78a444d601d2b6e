//! Salvage: what is provable becomes the snapshot, and a new log begins behind it.
//!
//! A linear story; each step is durable before the next, and a crash anywhere is gone on from by
//! another salvage:
//!
//! 1. everything is copied to `quarantine/`;
//! 2. a note in the store's root says what is about to happen. Until it goes, nobody opens the
//!    store; from it a salvage that goes on knows that the copies are complete;
//! 3. the provable entries are laid over the snapshot, in one checkpoint;
//! 4. the old log goes, and a new one begins at an LSN that was never given out;
//! 5. `STORE` gets the new incarnation, and the note goes.
//!
//! No frame is written again: damage never gets a fresh checksum.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::damage::Seen;
use super::{Repair, RepairError, Repaired, log_options, rows};
use crate::engine::directory::{Directory, Identity, SalvageNote};
use crate::engine::recovery::{Replay, RowOpener};
use crate::error::OpenError;
use crate::fsio::{self, Fs, FsError};
use crate::log::salvage::Provable;
use crate::log::{self, LogIdentity};
use crate::model::Lsn;
use crate::snapshot::Snapshot;

/// After a salvage, and in a restored backup, LSNs go on at the next multiple of this. What is lost
/// may have been given out, so no LSN of it is given out again, and nothing of the old log or of an
/// older snapshot ever fits to the new log. No log holds that many entries between two checkpoints.
pub const SALVAGE_STRETCH: Lsn = 1 << 40;

/// What a salvage did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Salvaged {
    /// No salvage was needed; what a plain repair did, if anything.
    NotNeeded(Option<Repaired>),
    /// What is provable was kept.
    Kept {
        /// Where everything was copied to before.
        evidence: PathBuf,
        /// The first LSN that the store gives out from now on.
        next_lsn: Lsn,
        /// Incarnation of the salvage.
        incarnation: u64,
    },
}

pub(in crate::engine) fn next_stretch(highest: Lsn) -> Lsn {
    (highest / SALVAGE_STRETCH).saturating_add(1).saturating_mul(SALVAGE_STRETCH)
}

pub(super) fn begin(repair: Repair<'_>) -> Result<Salvaged, RepairError> {
    let (kept_lsn, next_lsn, seen, rebuild) = match &repair.condition {
        super::Condition::Damaged(damage) => {
            let Provable { last_lsn, incarnation, .. } = damage.log;
            (last_lsn, damage.next_lsn(), incarnation, damage.snapshot_lsn.is_none())
        }
        _ => {
            let report = repair.scanned.as_ref().map(log::ScannedLog::report);
            let highest = report.map_or(0, |report| report.last_lsn);
            (highest, next_stretch(highest), report.map_or(0, |report| report.incarnation), false)
        }
    };
    let incarnation = repair.identity.incarnation.max(seen).saturating_add(1);
    let note = SalvageNote { kept_lsn, next_lsn, incarnation, rebuild };
    copy_evidence(&*repair.fs, &repair.directory, &evidence(&repair.directory, &note))?;
    repair.directory.write_salvage_note(&note)?;
    finish(&repair, &note)
}

pub(super) fn go_on(repair: Repair<'_>) -> Result<Salvaged, RepairError> {
    match repair.note {
        Some(note) => finish(&repair, &note),
        None => Ok(Salvaged::NotNeeded(None)),
    }
}

fn finish(repair: &Repair<'_>, note: &SalvageNote) -> Result<Salvaged, RepairError> {
    let Repair { fs, rows, directory, identity, .. } = repair;
    let snapshot = open_rows(*rows, directory, identity, note)?;
    rebase(fs, directory, identity, snapshot, note, &evidence(directory, note))?;
    let incarnation = note.incarnation.max(identity.incarnation);
    directory.write_identity(&Identity { incarnation, ..*identity })?;
    directory.clear_creating()?;
    directory.clear_salvage_note()?;
    let evidence = evidence(directory, note);
    Ok(Salvaged::Kept { evidence, next_lsn: note.next_lsn, incarnation })
}

/// Opens the rows for writing; makes them anew where they are damaged and that was not done before.
fn open_rows(
    rows: &dyn RowOpener,
    directory: &Directory,
    identity: &Identity,
    note: &SalvageNote,
) -> Result<Arc<Snapshot>, OpenError> {
    let path = directory.snapshot();
    let open = || Snapshot::open(rows.open(&path)?, identity.uuid);
    if !note.rebuild {
        return Ok(Arc::new(open()?));
    }
    if let Ok(snapshot) = open()
        && snapshot.applied_lsn().saturating_add(1) == note.next_lsn
    {
        rows::check(&snapshot)?;
        return Ok(Arc::new(snapshot));
    }
    Ok(Arc::new(Snapshot::create(rows.create(&path)?, identity.uuid)?))
}

/// Lays what the log proves over the snapshot, in one checkpoint, and begins a new log at
/// `next_lsn`. Harmless to repeat, wherever it was cut off.
///
/// # Errors
/// [`OpenError::LessThanPromised`] when damage came since the note was written; what was before is
/// in `copy`. Nothing is changed then.
pub(in crate::engine) fn rebase(
    fs: &Arc<dyn Fs>,
    directory: &Directory,
    identity: &Identity,
    snapshot: Arc<Snapshot>,
    note: &SalvageNote,
    copy: &Path,
) -> Result<(), OpenError> {
    let SalvageNote { kept_lsn, next_lsn, incarnation, .. } = *note;
    let applied_lsn = snapshot.applied_lsn();
    if applied_lsn.saturating_add(1) != next_lsn {
        let mut replay = Replay::new(Arc::clone(&snapshot));
        let found_lsn =
            Seen::new(&mut replay).read(&**fs, directory, identity, applied_lsn)?.last_lsn;
        if found_lsn < kept_lsn {
            let copy = copy.to_owned();
            return Err(OpenError::LessThanPromised { kept_lsn, found_lsn, copy });
        }
        let batch = replay.resident().freeze(next_lsn.saturating_sub(1));
        snapshot.write(&batch)?;
    }
    drop(snapshot);
    let wal = directory.wal();
    let mut begun = false;
    for (first_lsn, path) in log::file_names(&**fs, &wal)? {
        if first_lsn == Some(next_lsn) {
            begun = true; // only a whole segment has a segment's name
        } else {
            fs.remove_file(&path)?;
        }
    }
    fs.sync_dir(&wal)?;
    if !begun {
        let log_identity = LogIdentity { uuid: identity.uuid, incarnation };
        let options = log_options(identity);
        log::create_from(Arc::clone(fs), &wal, log_identity, options, next_lsn)?;
    }
    Ok(())
}

fn evidence(directory: &Directory, note: &SalvageNote) -> PathBuf {
    directory.quarantine().join(format!("salvage-{}", note.incarnation))
}

/// Copies `STORE`, the log and the snapshot, all of it durable when this returns.
fn copy_evidence(fs: &dyn Fs, directory: &Directory, to: &Path) -> Result<(), FsError> {
    let everything = |_: &std::ffi::OsStr| true;
    fsio::ensure_dir(fs, &directory.quarantine())?;
    fsio::copy_files(fs, directory.root(), to, &|name| name == "STORE")?;
    fsio::copy_files(fs, &directory.wal(), &to.join("wal"), &everything)?;
    let snapshot = directory.snapshot();
    if fs.exists(&snapshot)? {
        fsio::copy_files(fs, &snapshot, &to.join("snapshot"), &everything)?;
    }
    Ok(())
}
