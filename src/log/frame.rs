//! The frame decoder: a pure function over bytes, shared by recovery, tools and fuzzers.
//!
//! | offset | field |
//! |---|---|
//! | 0 | magic `SFRM` |
//! | 4 | header checksum u32: CRC-32 of the seed and bytes 8..56 |
//! | 8 | kind u8: 1 data, 2 mark, 3 seal |
//! | 9 | codec u8 = 0 |
//! | 10 | flags u16: bit 0 = relaxed |
//! | 12 | payload length u32 |
//! | 16 | first LSN u64 (mark and seal: the next LSN) |
//! | 24 | entry count u32 |
//! | 28 | payload checksum of the previous frame of the log u32 |
//! | 32 | durable mark u64: the LSN up to which everything was synced before this was written |
//! | 40 | incarnation u64 |
//! | 48 | payload checksum u32: CRC-32 of the seed, bytes 8..48 and the payload |
//! | 52 | reserved u32 = 0 |
//!
//! The seed is the store's uuid, the segment's first LSN (u64) and the frame's offset in the file
//! (u64). The payload follows, and zeros up to a multiple of 8. A zeroed region never verifies: it
//! has no magic.
//!
//! What has not been verified cannot be read: [`RawFrame`] -> [`HeadedFrame`] -> [`Frame`].

mod error;
#[cfg(any(test, feature = "testing"))]
pub mod seal;

pub use super::entry::{Entries, RawEntry};
pub use error::FrameError;

use super::Lsn;
use super::format::{FRAME_ALIGN, FRAME_HEADER_BYTES, FRAME_MAGIC, Reader, SegmentId, Writer};
use crate::limits::FRAME_BYTES_MAX;
use crate::seeded;

const FLAG_RELAXED: u16 = 1;

/// What a frame is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// Carries entries.
    Data,
    /// Vouches for the frame before it.
    Mark,
    /// Ends a segment.
    Seal,
}

/// The fields of a frame header, checksums aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameFields {
    /// What the frame is for.
    pub kind: FrameKind,
    /// Whether the frames before this one may not have been synced when it was written.
    pub relaxed: bool,
    /// LSN of the first entry; of a mark or a seal, the LSN the next entry will get.
    pub first_lsn: Lsn,
    /// Number of entries.
    pub entry_count: u32,
    /// Payload checksum of the frame before it, over segment borders too; 0 for the first ever.
    pub prev_checksum: u32,
    /// Everything up to this LSN had been synced before the frame was written.
    pub durable_mark: Lsn,
    /// The opening of the store that wrote it.
    pub incarnation: u64,
}

impl FrameFields {
    /// The LSN that follows this frame's entries.
    pub fn next_lsn(&self) -> Lsn {
        self.first_lsn.saturating_add(self.entry_count.into())
    }
}

/// Bytes that start with a frame's magic. Nothing else about them is believed.
#[derive(Debug, Clone, Copy)]
pub struct RawFrame {
    segment: SegmentId,
    offset: u64,
    header: [u8; FRAME_HEADER_BYTES],
}

impl RawFrame {
    /// Recognises a frame by its magic.
    ///
    /// # Errors
    /// [`FrameError::Short`] or [`FrameError::Magic`].
    pub fn read(segment: &SegmentId, bytes: &[u8], offset: u64) -> Result<RawFrame, FrameError> {
        let Some((header, _)) = bytes.split_first_chunk() else {
            return Err(FrameError::Short { available: bytes.len() });
        };
        let found = Reader(header).array();
        if found != FRAME_MAGIC {
            return Err(FrameError::Magic { found });
        }
        Ok(RawFrame { segment: *segment, offset, header: *header })
    }

