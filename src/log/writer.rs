//! Writes the log.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::directory::{Listing, segment_file_name};
use super::entry::Batch;
use super::error::Stage;
use super::format::{FIRST_FRAME, FRAME_HEADER_BYTES, SEAL_BYTES, SegmentHeader, SegmentId};
use super::frame::{FrameFields, FrameKind, encode_frame, frame_bytes};
use super::prepare::Preparer;
use super::segment::{Segment, SegmentSet};
use super::{LogError, LogIdentity, LogOptions, Lsn};
use crate::fsio::{Fs, FsError, FsFile, OpenMode, write_all_at};
use crate::limits::{ENTRY_BYTES_MAX, FRAME_BYTES_MAX};
use crate::seeded;

/// Appends frames to the newest segment and rolls over to the next.
///
/// The first write or sync that fails stops the writer for good: what it reached on disk is
/// unknown, a later sync that succeeds would prove nothing, and only a fresh scan can tell.
#[derive(Debug)]
pub struct LogWriter {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    identity: LogIdentity,
    options: LogOptions,
    segments: Arc<SegmentSet>,
    preparer: Preparer,
    current: OpenSegment,
    next_lsn: Lsn,
    durable_lsn: Lsn,
    prev_checksum: u32,
    /// Everything written is synced.
    synced: bool,
    /// Something on disk vouches for the last frame.
    vouched: bool,
    max_payload: usize,
    log_bytes: u64,
    buffer: Vec<u8>,
    failure: Option<Failure>,
}

/// The segment that is written.
#[derive(Debug)]
pub(super) struct OpenSegment {
    pub file: Box<dyn FsFile>,
    pub id: SegmentId,
    pub segment_bytes: u64,
    /// Where the next frame goes.
    pub end: u64,
}

/// Where a log goes on after a repair.
#[derive(Debug)]
pub(super) struct Resume {
    pub current: OpenSegment,
    pub segments: Vec<Segment>,
    pub next_lsn: Lsn,
    pub prev_checksum: u32,
    pub vouched: bool,
    pub log_bytes: u64,
}

#[derive(Debug)]
struct Failure {
    stage: Stage,
    path: PathBuf,
    offset: Option<u64>,
    kind: io::ErrorKind,
    errno: Option<i32>,
}

/// Creates the log of a new store: its first segment, synced, in `dir`, which is created if it is
/// absent.
///
/// # Errors
/// [`LogError::Exists`] if there is a log already, [`LogError::SegmentBytes`] or
/// [`LogError::Failed`].
pub fn create(
    fs: Arc<dyn Fs>,
    dir: &Path,
    identity: LogIdentity,
    options: LogOptions,
) -> Result<LogWriter, LogError> {
    create_from(fs, dir, identity, options, 1)
}

/// As [`create`], for a store whose snapshot holds everything before `first_lsn`.
///
/// # Errors
/// As [`create`].
pub fn create_from(
    fs: Arc<dyn Fs>,
    dir: &Path,
    identity: LogIdentity,
    options: LogOptions,
    first_lsn: Lsn,
) -> Result<LogWriter, LogError> {
    options.check()?;
    let failed = || LogError::failed(Stage::Create);
    if !fs.exists(dir)? {
        fs.create_dir(dir).map_err(failed())?;
        if let Some(parent) = dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            fs.sync_dir(parent).map_err(failed())?;
        }
    }
    if let Some((_, path)) = Listing::read(&*fs, dir)?.segments.into_iter().next() {
        return Err(LogError::Exists { path });
    }
    let mut preparer = Preparer::new(fs.clone(), dir, &options);
    let id = SegmentId { uuid: identity.uuid, first_lsn };
    let header = SegmentHeader {
        id,
        segment_bytes: options.segment_bytes,
        incarnation: identity.incarnation,
    };
    let file = make_segment(&*fs, dir, &mut preparer, &header).map_err(failed())?;
    let segments =
        vec![Segment { path: file.path().to_owned(), first_lsn, bytes: options.segment_bytes }];
    let current = OpenSegment { file, id, segment_bytes: options.segment_bytes, end: FIRST_FRAME };
    let resume = Resume {
        current,
        segments,
        next_lsn: first_lsn,
        prev_checksum: 0,
        vouched: true,
        log_bytes: 0,
    };
    Ok(LogWriter::resume(fs, dir, identity, options, preparer, resume))
}

