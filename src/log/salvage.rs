//! What of a damaged log still follows the snapshot. Reads only.
//!
//! The [scan](super::scan()) refuses at the first damage. This goes on: frames on both sides of it
//! verify by themselves, since each is bound to its store, segment and place. Entries are *kept* as
//! long as their LSNs follow the snapshot's without a gap; from the first gap on nothing is, for
//! what comes later rests on what is missing.

use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::directory::Listing;
use super::format::{
    ENTRY_HEADER_BYTES, FIRST_FRAME, FRAME_ALIGN, FRAME_HEADER_BYTES, FRAME_MAGIC, HeaderFault,
    SEGMENT_HEADER_BYTES, SegmentHeader, SegmentId,
};
use super::frame::{Frame, FrameError, FrameKind, decode_frame};
use super::{Entry, LogError, Lsn};
use crate::fsio::{Fs, read_file};
use crate::limits::SEGMENT_BYTES_MAX;

/// Damaged places that are listed; further ones are only counted.
const PLACES_MAX: usize = 100;

/// What a damaged log still proves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Provable {
    /// Last LSN that is kept: the snapshot's, or the last entry that follows it without a gap.
    pub last_lsn: Lsn,
    /// Entries that follow the snapshot.
    pub kept: u64,
    /// Where and why the entries that are kept end; none when nothing readable follows them.
    pub stop: Option<Place>,
    /// Entries behind that place which still read, but rest on some that do not.
    pub lost: u64,
    /// First and last LSN of these.
    pub lost_lsns: Option<(Lsn, Lsn)>,
    /// Why there may have been further entries that left no trace; none when the log ends as a
    /// crash or a clean close leaves it.
    pub doubt: Option<String>,
    /// Stretches that do not verify, and files that are not what their names say.
    pub damage: Vec<Place>,
    /// Further ones that are not listed.
    pub more_damage: u64,
    /// The highest LSN that anything in the log names.
    pub highest_lsn: Lsn,
    /// The newest incarnation seen.
    pub incarnation: u64,
    /// First LSN, by name, of the oldest segment.
    pub first_lsn: Option<Lsn>,
}

/// A place in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The segment.
    pub path: PathBuf,
    /// Where in it, in bytes.
    pub offset: u64,
    /// Bytes concerned; 0 for a place between frames.
    pub bytes: u64,
    /// The LSN expected there.
    pub lsn: Lsn,
    /// What is wrong.
    pub reason: String,
}

/// Is shown the entries of a damaged log.
pub trait Judge {
    /// The next entry that follows the snapshot; an error, in words, says that it cannot be kept.
    fn keep(&mut self, entry: &Entry<'_>) -> Result<(), String>;

    /// An entry that still reads, behind the place where what is kept ends.
    fn lose(&mut self, entry: &Entry<'_>);
}

/// Reads what is left of the log in `dir` and shows `judge` the entries above `applied_lsn`.
///
/// # Errors
/// [`LogError::Io`] when a file does not read: that is no damage, and nothing may be decided by it.
/// [`LogError::Newer`] when a newer release wrote part of it.
pub fn provable(
    fs: &dyn Fs,
    dir: &Path,
    uuid: Uuid,
    applied_lsn: Lsn,
    judge: &mut dyn Judge,
) -> Result<Provable, LogError> {
    let listing = Listing::read(fs, dir)?;
    let mut walk = Walk {
        judge,
        found: Provable { last_lsn: applied_lsn, highest_lsn: applied_lsn, ..Provable::default() },
        applied_lsn,
        want: applied_lsn.saturating_add(1),
        reached: 0,
        vouched: applied_lsn,
        prev_checksum: None,
        tail: Tail::Frames,
    };
    walk.found.first_lsn = listing.segments.first().map(|(first_lsn, _)| *first_lsn);
    for (first_lsn, path) in &listing.segments {
        walk.segment(fs, uuid, *first_lsn, path)?;
    }
    Ok(walk.finish())
}

/// How the segment read last ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tail {
    Frames,
    Sealed,
    Damaged,
}

struct Walk<'a> {
    judge: &'a mut dyn Judge,
    found: Provable,
    applied_lsn: Lsn,
    /// The next LSN to keep.
    want: Lsn,
    /// Last LSN of any frame that verified.
    reached: Lsn,
    /// Everything up to here was durable once.
    vouched: Lsn,
    /// Of the frame right before; none behind damage.
    prev_checksum: Option<u32>,
    tail: Tail,
}

