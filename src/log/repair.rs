//! Makes a scanned log fit for appending.
//!
//! A linear story, each step durable before the next, and each harmless if a crash cuts it off:
//! the next scan finds the same end, or the clean one.

use std::path::{Path, PathBuf};

use super::chain::Unproven;
use super::directory::KnownSegment;
use super::error::Stage;
use super::format::{FIRST_FRAME, SEAL_BYTES};
use super::frame::{FrameFields, FrameKind, encode_frame};
use super::prepare::Preparer;
use super::reader::SegmentReader;
use super::scan::{ScannedLog, TornTail};
use super::walk::LogEnd;
use super::writer::{LogWriter, OpenSegment, Resume};
use super::{LogError, LogIdentity, LogOptions, Lsn};
use crate::fsio::{Fs, FsError, FsFile, OpenMode, read_up_to, write_all_at, write_zeros_at};
use crate::seeded;

/// Small frames are rewritten together, about this many bytes at a time.
const REWRITE_BYTES: usize = 1 << 20;

/// Whether a torn tail may be cut without a copy of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// Yes, when the disk is full: opening a store must be possible there.
    BestEffort,
    /// No: without the copy nothing is cut.
    Required,
}

/// What a repair did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RepairReport {
    /// The torn tail that was cut, if there was one.
    pub cut: Option<TornTail>,
    /// The copy of its bytes; none if there were none, or if the disk was full.
    pub evidence: Option<PathBuf>,
    /// Bytes of frames written again, because nothing proved that they had reached the disk.
    pub rewritten_bytes: u64,
    /// Whether the segment before the last was given its missing seal.
    pub sealed: bool,
    /// Segments and leftovers that were unlinked.
    pub unlinked: Vec<PathBuf>,
}

impl ScannedLog {
    /// Cuts a torn tail, after copying it to `quarantine` (created if absent; a full disk does not
    /// stop the cut); writes the frames that nothing vouches for once more, byte for byte; finishes
    /// what a crash interrupted; and goes on as a writer with this incarnation.
    ///
    /// # Errors
    /// [`LogError::StaleIncarnation`] and [`LogError::SegmentBytes`] before anything is changed;
    /// [`LogError::Failed`] naming the step; [`LogError::Corrupt`] if a frame no longer reads as it
    /// did in the scan. After an error, scan again.
    pub fn repair(
        self,
        quarantine: &Path,
        incarnation: u64,
        options: LogOptions,
    ) -> Result<(LogWriter, RepairReport), LogError> {
        self.repair_with(quarantine, incarnation, options, Evidence::BestEffort)
    }

    /// As [`repair`](Self::repair), but tells what a full disk means for the evidence.
    ///
    /// # Errors
    /// As [`repair`](Self::repair).
    pub fn repair_with(
        self,
        quarantine: &Path,
        incarnation: u64,
        options: LogOptions,
        evidence: Evidence,
    ) -> Result<(LogWriter, RepairReport), LogError> {
        options.check()?;
        if incarnation <= self.report.incarnation {
            let found = self.report.incarnation;
            return Err(LogError::StaleIncarnation { given: incarnation, found });
        }
        let ScannedLog { fs, dir, uuid, prepared, end, mut report } = self;
        let mut done = RepairReport::default();

        // Names first: a segment that was renamed but not synced must not vanish later.
        for path in report.unfinished_purge.iter().chain(&prepared) {
            fs.remove_file(path).map_err(LogError::failed(Stage::Purge))?;
            done.unlinked.push(path.clone());
        }
        fs.sync_dir(&dir).map_err(LogError::failed(Stage::Purge))?;

        if let Some(torn) = &end.torn {
            done.evidence = copy_evidence(&*fs, quarantine, torn, incarnation, evidence)
                .map_err(LogError::failed(Stage::Quarantine))?;
            if !seeded::bug("amelie-17") && !seeded::bug("etcd-6267") {
                cut(&*fs, torn, &end.segment).map_err(LogError::failed(Stage::Cut))?;
            }
            for segment in report.segments.iter_mut().filter(|other| other.path == torn.path) {
                segment.bytes = end.segment.header.segment_bytes;
            }
            done.cut = Some(torn.clone());
        }
        if let Some(unproven) = end.unproven.as_ref().filter(|_| !seeded::bug("redb-450")) {
            rewrite(&*fs, unproven, end.chain.next_lsn)?;
            done.rewritten_bytes = unproven.to.saturating_sub(unproven.from);
        }

        let mut prev_checksum = end.chain.prev_checksum.unwrap_or(0);
        let mut log_bytes = report.frame_bytes;
        let (last, offset) = match &end.successor {
            None => (&end.segment, end.offset),
            Some(successor) => {
                prev_checksum = seal(&*fs, &end, prev_checksum, incarnation)
                    .map_err(LogError::failed(Stage::Rollover))?;
                log_bytes = log_bytes.saturating_add(SEAL_BYTES);
                done.sealed = true;
                (successor, FIRST_FRAME)
            }
        };

        let behind = end.torn.as_ref().filter(|_| seeded::bug("amelie-17"));
        let offset =
            behind.map_or(offset, |torn| offset.saturating_add(torn.bytes).next_multiple_of(8));
        let resume = Resume {
            current: OpenSegment {
                file: fs.open(&last.path, OpenMode::ReadWrite)?,
                id: last.header.id,
                segment_bytes: last.header.segment_bytes,
                end: offset,
            },
            segments: report
                .segments
                .into_iter()
                .filter(|segment| !report.unfinished_purge.contains(&segment.path))
                .collect(),
            next_lsn: end.chain.next_lsn,
            prev_checksum,
            // The header of a segment without entries vouches for all before it.
            vouched: end.chain.next_lsn == last.first_lsn()
                || end.chain.next_lsn.saturating_sub(1) <= report.vouched_lsn,
            log_bytes,
        };
        let preparer = Preparer::new(fs.clone(), &dir, &options);
        let identity = LogIdentity { uuid, incarnation };
        Ok((LogWriter::resume(fs, &dir, identity, options, preparer, resume), done))
    }
}