/// Turns the prepared file into a segment: header written and synced, then the name, then the
/// directory. Only a whole segment ever has a segment's name.
fn make_segment(
    fs: &dyn Fs,
    dir: &Path,
    preparer: &mut Preparer,
    header: &SegmentHeader,
) -> Result<Box<dyn FsFile>, FsError> {
    let prepared = preparer.take()?;
    let file = fs.open(prepared, OpenMode::ReadWrite)?;
    let path = dir.join(segment_file_name(header.id.first_lsn));
    if seeded::bug("zeebe-12374") {
        fs.rename(prepared, &path)?;
    }
    write_all_at(&*file, &header.encode(), 0)?;
    if !seeded::bug("raft-engine-219") {
        file.sync_data()?;
    }
    if !seeded::bug("zeebe-12374") {
        fs.rename(prepared, &path)?;
    }
    if !seeded::bug("etcd-6368") {
        fs.sync_dir(dir)?;
    }
    // Opened again so that later errors name the segment.
    fs.open(&path, OpenMode::ReadWrite)
}

impl LogWriter {
    pub(super) fn resume(
        fs: Arc<dyn Fs>,
        dir: &Path,
        identity: LogIdentity,
        options: LogOptions,
        preparer: Preparer,
        resume: Resume,
    ) -> LogWriter {
        let Resume { current, segments, next_lsn, prev_checksum, vouched, log_bytes } = resume;
        let mut max_payload = payload_room(options.segment_bytes);
        if next_lsn == current.id.first_lsn {
            // A segment without entries cannot be rolled over: the next one would have its name.
            max_payload = max_payload.min(payload_room(current.segment_bytes));
        }
        LogWriter {
            fs,
            dir: dir.to_owned(),
            identity,
            options,
            segments: Arc::new(SegmentSet::new(dir, segments)),
            preparer,
            current,
            next_lsn,
            durable_lsn: next_lsn.saturating_sub(1),
            prev_checksum,
            synced: true,
            vouched,
            max_payload,
            log_bytes,
            buffer: Vec::new(),
            failure: None,
        }
    }

    /// The LSN the next entry gets.
    pub fn next_lsn(&self) -> Lsn {
        self.next_lsn
    }

    /// Last LSN written; 0 before the first.
    pub fn written_lsn(&self) -> Lsn {
        self.next_lsn.saturating_sub(1)
    }

    /// Last LSN synced; 0 before the first.
    pub fn durable_lsn(&self) -> Lsn {
        self.durable_lsn
    }

    /// The most payload a frame of this log can have, in bytes.
    pub fn max_frame_payload(&self) -> usize {
        self.max_payload
    }

    /// The largest entry this log can take, in bytes, its 8-byte header included.
    pub fn max_entry_bytes(&self) -> usize {
        self.max_payload.min(ENTRY_BYTES_MAX)
    }

    /// Bytes of all frames that this writer appended or that the scan before it found, marks and
    /// seals included. It never falls; differences tell how much log a checkpoint would save.
    pub fn log_bytes(&self) -> u64 {
        self.log_bytes
    }

    /// The segments, shared with [`purge`](super::purge).
    pub fn segments(&self) -> Arc<SegmentSet> {
        self.segments.clone()
    }

    /// Writes the batch as one frame, behind a rollover if it does not fit into the segment. It is
    /// not durable before the next [`sync`](Self::sync).
    ///
    /// # Errors
    /// [`LogError::OutOfOrder`], [`LogError::TooLarge`] and [`LogError::LsnsExhausted`], after which
    /// the writer goes on, or [`LogError::Failed`], after which every call returns
    /// [`LogError::Poisoned`].
    pub fn append(&mut self, batch: &Batch) -> Result<(), LogError> {
        self.check()?;
        if batch.is_empty() || batch.first_lsn() != self.next_lsn {
            return Err(LogError::OutOfOrder {
                expected: self.next_lsn,
                found: batch.first_lsn(),
                entries: batch.len(),
            });
        }
        if batch.next_lsn() == Lsn::MAX {
            return Err(LogError::LsnsExhausted { last: self.next_lsn.saturating_sub(1) });
        }
        if batch.bytes() > self.max_payload {
            return Err(LogError::TooLarge { bytes: batch.bytes(), limit: self.max_payload });
        }
        let bytes = frame_bytes(batch.bytes());
        if !self.fits(bytes) {
            self.guard(Stage::Rollover, Self::roll_over)?;
        }
        self.guard(Stage::Write, |log| {
            log.write_frame(FrameKind::Data, batch.len() as u32, batch.payload())
        })?;
        self.vouched = false;
        if self.current.end >= self.current.segment_bytes / 2 {
            self.preparer.start();
        }
        Ok(())
    }

    /// Makes everything written durable and tells the last durable LSN.
    ///
    /// # Errors
    /// [`LogError::Failed`], after which every call returns [`LogError::Poisoned`].
    pub fn sync(&mut self) -> Result<Lsn, LogError> {
        self.check()?;
        self.guard(Stage::Sync, Self::sync_written)?;
        Ok(self.durable_lsn)
    }

