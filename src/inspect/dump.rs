//! Every entry of the log, one by one.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::source::Source;
use super::text::{OneLine, ack_name, outcome_name, state_name};
use crate::codec::{self, CodecError};
use crate::error::OpenError;
use crate::log::{self, Entry, ScanError, Scope, TailReport, segment_file_name};
use crate::model::{AckRange, Lsn, Partition, StageTransition, StateBatch, Transition};
use crate::snapshot::Snapshot;

/// One entry of the log. Prints as one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpedEntry {
    /// Its LSN.
    pub lsn: Lsn,
    /// First LSN of its segment.
    pub segment: Lsn,
    /// Where its header starts in the segment's file, in bytes.
    pub offset: u64,
    /// Where its frame starts, in bytes.
    pub frame_offset: u64,
    /// Number of its kind.
    pub kind: u16,
    /// Version of its body.
    pub version: u8,
    /// Size of its body.
    pub body_bytes: usize,
    /// What it says, or why that cannot be told.
    pub transition: Result<Transition, CodecError>,
}

/// Why a dump ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DumpError<E> {
    /// The log cannot be read or is damaged; what comes before the damage was delivered.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The visitor gave up.
    #[error("the dump was broken off")]
    Visit(#[source] E),
}

/// Delivers every entry of the log from `from_lsn` on, in order, and tells how the log ends.
///
/// Entries that the snapshot has applied are in the log until they are purged, and are delivered as
/// well. Beside a running store it goes on until the end of the moment.
///
/// # Errors
/// [`DumpError`].
pub fn dump<E>(
    path: &Path,
    from_lsn: Lsn,
    visit: &mut dyn FnMut(&DumpedEntry) -> Result<(), E>,
) -> Result<TailReport, DumpError<E>> {
    let source = Source::find(path)?;
    // A purge may overtake the scan; the entries delivered until then are not delivered again.
    let mut next = from_lsn;
    let answer = source.steadily(|| {
        let scanned = log::scan(
            Arc::clone(&source.fs),
            &source.directory.wal(),
            source.identity.uuid,
            applied_lsn(&source)?,
            Scope::All,
            &mut |entry| {
                if entry.lsn < next {
                    return Ok(());
                }
                next = entry.lsn.saturating_add(1);
                visit(&DumpedEntry::decode(&entry))
            },
        );
        match scanned {
            Ok(scanned) => Ok(Ok(scanned.report().clone())),
            Err(ScanError::Visit { source, .. }) => Ok(Err(source)),
            Err(ScanError::Log(error)) => Err(error.into()),
        }
    })?;
    answer.map_err(DumpError::Visit)
}

/// How far the snapshot reaches; a dump also works when there is no snapshot to ask.
fn applied_lsn(source: &Source) -> Result<Lsn, OpenError> {
    let snapshot = source.rows().and_then(|(rows, scratch)| {
        let snapshot = Snapshot::open(Box::new(rows), source.identity.uuid)?;
        Ok((snapshot.applied_lsn(), scratch))
    });
    match snapshot {
        Ok((applied, _)) => Ok(applied),
        Err(error) => {
            tracing::warn!(%error, "the snapshot cannot be read, the log is dumped without it");
            Ok(source.least_applied()?)
        }
    }
}

impl DumpedEntry {
    fn decode(entry: &Entry<'_>) -> Self {
        Self {
            lsn: entry.lsn,
            segment: entry.segment,
            offset: entry.offset,
            frame_offset: entry.frame_offset,
            kind: entry.kind,
            version: entry.version,
            body_bytes: entry.body.len(),
            transition: codec::decode_transition(entry.kind, entry.version, entry.body),
        }
    }

    /// Whether it passed its checksum and still does not decode, other than for its age.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        match &self.transition {
            Ok(_) | Err(CodecError::NewerEntry { .. }) => false,
            Err(_) => true,
        }
    }
}

impl fmt::Display for DumpedEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = segment_file_name(self.segment);
        write!(f, "{} {file}+{} ", self.lsn, self.offset)?;
        match &self.transition {
            Ok(transition) => write_transition(f, transition),
            Err(error) => {
                let (kind, version, bytes) = (self.kind, self.version, self.body_bytes);
                write!(f, "kind {kind} version {version}, {bytes} bytes: {}", OneLine(error))
            }
        }
    }
}