impl Walk<'_> {
    fn segment(
        &mut self,
        fs: &dyn Fs,
        uuid: Uuid,
        first_lsn: Lsn,
        path: &Path,
    ) -> Result<(), LogError> {
        let bytes = read_file(fs, path, SEGMENT_BYTES_MAX)?;
        self.found.highest_lsn = self.found.highest_lsn.max(first_lsn.saturating_sub(1));
        self.vouched = self.vouched.max(first_lsn.saturating_sub(1));
        self.tail = Tail::Frames;
        // The frames say for themselves whose they are, so a damaged header loses nothing.
        let segment_bytes = self.header(&bytes, uuid, first_lsn, path)?;
        let id = SegmentId { uuid, first_lsn };
        let mut offset = FIRST_FRAME;
        loop {
            match decode_at(&id, &bytes, offset) {
                Ok(frame) => {
                    self.frame(path, &id, offset, &frame)?;
                    offset = offset.saturating_add(frame.frame_bytes());
                    self.tail = match frame.fields().kind {
                        FrameKind::Seal => Tail::Sealed,
                        FrameKind::Data | FrameKind::Mark => Tail::Frames,
                    };
                }
                Err(FrameError::Newer { field, found, supported }) => {
                    let path = path.to_owned();
                    return Err(LogError::Newer { path, offset, field, found, supported });
                }
                Err(fault) => {
                    let next = resume(&id, &bytes, offset);
                    let end = next.unwrap_or_else(|| used_end(&bytes, offset));
                    if end > offset {
                        self.damage(path, offset, end.saturating_sub(offset), fault.to_string());
                        self.prev_checksum = None;
                        self.tail = Tail::Damaged;
                    }
                    match next {
                        Some(next) => offset = next,
                        None => break,
                    }
                }
            }
        }
        let missing = segment_bytes.saturating_sub(bytes.len() as u64);
        if missing > 0 {
            let reason = format!("the file is {missing} bytes too short");
            self.damage(path, bytes.len() as u64, 0, reason);
            self.tail = if self.tail == Tail::Sealed { Tail::Sealed } else { Tail::Damaged };
        }
        Ok(())
    }

    /// Checks the header; answers the segment's size, or 0 if that cannot be told.
    fn header(
        &mut self,
        bytes: &[u8],
        uuid: Uuid,
        first_lsn: Lsn,
        path: &Path,
    ) -> Result<u64, LogError> {
        let fault = match bytes.first_chunk::<SEGMENT_HEADER_BYTES>().map(SegmentHeader::decode) {
            None => format!("{} bytes where a segment header should be", bytes.len()),
            Some(Err(HeaderFault::Version(found))) => {
                return Err(LogError::Newer {
                    path: path.to_owned(),
                    offset: 8,
                    field: "log format version",
                    found: found.into(),
                    supported: super::FORMAT_VERSION.into(),
                });
            }
            Some(Err(fault)) => format!("a damaged segment header: {fault:?}"),
            Some(Ok(header)) if header.id.uuid != uuid => {
                format!("a segment of store {}", header.id.uuid)
            }
            Some(Ok(header)) if header.id.first_lsn != first_lsn => {
                format!("the segment from LSN {}, under another name", header.id.first_lsn)
            }
            Some(Ok(header)) => {
                self.found.incarnation = self.found.incarnation.max(header.incarnation);
                return Ok(header.segment_bytes);
            }
        };
        self.damage(path, 0, SEGMENT_HEADER_BYTES as u64, fault);
        Ok(0)
    }

    fn frame(
        &mut self,
        path: &Path,
        id: &SegmentId,
        offset: u64,
        frame: &Frame<'_>,
    ) -> Result<(), LogError> {
        let fields = *frame.fields();
        let last_lsn = fields.next_lsn().saturating_sub(1);
        if self.found.stop.is_none() {
            // Frames that the snapshot covers matter only for what follows them.
            if fields.incarnation < self.found.incarnation && last_lsn >= self.want {
                let newer = self.found.incarnation;
                let reason = format!("incarnation {} behind {newer}", fields.incarnation);
                self.stop(path, offset, reason);
            } else if fields.first_lsn > self.want {
                let missing = fields.first_lsn.saturating_sub(1);
                let reason = format!("LSN {} to {missing} do not read", self.want);
                self.stop(path, offset, reason);
            } else if last_lsn >= self.want
                && self.prev_checksum.is_some_and(|prev| prev != fields.prev_checksum)
            {
                self.stop(path, offset, "a frame that continues another one".to_owned());
            }
        }
        self.found.incarnation = self.found.incarnation.max(fields.incarnation);
        self.found.highest_lsn = self.found.highest_lsn.max(last_lsn).max(fields.durable_mark);
        self.vouched = self.vouched.max(fields.durable_mark);
        self.reached = self.reached.max(last_lsn);
        self.prev_checksum = Some(frame.payload_checksum());
        self.entries(path, id, offset, frame)
    }

    fn entries(
        &mut self,
        path: &Path,
        id: &SegmentId,
        offset: u64,
        frame: &Frame<'_>,
    ) -> Result<(), LogError> {
        let mut lsn = frame.fields().first_lsn;
        let mut at = offset.saturating_add(FRAME_HEADER_BYTES as u64);
        for raw in frame.entries() {
            if raw.flags != 0 {
                let (path, found) = (path.to_owned(), raw.flags.into());
                let field = "entry flags";
                return Err(LogError::Newer { path, offset: at, field, found, supported: 0 });
            }
            if lsn > self.applied_lsn {
                self.entry(
                    path,
                    &Entry {
                        lsn,
                        kind: raw.kind,
                        version: raw.version,
                        flags: raw.flags,
                        body: raw.body,
                        segment: id.first_lsn,
                        offset: at,
                        frame_offset: offset,
                    },
                );
            }
            lsn = lsn.saturating_add(1);
            at = at.saturating_add(raw.body.len().saturating_add(ENTRY_HEADER_BYTES) as u64);
        }
        Ok(())
    }

    fn entry(&mut self, path: &Path, entry: &Entry<'_>) {
        if self.found.stop.is_none() {
            if entry.lsn != self.want {
                return; // a second copy of what is kept already
            }
            match self.judge.keep(entry) {
                Ok(()) => {
                    self.found.last_lsn = entry.lsn;
                    self.found.kept = self.found.kept.saturating_add(1);
                    self.want = entry.lsn.saturating_add(1);
                    return;
                }
                Err(reason) => self.stop(path, entry.offset, reason),
            }
        }
        self.judge.lose(entry);
        self.found.lost = self.found.lost.saturating_add(1);
        let (first, last) = self.found.lost_lsns.unwrap_or((entry.lsn, entry.lsn));
        self.found.lost_lsns = Some((first.min(entry.lsn), last.max(entry.lsn)));
    }

    fn stop(&mut self, path: &Path, offset: u64, reason: String) {
        let path = path.to_owned();
        self.found.stop = Some(Place { path, offset, bytes: 0, lsn: self.want, reason });
    }

    fn damage(&mut self, path: &Path, offset: u64, bytes: u64, reason: String) {
        if self.found.damage.len() >= PLACES_MAX {
            self.found.more_damage = self.found.more_damage.saturating_add(1);
            return;
        }
        let lsn = self.reached.saturating_add(1);
        self.found.damage.push(Place { path: path.to_owned(), offset, bytes, lsn, reason });
    }

    fn finish(mut self) -> Provable {
        let last = self.found.last_lsn;
        self.found.doubt = if self.found.stop.is_some() {
            Some("what stood in the places that do not read is not known".to_owned())
        } else if self.vouched > last {
            Some(format!("LSN {} was durable once", self.vouched))
        } else if self.reached < last {
            Some(format!("the log ends with LSN {}, before the snapshot", self.reached))
        } else {
            match self.tail {
                Tail::Frames => None,
                Tail::Sealed => Some("the segment behind the last, sealed one is missing".into()),
                Tail::Damaged => Some("the log ends in bytes that do not read".to_owned()),
            }
        };
        self.found
    }
}