    /// Verifies the header, then reads it. `room` is what is left of the segment from the frame's
    /// first byte on; the payload length is compared with it before anything is allocated.
    ///
    /// # Errors
    /// [`FrameError`] naming the check that failed.
    pub fn verify_header(self, room: u64) -> Result<HeadedFrame, FrameError> {
        let mut reader = Reader(&self.header);
        let _magic: [u8; 4] = reader.array();
        let stored = reader.u32();
        let (_, covered) = self.header.split_at(8);
        let kind = reader.u8();
        let codec = reader.u8();
        let flags = reader.u16();
        let payload_len = reader.u32();
        let first_lsn = reader.u64();
        let entry_count = reader.u32();
        let prev_checksum = reader.u32();
        let durable_mark = reader.u64();
        let incarnation = reader.u64();
        let payload_checksum = reader.u32();
        let reserved = reader.u32();

        let fits = |limit: u64| limit.saturating_sub(FRAME_HEADER_BYTES as u64);
        let possible = fits(room).min(fits(FRAME_BYTES_MAX as u64));
        let mut hasher = self.segment.seed(self.offset);
        hasher.update(covered);
        let computed = hasher.finalize();
        if u64::from(payload_len) > possible && seeded::bug("etcd-14098") {
            return Err(FrameError::Length { payload: payload_len.into(), room: possible });
        }
        if stored != computed {
            let plausible = u64::from(payload_len) <= possible;
            return Err(FrameError::HeaderChecksum { stored, computed, plausible });
        }
        let newer = |field, found, supported| FrameError::Newer { field, found, supported };
        if codec != 0 {
            return Err(newer("frame codec", codec.into(), 0));
        }
        if flags & !FLAG_RELAXED != 0 {
            return Err(newer("frame flags", flags.into(), FLAG_RELAXED.into()));
        }
        let kind = match kind {
            1 => FrameKind::Data,
            2 => FrameKind::Mark,
            3 => FrameKind::Seal,
            0 => return Err(FrameError::Field { field: "frame kind", found: 0 }),
            kind => return Err(newer("frame kind", kind.into(), 3)),
        };
        if reserved != 0 {
            return Err(newer("reserved frame field", reserved.into(), 0));
        }
        if u64::from(payload_len) > possible {
            return Err(FrameError::Length { payload: payload_len.into(), room: possible });
        }
        let carries = kind == FrameKind::Data;
        if carries != (entry_count > 0) {
            return Err(FrameError::Field { field: "entry count", found: entry_count.into() });
        }
        if carries != (payload_len > 0) {
            return Err(FrameError::Field { field: "payload length", found: payload_len.into() });
        }
        if first_lsn == 0 || first_lsn.checked_add(entry_count.into()).is_none() {
            return Err(FrameError::Field { field: "first LSN", found: first_lsn });
        }
        if durable_mark >= first_lsn {
            return Err(FrameError::Field { field: "durable mark", found: durable_mark });
        }
        let relaxed = flags & FLAG_RELAXED != 0;
        let fields = FrameFields {
            kind,
            relaxed,
            first_lsn,
            entry_count,
            prev_checksum,
            durable_mark,
            incarnation,
        };
        Ok(HeadedFrame { raw: self, fields, payload_len, payload_checksum })
    }
}

/// A frame whose header is verified and whose payload is not.
#[derive(Debug, Clone, Copy)]
pub struct HeadedFrame {
    raw: RawFrame,
    fields: FrameFields,
    payload_len: u32,
    payload_checksum: u32,
}

impl HeadedFrame {
    /// The header's fields.
    pub fn fields(&self) -> &FrameFields {
        &self.fields
    }

    /// Bytes from this frame's start to the next one's.
    pub fn frame_bytes(&self) -> u64 {
        frame_bytes(self.payload_len as usize)
    }

    /// Verifies the payload. `bytes` start where the frame starts and may go on behind it.
    ///
    /// # Errors
    /// [`FrameError`] naming the check that failed.
    pub fn verify_payload<'a>(&self, bytes: &'a [u8]) -> Result<Frame<'a>, FrameError> {
        let needed = self.frame_bytes();
        let available = bytes.len() as u64;
        let truncated = FrameError::Truncated { needed, available };
        let (whole, _) = bytes.split_at_checked(needed as usize).ok_or(truncated)?;
        let (_, body) = whole.split_at_checked(FRAME_HEADER_BYTES).ok_or(truncated)?;
        let (payload, padding) =
            body.split_at_checked(self.payload_len as usize).ok_or(truncated)?;
        let RawFrame { segment, offset, header } = &self.raw;
        let computed = payload_checksum(segment, *offset, header, payload);
        if computed != self.payload_checksum {
            let stored = self.payload_checksum;
            return Err(FrameError::PayloadChecksum { stored, computed });
        }
        if padding.iter().any(|byte| *byte != 0) && !seeded::bug("tigerbeetle-2681") {
            return Err(FrameError::Padding);
        }
        let count = self.fields.entry_count;
        if let Err(index) = Entries::new(payload).check(count) {
            return Err(FrameError::Entries { index, count, payload: self.payload_len });
        }
        Ok(Frame {
            fields: self.fields,
            payload,
            payload_checksum: self.payload_checksum,
            frame_bytes: needed,
        })
    }
}