/// Copies the torn bytes to the quarantine, durably. `None` if there is nothing to copy, or no
/// space for the copy.
fn copy_evidence(
    fs: &dyn Fs,
    quarantine: &Path,
    tail: &TornTail,
    incarnation: u64,
    evidence: Evidence,
) -> Result<Option<PathBuf>, FsError> {
    if tail.bytes == 0 {
        return Ok(None);
    }
    let name = format!("{:020}-{}-{incarnation}.torn", tail.segment, tail.offset);
    let target = quarantine.join(&name);
    let temporary = quarantine.join(format!("{name}.tmp"));
    let copy = || {
        if !fs.exists(quarantine)? {
            fs.create_dir(quarantine)?;
            if let Some(parent) = quarantine.parent() {
                fs.sync_dir(parent)?;
            }
        }
        if fs.exists(&temporary)? {
            fs.remove_file(&temporary)?;
        }
        let from = fs.open(&tail.path, OpenMode::Read)?;
        let to = fs.open(&temporary, OpenMode::CreateNew)?;
        copy_bytes(&*from, tail.offset, &*to, tail.bytes)?;
        to.sync_all()?;
        fs.rename(&temporary, &target)?;
        fs.sync_dir(quarantine)
    };
    match copy() {
        Ok(()) => Ok(Some(target)),
        Err(error)
            if error.is_full() && evidence == Evidence::BestEffort && !seeded::bug("etcd-2819") =>
        {
            tracing::warn!(%error, "no space to copy a torn tail before it is cut");
            // Whatever was copied takes space that the log needs more.
            if fs.exists(&temporary)? {
                fs.remove_file(&temporary)?;
            }
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn copy_bytes(from: &dyn FsFile, offset: u64, to: &dyn FsFile, bytes: u64) -> Result<(), FsError> {
    let mut buffer = vec![0; usize::try_from(bytes.min(1 << 20)).unwrap_or(1 << 20)];
    let mut done: u64 = 0;
    while done < bytes {
        let left = usize::try_from(bytes.saturating_sub(done)).unwrap_or(usize::MAX);
        let size = buffer.len().min(left);
        let chunk = buffer.get_mut(..size).unwrap_or_default();
        let read = read_up_to(from, chunk, offset.saturating_add(done))?;
        if read == 0 {
            break;
        }
        write_all_at(to, chunk.get(..read).unwrap_or_default(), done)?;
        done = done.saturating_add(read as u64);
    }
    Ok(())
}

/// Writes zeros from the cut to the segment's end, and so gives a short file its length back.
fn cut(fs: &dyn Fs, torn: &TornTail, segment: &KnownSegment) -> Result<(), FsError> {
    let file = fs.open(&torn.path, OpenMode::ReadWrite)?;
    write_zeros_at(&*file, torn.offset, segment.header.segment_bytes)?;
    file.sync_all()
}

/// Writes the frames that may never have left the page cache again, with the bytes that verify, and
/// syncs them.
///
/// After a failed sync the kernel may hold pages that it never wrote and believes clean, so reading
/// them proves nothing about the disk. Writing makes them dirty again.
fn rewrite(fs: &dyn Fs, unproven: &Unproven, lsn: Lsn) -> Result<(), LogError> {
    let Unproven { segment, from, to } = unproven;
    let failed = || LogError::failed(Stage::Rewrite);
    let file = fs.open(&segment.path, OpenMode::ReadWrite).map_err(failed())?;
    let mut reader = SegmentReader::open(fs, segment, false)?;
    let mut run = Vec::new();
    let mut offset = *from;
    while offset < *to {
        let frame_bytes = match reader.frame(offset)? {
            Ok(frame) => frame.frame_bytes(),
            Err(fault) => {
                return Err(LogError::Corrupt {
                    path: segment.path.clone(),
                    offset,
                    lsn,
                    expected: "the frame that the scan read here".into(),
                    found: fault.to_string(),
                    row: "",
                });
            }
        };
        let size = usize::try_from(frame_bytes).unwrap_or(usize::MAX);
        run.extend_from_slice(reader.get(offset, size)?);
        offset = offset.saturating_add(frame_bytes);
        if run.len() >= REWRITE_BYTES || offset >= *to {
            let start = offset.saturating_sub(run.len() as u64);
            write_all_at(&*file, &run, start).map_err(failed())?;
            run.clear();
        }
    }
    file.sync_all().map_err(failed())
}

/// Finishes a rollover: the old segment gets the seal that the crash forestalled.
fn seal(fs: &dyn Fs, end: &LogEnd, prev_checksum: u32, incarnation: u64) -> Result<u32, FsError> {
    if seeded::bug("acoustid-157") {
        return Ok(prev_checksum);
    }
    let fields = FrameFields {
        kind: FrameKind::Seal,
        relaxed: false,
        first_lsn: end.chain.next_lsn,
        entry_count: 0,
        prev_checksum,
        durable_mark: end.chain.next_lsn.saturating_sub(1),
        incarnation,
    };
    let mut bytes = Vec::new();
    let checksum = encode_frame(&mut bytes, &end.segment.header.id, end.offset, &fields, &[]);
    let file = fs.open(&end.segment.path, OpenMode::ReadWrite)?;
    write_all_at(&*file, &bytes, end.offset)?;
    file.sync_data()?;
    Ok(checksum)
}