fn write_transition(f: &mut fmt::Formatter<'_>, transition: &Transition) -> fmt::Result {
    write!(f, "{}", transition.name())?;
    if let Some(key) = transition.key() {
        write!(f, " {}", OneLine(key))?;
    }
    match transition {
        Transition::Initialize { state_epoch, start_offset, time_ms, .. } => {
            write!(f, " state_epoch={state_epoch} start={start_offset} time_ms={time_ms}")
        }
        Transition::Write(write) => {
            write!(
                f,
                " start={} complete={} time_ms={} batches={}",
                write.start_offset,
                write.delivery_complete_count,
                write.time_ms,
                Batches(&write.batches)
            )
        }
        Transition::LeaderEpoch { leader_epoch, .. } => write!(f, " leader_epoch={leader_epoch}"),
        Transition::Delete { .. } => Ok(()),
        Transition::Import { partition, .. } => write_partition(f, partition),
        Transition::Stage(stage) => write_stage(f, stage),
        Transition::Marker(marker) => write!(
            f,
            " producer={}/{} coordinator_epoch={} version={} outcome={} resolves={} completes={} \
             time_ms={}",
            marker.producer_id,
            marker.producer_epoch,
            marker.coordinator_epoch,
            marker.transaction_version,
            outcome_name(marker.outcome),
            OrNone(marker.resolves),
            OrNone(marker.completes),
            marker.time_ms
        ),
        Transition::ForceResolve(force) => write!(
            f,
            " producer={}/{} outcome={} by=operator completes={} time_ms={}",
            force.producer_id,
            force.epoch,
            outcome_name(force.outcome),
            OrNone(force.completes),
            force.time_ms
        ),
        Transition::ExpireProducers { producer_ids } => write!(f, " producers={producer_ids:?}"),
    }
}

fn write_partition(f: &mut fmt::Formatter<'_>, partition: &Partition) -> fmt::Result {
    write!(
        f,
        " state_epoch={} leader_epoch={} leader_fence={} start={} init_start={} complete={} \
         snapshot_epoch={} create_time_ms={} write_time_ms={} batches={}",
        partition.state_epoch,
        partition.leader_epoch,
        partition.leader_fence,
        partition.start_offset,
        partition.init_start_offset,
        partition.delivery_complete_count,
        partition.snapshot_epoch,
        partition.create_time_ms,
        partition.write_time_ms,
        Batches(&partition.batches)
    )
}

fn write_stage(f: &mut fmt::Formatter<'_>, stage: &StageTransition) -> fmt::Result {
    write!(
        f,
        " producer={}/{} two_phase={} transactional_id={} member={}/{} state_epoch={} \
         leader_epoch={} time_ms={} acks=[",
        stage.producer_id,
        stage.producer_epoch,
        stage.two_phase,
        OneLine(&stage.transactional_id),
        OneLine(&stage.member_id),
        stage.member_epoch,
        stage.state_epoch,
        stage.leader_epoch,
        stage.time_ms
    )?;
    for (index, ack) in stage.acks.iter().enumerate() {
        let AckRange { first_offset, last_offset, delivery_count, .. } = ack;
        let gap = if index == 0 { "" } else { " " };
        let ack_type = ack_name(ack.ack_type);
        let (commit, abort) = (state_name(ack.commit_target), state_name(ack.abort_target));
        write!(
            f,
            "{gap}{first_offset}-{last_offset}:{ack_type}:{commit}/{abort}:{delivery_count}"
        )?;
    }
    f.write_str("]")
}

/// Batches as `[first-last:state:count ...]`.
struct Batches<'a>(&'a [StateBatch]);

impl fmt::Display for Batches<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (index, batch) in self.0.iter().enumerate() {
            let gap = if index == 0 { "" } else { " " };
            let StateBatch { first_offset, last_offset, delivery_state, delivery_count } = *batch;
            let state = state_name(delivery_state);
            write!(f, "{gap}{first_offset}-{last_offset}:{state}:{delivery_count}")?;
        }
        f.write_str("]")
    }
}

struct OrNone(Option<i16>);

impl fmt::Display for OrNone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str("none"),
        }
    }
}
