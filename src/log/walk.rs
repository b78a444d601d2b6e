//! Walks through the segments frame by frame.

use std::path::Path;
use std::sync::Arc;

use super::chain::{Chain, Unproven, Vouchers};
use super::directory::KnownSegment;
use super::format::{ENTRY_HEADER_BYTES, FIRST_FRAME, FRAME_HEADER_BYTES};
use super::frame::{Frame, FrameError, FrameKind};
use super::position::Position;
use super::reader::SegmentReader;
use super::scan::{Entry, Scope, TornTail};
use super::{LogError, Lsn, ScanError};
use crate::fsio::Fs;
use crate::seeded;

/// Where and how the log ends.
#[derive(Debug)]
pub(super) struct LogEnd {
    /// The segment in which the frames end.
    pub segment: KnownSegment,
    /// Where they end in it.
    pub offset: u64,
    /// The unfinished frame there.
    pub torn: Option<TornTail>,
    /// The segment behind it, prepared by a rollover that a crash cut off before the seal.
    pub successor: Option<KnownSegment>,
    /// What the next frame will continue; without a checksum if the log holds no frame.
    pub chain: Chain,
    /// What may never have reached the disk.
    pub unproven: Option<Unproven>,
}

/// How the frames of a segment end.
#[derive(Debug)]
enum SegmentEnd {
    /// With a seal.
    Sealed,
    /// Without one, at this offset.
    Open { offset: u64, torn: Option<TornTail> },
}

