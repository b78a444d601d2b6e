//! Reads and verifies a log. Writes nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use super::directory::{KnownSegment, Listing};
use super::segment::Segment;
use super::walk::{LogEnd, Walk};
use super::{LogError, Lsn, ScanError};
use crate::fsio::Fs;
use crate::seeded;

/// Which segments to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// From the segment that can hold the first entry to be applied; entries already applied are
    /// verified and not delivered. Of earlier segments only names and headers are read. For
    /// recovery.
    Tail,
    /// All segments, and every entry is delivered. For offline verification and dumps: sealed
    /// segments are mapped where the file system can.
    All,
}

/// An entry of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its LSN.
    pub lsn: Lsn,
    /// What it is; the log does not know the kinds.
    pub kind: u16,
    /// Version of the body's encoding.
    pub version: u8,
    /// Zero in this version of the format.
    pub flags: u8,
    /// The encoded entry.
    pub body: &'a [u8],
    /// First LSN of the segment it is in.
    pub segment: Lsn,
    /// Where its header starts in the segment's file, in bytes.
    pub offset: u64,
    /// Where its frame starts in the segment's file, in bytes.
    pub frame_offset: u64,
}

/// What a scan found.
#[derive(Debug, Clone)]
pub struct TailReport {
    /// The oldest LSN the log can hold: the first segment's.
    pub first_lsn: Lsn,
    /// The last LSN of the log; one less than the first segment's if it has no entries.
    pub last_lsn: Lsn,
    /// Frames verified, marks and seals included.
    pub frames: u64,
    /// Entries verified.
    pub entries: u64,
    /// Bytes of the frames verified.
    pub frame_bytes: u64,
    /// Everything up to here is proven to have been synced: by a later frame's durable mark, by a
    /// successor segment, or by the snapshot.
    pub vouched_lsn: Lsn,
    /// The newest incarnation seen; 0 if none.
    pub incarnation: u64,
    /// How the log ends.
    pub verdict: TailVerdict,
    /// The crash fell between making the last segment and sealing the one before it.
    pub unfinished_rollover: bool,
    /// Segments that a purge should have unlinked.
    pub unfinished_purge: Vec<PathBuf>,
    /// Files that are none of the log's; they are left alone.
    pub unknown_files: Vec<PathBuf>,
    /// All segments, oldest first.
    pub segments: Vec<Segment>,
}

/// How a log ends.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TailVerdict {
    /// Cleanly, with zeros.
    End,
    /// With an unfinished frame, which repair cuts. Beside a running store this may be a frame that
    /// is being written.
    Torn(TornTail),
}

/// An unfinished end of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornTail {
    /// The segment.
    pub path: PathBuf,
    /// First LSN of the segment.
    pub segment: Lsn,
    /// Where the cut goes, in bytes.
    pub offset: u64,
    /// From there to the last byte that is not zero.
    pub bytes: u64,
    /// Bytes by which the file is too short.
    pub missing_bytes: u64,
    /// The LSN expected there.
    pub lsn: Lsn,
    /// Which check failed there.
    pub reason: String,
    /// The row of the end-of-log table that decided it.
    pub row: &'static str,
}

/// A scanned log, for [`repair`](ScannedLog::repair).
#[derive(Debug)]
pub struct ScannedLog {
    pub(super) fs: Arc<dyn Fs>,
    pub(super) dir: PathBuf,
    pub(super) uuid: Uuid,
    pub(super) prepared: Option<PathBuf>,
    pub(super) end: LogEnd,
    pub(super) report: TailReport,
}

impl ScannedLog {
    /// What was found.
    pub fn report(&self) -> &TailReport {
        &self.report
    }

    /// A segment that was being made, which repair unlinks.
    pub fn prepared(&self) -> Option<&Path> {
        self.prepared.as_deref()
    }
}