    /// Vouches for the last frame, so that later rot in it is not taken for a torn tail: syncs it,
    /// then writes and syncs a mark. Does nothing if the last frame is vouched for already, or if
    /// the segment has no room for it.
    ///
    /// # Errors
    /// [`LogError::Failed`], after which every call returns [`LogError::Poisoned`].
    pub fn mark(&mut self) -> Result<(), LogError> {
        self.check()?;
        if self.vouched || !self.fits(frame_bytes(0)) {
            return Ok(());
        }
        self.guard(Stage::Sync, Self::sync_written)?;
        self.guard(Stage::Write, |log| log.write_frame(FrameKind::Mark, 0, &[]))?;
        self.guard(Stage::Sync, Self::sync_written)?;
        self.vouched = true;
        Ok(())
    }

    /// Ends the current segment and goes on in the next one. Each step is durable before the next:
    /// a crash in between leaves a segment without a seal and a successor without frames, which
    /// repair finishes.
    fn roll_over(&mut self) -> Result<(), FsError> {
        if !seeded::bug("raft-engine-123") {
            self.sync_written()?;
        }
        let id = SegmentId { uuid: self.identity.uuid, first_lsn: self.next_lsn };
        let segment_bytes = self.options.segment_bytes;
        let header = SegmentHeader { id, segment_bytes, incarnation: self.identity.incarnation };
        let file = make_segment(&*self.fs, &self.dir, &mut self.preparer, &header)?;
        self.write_frame(FrameKind::Seal, 0, &[])?;
        self.sync_written()?;
        self.segments.push(Segment {
            path: file.path().to_owned(),
            first_lsn: id.first_lsn,
            bytes: segment_bytes,
        });
        self.current = OpenSegment { file, id, segment_bytes, end: FIRST_FRAME };
        // The successor's header says that everything before it was synced.
        self.vouched = true;
        self.max_payload = payload_room(segment_bytes);
        Ok(())
    }

    /// Writes one frame with a single call, from the one buffer that all frames share.
    fn write_frame(
        &mut self,
        kind: FrameKind,
        entry_count: u32,
        payload: &[u8],
    ) -> Result<(), FsError> {
        let fields = FrameFields {
            kind,
            // Also without the option: a caller may append twice before it syncs.
            relaxed: kind == FrameKind::Data && (self.options.relaxed || !self.synced),
            first_lsn: self.next_lsn,
            entry_count,
            prev_checksum: self.prev_checksum,
            durable_mark: self.durable_lsn,
            incarnation: self.identity.incarnation,
        };
        self.buffer.clear();
        let offset = self.current.end;
        let checksum = encode_frame(&mut self.buffer, &self.current.id, offset, &fields, payload);
        self.synced = false;
        let written = write_all_at(&*self.current.file, &self.buffer, offset);
        if !seeded::bug("fjall-304") {
            written?;
        }
        let bytes = self.buffer.len() as u64;
        self.current.end = offset.saturating_add(bytes);
        self.log_bytes = self.log_bytes.saturating_add(bytes);
        self.prev_checksum = checksum;
        self.next_lsn = fields.next_lsn();
        Ok(())
    }

    fn sync_written(&mut self) -> Result<(), FsError> {
        if !self.synced {
            let synced = self.current.file.sync_data();
            if !seeded::bug("redis-8111") {
                synced?;
            }
            self.synced = true;
            self.durable_lsn = self.written_lsn();
        }
        Ok(())
    }

    /// Whether a frame fits and leaves room for a seal.
    fn fits(&self, bytes: u64) -> bool {
        let end = self.current.end.saturating_add(bytes).saturating_add(SEAL_BYTES);
        end <= self.current.segment_bytes
    }

    fn check(&self) -> Result<(), LogError> {
        match &self.failure {
            None => Ok(()),
            Some(failure) => Err(LogError::Poisoned {
                stage: failure.stage,
                path: failure.path.clone(),
                offset: failure.offset,
                kind: failure.kind,
                errno: failure.errno,
            }),
        }
    }

    /// Runs a step; its first failure stops the writer.
    fn guard(
        &mut self,
        stage: Stage,
        step: impl FnOnce(&mut Self) -> Result<(), FsError>,
    ) -> Result<(), LogError> {
        step(self).map_err(|source| {
            if stage == Stage::Sync && seeded::bug("raft-engine-131") {
                return LogError::Failed { stage, source };
            }
            if stage == Stage::Write && seeded::bug("fjall-308") {
                return LogError::Failed { stage, source };
            }
            self.failure = Some(Failure {
                stage,
                path: source.path.clone(),
                offset: source.offset,
                kind: source.kind(),
                errno: source.raw_os_error(),
            });
            LogError::Failed { stage, source }
        })
    }
}

/// The most payload of a frame in a segment of this size.
fn payload_room(segment_bytes: u64) -> usize {
    let room = segment_bytes.saturating_sub(FIRST_FRAME).saturating_sub(SEAL_BYTES);
    let frame = usize::try_from(room).unwrap_or(usize::MAX).min(FRAME_BYTES_MAX);
    // All terms are multiples of 8, so the padding fits as well.
    frame.saturating_sub(FRAME_HEADER_BYTES)
}