/// A verified frame.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    fields: FrameFields,
    payload: &'a [u8],
    payload_checksum: u32,
    frame_bytes: u64,
}

impl<'a> Frame<'a> {
    /// The header's fields.
    pub fn fields(&self) -> &FrameFields {
        &self.fields
    }

    /// Its payload checksum, which the next frame repeats.
    pub fn payload_checksum(&self) -> u32 {
        self.payload_checksum
    }

    /// Bytes from this frame's start to the next one's.
    pub fn frame_bytes(&self) -> u64 {
        self.frame_bytes
    }

    /// Its entries, in order.
    pub fn entries(&self) -> Entries<'a> {
        Entries::new(self.payload)
    }
}

/// Decodes the frame at `offset` of a segment. `bytes` go from there to the segment's end.
///
/// # Errors
/// [`FrameError`] naming the first check that failed, for any bytes whatever; it never panics and
/// never allocates.
pub fn decode_frame<'a>(
    segment: &SegmentId,
    bytes: &'a [u8],
    offset: u64,
) -> Result<Frame<'a>, FrameError> {
    RawFrame::read(segment, bytes, offset)?.verify_header(bytes.len() as u64)?.verify_payload(bytes)
}

/// Appends the frame at `offset` of a segment to `buffer` and tells its payload checksum.
pub(super) fn encode_frame(
    buffer: &mut Vec<u8>,
    segment: &SegmentId,
    offset: u64,
    fields: &FrameFields,
    payload: &[u8],
) -> u32 {
    let mut header = [0; FRAME_HEADER_BYTES];
    let mut writer = Writer(&mut header);
    writer.put(FRAME_MAGIC);
    writer.put([0; 4]);
    writer.put([match fields.kind {
        FrameKind::Data => 1,
        FrameKind::Mark => 2,
        FrameKind::Seal => 3,
    }]);
    writer.put([0]);
    writer.put(if fields.relaxed { FLAG_RELAXED } else { 0 }.to_le_bytes());
    writer.put((payload.len() as u32).to_le_bytes());
    writer.put(fields.first_lsn.to_le_bytes());
    writer.put(fields.entry_count.to_le_bytes());
    writer.put(fields.prev_checksum.to_le_bytes());
    writer.put(fields.durable_mark.to_le_bytes());
    writer.put(fields.incarnation.to_le_bytes());
    let checksum = payload_checksum(segment, offset, &header, payload);
    Writer(&mut header[48..]).put(checksum.to_le_bytes());
    let mut hasher = segment.seed(offset);
    hasher.update(&header[8..]);
    Writer(&mut header[4..]).put(hasher.finalize().to_le_bytes());

    let end = buffer.len().saturating_add(frame_bytes(payload.len()) as usize);
    buffer.extend_from_slice(&header);
    buffer.extend_from_slice(payload);
    buffer.resize(end, 0);
    checksum
}

/// Bytes of a frame with this payload, padding included.
pub(super) fn frame_bytes(payload: usize) -> u64 {
    (payload as u64).saturating_add(FRAME_HEADER_BYTES as u64).next_multiple_of(FRAME_ALIGN)
}

fn payload_checksum(
    segment: &SegmentId,
    offset: u64,
    header: &[u8; FRAME_HEADER_BYTES],
    payload: &[u8],
) -> u32 {
    let mut hasher = segment.seed(offset);
    hasher.update(&header[8..48]);
    let covered = payload.get(..64).filter(|_| seeded::bug("raft-engine-319")).unwrap_or(payload);
    hasher.update(covered);
    hasher.finalize()
}