/// The walk, and what it knows so far.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    fs: Arc<dyn Fs>,
    dir: &'a Path,
    segments: &'a [KnownSegment],
    applied_lsn: Lsn,
    scope: Scope,
    /// Index of the last segment that holds anything besides zeros.
    last_used: usize,

    chain: Chain,
    pub vouchers: Vouchers,
    unproven: Option<Unproven>,
    pub frames: u64,
    pub entries: u64,
    pub frame_bytes: u64,
    /// How many of the first segments a purge left behind.
    pub purge: usize,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        fs: Arc<dyn Fs>,
        dir: &'a Path,
        segments: &'a [KnownSegment],
        applied_lsn: Lsn,
        scope: Scope,
    ) -> Result<Walk<'a>, LogError> {
        let mut last_used = 0;
        for (index, segment) in segments.iter().enumerate().rev() {
            let is_blank = SegmentReader::open(&*fs, segment, false)?.is_blank()?;
            if !is_blank || seeded::bug("rocksdb-7784") {
                last_used = index;
                break;
            }
        }
        Ok(Walk {
            fs,
            dir,
            segments,
            applied_lsn,
            scope,
            last_used,
            chain: Chain::default(),
            vouchers: Vouchers::new(applied_lsn),
            unproven: None,
            frames: 0,
            entries: 0,
            frame_bytes: 0,
            purge: 0,
        })
    }

    /// Walks from the segment with index `start` to the end of the log.
    pub(super) fn run<E>(
        &mut self,
        start: usize,
        visit: &mut dyn FnMut(Entry<'_>) -> Result<(), E>,
    ) -> Result<LogEnd, ScanError<E>> {
        let segments = self.segments;
        let mut index = start.min(self.last_used);
        let next_lsn = segments.get(index).map_or(1, KnownSegment::first_lsn);
        let prev_checksum = (next_lsn == 1).then_some(0);
        self.chain = Chain { next_lsn, prev_checksum, incarnation: 0 };
        while let Some(segment) = segments.get(index) {
            let next = segments.get(index.saturating_add(1));
            self.chain.incarnation = self.chain.incarnation.max(segment.header.incarnation);
            self.vouchers.next_segment();
            let end = self.segment(index, segment, next, visit)?;
            if let Some(next) = next {
                self.vouchers.vouch(next.first_lsn().saturating_sub(1));
            }
            self.unproven = self.vouchers.unproven(segment).or(self.unproven.take());
            match (end, next) {
                (SegmentEnd::Sealed, Some(next)) => self.follow(index, segment, next)?,
                (SegmentEnd::Sealed, None) => {
                    let (path, next_lsn) = (segment.path.clone(), self.chain.next_lsn);
                    return Err(LogError::MissingSuccessor { path, next_lsn }.into());
                }
                (SegmentEnd::Open { offset, torn }, _) => {
                    self.check_blank(index)?;
                    return Ok(LogEnd {
                        segment: segment.clone(),
                        offset,
                        torn,
                        successor: next.cloned(),
                        chain: self.chain,
                        unproven: self.unproven.take(),
                    });
                }
            }
            index = index.saturating_add(1);
        }
        // Only without any segments.
        Err(LogError::missing(self.dir, next_lsn, Lsn::MAX, None, None).into())
    }

    /// Goes over the border between a sealed segment and the next one.
    fn follow(
        &mut self,
        index: usize,
        segment: &KnownSegment,
        next: &KnownSegment,
    ) -> Result<(), LogError> {
        let first_lsn = next.first_lsn();
        if first_lsn == self.chain.next_lsn {
            return Ok(());
        }
        // A frame that goes too far was refused before, so something is missing here.
        if first_lsn.saturating_sub(1) > self.applied_lsn {
            let last = first_lsn.saturating_sub(1);
            let (before, after) = (Some(&*segment.path), Some(&*next.path));
            return Err(LogError::missing(self.dir, self.chain.next_lsn, last, before, after));
        }
        // The snapshot has all of it: a purge unlinked both, and a crash kept the older one.
        self.purge = index.saturating_add(1);
        self.chain.next_lsn = first_lsn;
        self.chain.prev_checksum = None;
        Ok(())
    }

    /// Behind the segment where the log ends there may be one more, prepared by an unfinished
    /// rollover.
    fn check_blank(&self, index: usize) -> Result<(), LogError> {
        let Some(extra) = self.segments.get(index.saturating_add(2)) else {
            return Ok(());
        };
        Err(LogError::Corrupt {
            path: extra.path.clone(),
            offset: FIRST_FRAME,
            lsn: extra.first_lsn(),
            expected: "frames in the segments before the last one".into(),
            found: "two segments without frames".into(),
            row: "",
        })
    }

    /// Walks through one segment.
    fn segment<E>(
        &mut self,
        index: usize,
        segment: &KnownSegment,
        next: Option<&KnownSegment>,
        visit: &mut dyn FnMut(Entry<'_>) -> Result<(), E>,
    ) -> Result<SegmentEnd, ScanError<E>> {
        // Only behind a later frame is it certain that nobody writes to a segment any more.
        let mapped = self.scope == Scope::All && index < self.last_used;
        let mut reader = SegmentReader::open(&*self.fs, segment, mapped).map_err(LogError::from)?;
        let start = Position {
            segment,
            next,
            last_segment: index >= self.last_used || seeded::bug("rocksdb-7701"),
            offset: FIRST_FRAME,
            chain: self.chain,
            applied_lsn: self.applied_lsn,
        };
        let mut offset = start.offset;
        loop {
            let position = Position { offset, chain: self.chain, ..start };
            let fault = match reader.frame(offset) {
                Ok(Ok(frame)) => {
                    position.accept(frame.fields())?;
                    self.deliver(&position, &frame, visit)?;
                    self.take(offset, &frame);
                    offset = offset.saturating_add(frame.frame_bytes());
                    if frame.fields().kind == FrameKind::Seal {
                        break;
                    }
                    continue;
                }
                Ok(Err(FrameError::Newer { field, found, supported })) => {
                    return Err(position.newer(field, found, supported).into());
                }
                Ok(Err(fault)) => Ok(fault),
                Err(error) => Err(error),
            };
            let end = position.judge(fault, &mut reader);
            if !matches!(end, Ok(None)) {
                // Beside a running store these bytes may be older than those behind them, which
                // looks like a hole. Read once more before believing it.
                reader.forget();
                if let Ok(Ok(_)) = reader.frame(offset) {
                    continue;
                }
            }
            return Ok(SegmentEnd::Open { offset, torn: end? });
        }
        let behind = Position { offset, chain: self.chain, ..start };
        behind.check_after_seal(&mut reader)?;
        Ok(SegmentEnd::Sealed)
    }

    fn deliver<E>(
        &self,
        position: &Position<'_>,
        frame: &Frame<'_>,
        visit: &mut dyn FnMut(Entry<'_>) -> Result<(), E>,
    ) -> Result<(), ScanError<E>> {
        let mut lsn = frame.fields().first_lsn;
        let mut offset = position.offset.saturating_add(FRAME_HEADER_BYTES as u64);
        for entry in frame.entries() {
            if entry.flags != 0 {
                let position = Position { offset, ..*position };
                return Err(position.newer("entry flags", entry.flags.into(), 0).into());
            }
            let from = self.applied_lsn.saturating_add(u64::from(!seeded::bug("nats-8321")));
            if self.scope == Scope::All || lsn >= from {
                let delivered = visit(Entry {
                    lsn,
                    kind: entry.kind,
                    version: entry.version,
                    flags: entry.flags,
                    body: entry.body,
                    segment: position.segment.first_lsn(),
                    offset,
                    frame_offset: position.offset,
                });
                delivered.map_err(|source| {
                    let path = position.segment.path.clone();
                    ScanError::Visit { lsn, path, offset, source }
                })?;
            }
            lsn = lsn.saturating_add(1);
            let bytes = entry.body.len().saturating_add(ENTRY_HEADER_BYTES);
            offset = offset.saturating_add(bytes as u64);
        }
        Ok(())
    }

    fn take(&mut self, offset: u64, frame: &Frame<'_>) {
        self.chain.advance(frame);
        self.vouchers.take(offset, frame);
        self.frames = self.frames.saturating_add(1);
        self.entries = self.entries.saturating_add(frame.fields().entry_count.into());
        self.frame_bytes = self.frame_bytes.saturating_add(frame.frame_bytes());
    }
}