fn decode_at<'a>(id: &SegmentId, bytes: &'a [u8], offset: u64) -> Result<Frame<'a>, FrameError> {
    let from = usize::try_from(offset).unwrap_or(usize::MAX);
    decode_frame(id, bytes.get(from..).unwrap_or_default(), offset)
}

/// The next place behind `offset` where a frame verifies.
fn resume(id: &SegmentId, bytes: &[u8], offset: u64) -> Option<u64> {
    let mut at = offset.saturating_add(FRAME_ALIGN);
    while at < bytes.len() as u64 {
        let from = usize::try_from(at).unwrap_or(usize::MAX);
        let magic = bytes.get(from..).is_some_and(|rest| rest.starts_with(&FRAME_MAGIC));
        // What a newer release wrote is a frame as well.
        if magic && matches!(decode_at(id, bytes, at), Ok(_) | Err(FrameError::Newer { .. })) {
            return Some(at);
        }
        at = at.saturating_add(FRAME_ALIGN);
    }
    None
}

/// End of the last byte behind `offset` that is not zero; `offset` if there is none.
fn used_end(bytes: &[u8], offset: u64) -> u64 {
    let from = usize::try_from(offset).unwrap_or(usize::MAX);
    let rest = bytes.get(from..).unwrap_or_default();
    let used = rest.iter().rposition(|byte| *byte != 0).map_or(0, |last| last.saturating_add(1));
    offset.saturating_add(used as u64)
}
