//! The offline check: the whole log and the whole snapshot, every finding with its place.
//!
//! Reads only. Goes on behind a finding wherever the bytes allow it, so that one report shows the
//! extent of the damage.

mod entries;
mod findings;
mod record_files;
mod rows;
mod survey;

use std::path::Path;
use std::sync::Arc;

use uuid::Uuid;

pub use findings::Finding;
pub use rows::RowCounts;

use findings::Findings;

use super::OnProgress;
use super::source::{ATTEMPTS, SharedRows, Source, pause};
use crate::engine::directory::Identity;
use crate::error::OpenError;
use crate::fsio::RealFs;
use crate::log::{LogError, TailReport, TailVerdict, TornTail};
use crate::model::Lsn;
use crate::snapshot::Snapshot;

/// How a store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Everything is as it was written.
    Clean,
    /// The log ends in an unfinished frame, which the next opening cuts: a crash left it, and
    /// nothing in it was ever answered for. Beside a running store it may be on its way.
    Torn(TornTail),
    /// Something that was once whole no longer is.
    Damage,
}

/// What a check has seen.
#[derive(Debug, Clone)]
pub struct VerifyReport {
    /// The verdict.
    pub verdict: Verdict,
    /// What is wrong, in the order in which it was found.
    pub findings: Vec<Finding>,
    /// Further findings that are not listed.
    pub more_findings: u64,
    /// Who the store is, unless that cannot be told.
    pub identity: Option<Identity>,
    /// What the log looks like, unless it is damaged.
    pub log: Option<TailReport>,
    /// Entries of the log that were decoded.
    pub entries: u64,
    /// Of these, such as were laid over the snapshot.
    pub replayed: u64,
    /// Every entry up to this LSN is in the snapshot, unless that cannot be told.
    pub snapshot_lsn: Option<Lsn>,
    /// Rows of the snapshot that were checked.
    pub rows: RowCounts,
}

/// Checks a store: all segments, all rows, RocksDB's own files, and that they fit together.
///
/// Beside a running store the check is begun anew when a finding may be a trace of its work.
///
/// # Errors
/// [`OpenError`] when the check cannot be made: not a store, of a newer format, or unreadable.
/// Damage is no error here.
pub fn verify(path: &Path, progress: OnProgress<'_>) -> Result<VerifyReport, OpenError> {
    let source = match Source::find(path) {
        Ok(source) => source,
        Err(OpenError::BadIdentity { path }) => {
            let mut findings = Findings::default();
            let expected = "a STORE file with a valid checksum";
            findings.add(Finding::new(&path, expected, "other bytes").at(0));
            return Ok(Check { findings, ..Check::default() }.report(None));
        }
        Err(error) => return Err(error),
    };
    let mut previous: Option<Vec<Finding>> = None;
    for attempt in 1..=ATTEMPTS {
        let before = source.names()?;
        let check = check(&source, progress);
        let at_work = source.names()? != before;
        match check {
            Ok(check) => {
                let listed = &check.findings.listed;
                // What shows up twice in the same place is no trace of a store at work.
                if listed.is_empty() || !at_work || previous.as_ref() == Some(listed) {
                    return Ok(check.report(Some(source.identity)));
                }
                previous = Some(check.findings.listed);
            }
            Err(OpenError::Log(LogError::Overtaken { .. })) => {}
            Err(error) if !at_work => return Err(error),
            Err(_) => {}
        }
        pause(attempt);
    }
    Err(LogError::Overtaken { dir: source.directory.wal() }.into())
}

/// One pass over everything.
#[derive(Debug, Default)]
struct Check {
    findings: Findings,
    log: Option<TailReport>,
    entries: u64,
    replayed: u64,
    snapshot_lsn: Option<Lsn>,
    rows: RowCounts,
}

impl Check {
    fn report(self, identity: Option<Identity>) -> VerifyReport {
        let torn = self.log.as_ref().and_then(|log| match &log.verdict {
            TailVerdict::Torn(torn) => Some(torn.clone()),
            TailVerdict::End => None,
        });
        let verdict = match torn {
            _ if !self.findings.listed.is_empty() => Verdict::Damage,
            Some(torn) => Verdict::Torn(torn),
            None => Verdict::Clean,
        };
        VerifyReport {
            verdict,
            findings: self.findings.listed,
            more_findings: self.findings.more,
            identity,
            log: self.log,
            entries: self.entries,
            replayed: self.replayed,
            snapshot_lsn: self.snapshot_lsn,
            rows: self.rows,
        }
    }
}

fn check(source: &Source, progress: OnProgress<'_>) -> Result<Check, OpenError> {
    let mut check = Check::default();
    let dir = source.directory.snapshot();
    record_files::check(&*source.fs, &dir, &mut check.findings)?;
    let opened = open_snapshot(source, &mut check.findings)?;
    if let Some((rows, snapshot, _scratch)) = &opened {
        check.snapshot_lsn = Some(snapshot.applied_lsn());
        check.rows = rows::check(rows, snapshot, &mut check.findings, progress)?;
    }
    let snapshot = opened.as_ref().map(|(_, snapshot, _)| Arc::clone(snapshot));
    entries::check(source, snapshot, &mut check, progress)?;
    if check.log.is_none() {
        let uuid: Uuid = source.identity.uuid;
        survey::check(&RealFs, &source.segments()?, uuid, &mut check.findings)?;
    }
    Ok(check)
}

type Opened = (SharedRows, Arc<Snapshot>, tempfile::TempDir);

/// Opens the snapshot; damage is a finding.
fn open_snapshot(source: &Source, findings: &mut Findings) -> Result<Option<Opened>, OpenError> {
    let opened = source.rows().and_then(|(rows, scratch)| {
        let rows = SharedRows(Arc::new(rows));
        let snapshot = Snapshot::open(Box::new(rows.clone()), source.identity.uuid)?;
        Ok((rows, Arc::new(snapshot), scratch))
    });
    match opened {
        Ok(opened) => Ok(Some(opened)),
        Err(OpenError::Snapshot(error)) if error.is_corruption() => {
            findings.add(Finding::of_snapshot(&error));
            Ok(None)
        }
        // A file that is missing was found before, and is a failed system call to RocksDB.
        Err(OpenError::Snapshot(_)) if !findings.listed.is_empty() => Ok(None),
        Err(error) => Err(error),
    }
}