/// Reads and verifies the log in `dir` and delivers its entries in order: those above
/// `applied_lsn`, which is the snapshot's, or all with [`Scope::All`]. Writes nothing.
///
/// Beside a running store the scan may find an unfinished last frame, which the report then calls
/// torn, or be overtaken by a rollover or a purge, which is [`LogError::Overtaken`].
///
/// # Errors
/// [`ScanError::Log`] if the log is damaged, incomplete, foreign, newer or unreadable, or does not
/// reach the snapshot; [`ScanError::Visit`] if `visit` refused an entry.
pub fn scan<E>(
    fs: Arc<dyn Fs>,
    dir: &Path,
    uuid: Uuid,
    applied_lsn: Lsn,
    scope: Scope,
    visit: &mut dyn FnMut(Entry<'_>) -> Result<(), E>,
) -> Result<ScannedLog, ScanError<E>> {
    let listing = Listing::read(&*fs, dir).map_err(LogError::from)?;
    let answer = scan_listed(fs.clone(), dir, uuid, applied_lsn, scope, &listing, visit);
    if let Err(ScanError::Log(_)) = &answer
        && let Ok(now) = Listing::read(&*fs, dir)
        && !now.same_segments(&listing)
    {
        // What looks like damage may be the traces of a store at work.
        return Err(LogError::Overtaken { dir: dir.to_owned() }.into());
    }
    answer
}

fn scan_listed<E>(
    fs: Arc<dyn Fs>,
    dir: &Path,
    uuid: Uuid,
    applied_lsn: Lsn,
    scope: Scope,
    listing: &Listing,
    visit: &mut dyn FnMut(Entry<'_>) -> Result<(), E>,
) -> Result<ScannedLog, ScanError<E>> {
    let wanted = applied_lsn.saturating_add(1);
    let mut segments = Vec::with_capacity(listing.segments.len());
    for (first_lsn, path) in &listing.segments {
        segments.push(KnownSegment::open(&*fs, path.clone(), *first_lsn, uuid)?);
    }
    let first_lsn = segments.first().map_or(Lsn::MAX, KnownSegment::first_lsn);
    if first_lsn > wanted && !seeded::bug("nats-7620") {
        let after = segments.first().map(|segment| &*segment.path);
        let last = first_lsn.saturating_sub(1);
        return Err(LogError::missing(dir, wanted, last, None, after).into());
    }

    let mut walk = Walk::new(fs.clone(), dir, &segments, applied_lsn, scope)?;
    let mut start = match scope {
        Scope::All => 0,
        Scope::Tail => {
            segments.partition_point(|segment| segment.first_lsn() <= wanted).saturating_sub(1)
        }
    };
    let end = loop {
        let end = walk.run(start, visit)?;
        // The first frame to come repeats the checksum of the last one. If the segments read hold
        // none, it is the seal of the one before; that has no entries above `applied_lsn`.
        if end.chain.prev_checksum.is_some() || start == 0 {
            break end;
        }
        start = start.saturating_sub(1);
    };

    let describe = |segment: &KnownSegment| Segment {
        path: segment.path.clone(),
        first_lsn: segment.first_lsn(),
        bytes: segment.file_bytes,
    };
    let report = TailReport {
        first_lsn,
        last_lsn: end.chain.next_lsn.saturating_sub(1),
        frames: walk.frames,
        entries: walk.entries,
        frame_bytes: walk.frame_bytes,
        vouched_lsn: walk.vouchers.lsn,
        incarnation: segments
            .iter()
            .map(|segment| segment.header.incarnation)
            .fold(end.chain.incarnation, u64::max),
        verdict: end
            .torn
            .clone()
            .filter(|_| !seeded::bug("cqlite-1391"))
            .map_or(TailVerdict::End, TailVerdict::Torn),
        unfinished_rollover: end.successor.is_some(),
        unfinished_purge: segments
            .iter()
            .take(walk.purge)
            .map(|segment| segment.path.clone())
            .collect(),
        unknown_files: listing.unknown.clone(),
        segments: segments.iter().map(describe).collect(),
    };
    let prepared = listing.prepared.clone();
    Ok(ScannedLog { fs, dir: dir.to_owned(), uuid, prepared, end, report })
}
