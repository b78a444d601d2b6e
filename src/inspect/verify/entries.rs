//! The log: every frame, every entry, and what the newest entries do to the snapshot.

use std::sync::Arc;

use super::{Check, Finding};
use crate::codec::{self, CodecError};
use crate::engine::recovery::Replay;
use crate::error::{EntryError, OpenError};
use crate::inspect::source::Source;
use crate::inspect::{OnProgress, Progress};
use crate::log::{self, Entry, ScanError, Scope, segment_file_name};
use crate::model::{ApplyError, Lsn};
use crate::snapshot::Snapshot;

/// Entries between two words of progress.
const STEP: u64 = 4_096;

/// Reads the whole log. Damage is a finding; then `check.log` stays empty.
pub(super) fn check(
    source: &Source,
    snapshot: Option<Arc<Snapshot>>,
    check: &mut Check,
    progress: OnProgress<'_>,
) -> Result<(), OpenError> {
    let applied_lsn = match &snapshot {
        Some(snapshot) => snapshot.applied_lsn(),
        None => source.least_applied()?,
    };
    let mut replay = snapshot.map(Replay::new);
    let wal = source.directory.wal();
    let mut visit = |entry: Entry<'_>| {
        check.entries = check.entries.saturating_add(1);
        if check.entries.is_multiple_of(STEP) {
            progress(Progress { stage: "checking the log", done: check.entries, total: 0 });
        }
        let answer = judge(&entry, applied_lsn, replay.as_mut());
        let (expected, found) = match answer {
            Ok(()) => return Ok(()),
            Err(EntryError::Codec(newer @ CodecError::NewerEntry { .. })) => return Err(newer),
            Err(EntryError::Codec(error)) => ("an entry that decodes", error.to_string()),
            Err(EntryError::Apply(error)) => {
                // Whatever builds on it would be impossible as well.
                replay = None;
                ("an entry that fits the state", in_words(&error))
            }
            Err(EntryError::Snapshot(error)) => {
                replay = None;
                check.findings.add(Finding::of_snapshot(&error));
                return Ok(());
            }
        };
        let path = wal.join(segment_file_name(entry.segment));
        let finding = Finding::new(&path, expected, found);
        check.findings.add(finding.at(entry.offset).of_lsn(entry.lsn));
        Ok(())
    };
    let scanned = log::scan(
        Arc::clone(&source.fs),
        &wal,
        source.identity.uuid,
        applied_lsn,
        Scope::All,
        &mut visit,
    );
    match scanned {
        Ok(scanned) => check.log = Some(scanned.report().clone()),
        Err(ScanError::Log(error)) => check.findings.add(Finding::of_log(error)?),
        Err(ScanError::Visit { lsn, path, offset, source }) => {
            return Err(OpenError::Entry { path, offset, lsn, source: source.into() });
        }
    }
    if let Some(replay) = &mut replay {
        check.replayed = replay.applied();
        check_rows(source, replay, check);
    }
    Ok(())
}

/// Decodes an entry; one that the snapshot lacks is applied to it.
fn judge(
    entry: &Entry<'_>,
    applied_lsn: Lsn,
    replay: Option<&mut Replay>,
) -> Result<(), EntryError> {
    match replay {
        Some(replay) if entry.lsn > applied_lsn => replay.apply(entry),
        _ => {
            codec::decode_transition(entry.kind, entry.version, entry.body)?;
            Ok(())
        }
    }
}

fn in_words(error: &ApplyError) -> String {
    format!("{}: {}: {}", error.transition, error.row, error.reason)
}

/// The rows that the entries led to.
fn check_rows(source: &Source, replay: &mut Replay, check: &mut Check) {
    let mut broken: Vec<_> = replay
        .resident()
        .state()
        .partitions
        .iter()
        .filter_map(|(key, row)| Some((row.last_lsn, key.clone(), row.check_invariants().err()?)))
        .collect();
    broken.sort();
    for (lsn, key, rule) in broken {
        let expected = format!("a state of share partition {key} that keeps the rules");
        let finding = Finding::new(source.directory.root(), expected, rule);
        check.findings.add(finding.of_lsn(lsn));
    }
}
