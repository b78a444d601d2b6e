//! The bytes of a segment: constants, the segment header, and how checksums are bound to a place.
//!
//! ```text
//! segment  = header(64) frame* zero*                     of exactly `segment_bytes` bytes
//! frame    = header(56) payload padding                  starts on a multiple of 8
//! payload  = entry*                                      of a data frame; others have none
//! entry    = kind u16, version u8, flags u8, length u32, body
//! ```
//!
//! All integers are little-endian. Encoder and decoder of each struct stand side by side and name
//! the fields in the order of the bytes.

use uuid::Uuid;

use super::Lsn;
use crate::seeded;

/// Version of the format this build writes, and the newest it reads.
pub const FORMAT_VERSION: u32 = 1;
/// Bytes of a segment header.
pub const SEGMENT_HEADER_BYTES: usize = 64;
/// Bytes of a frame header.
pub const FRAME_HEADER_BYTES: usize = 56;
/// Bytes of an entry header.
pub const ENTRY_HEADER_BYTES: usize = 8;
/// Frames start on multiples of this.
pub(crate) const FRAME_ALIGN: u64 = 8;

pub(crate) const SEGMENT_MAGIC: [u8; 8] = *b"SHSTWAL\x01";
pub(crate) const FRAME_MAGIC: [u8; 4] = *b"SFRM";

/// Offset of the first frame.
pub(crate) const FIRST_FRAME: u64 = SEGMENT_HEADER_BYTES as u64;
/// Room kept free in every segment for the seal that ends it.
pub(crate) const SEAL_BYTES: u64 = FRAME_HEADER_BYTES as u64;

/// The segment a frame belongs to. Every frame checksum covers it, so that a frame copied to
/// another segment or another store does not verify.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentId {
    /// The store.
    pub uuid: Uuid,
    /// LSN of the segment's first entry, which is also its name.
    pub first_lsn: Lsn,
}

impl SegmentId {
    /// A checksum that has taken in this segment and the offset of a frame in it.
    pub(crate) fn seed(&self, offset: u64) -> crc32fast::Hasher {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(self.uuid.as_bytes());
        hasher.update(&self.first_lsn.to_le_bytes());
        if !seeded::bug("tigerbeetle-2711") {
            hasher.update(&offset.to_le_bytes());
        }
        hasher
    }
}

/// The first 64 bytes of a segment.
///
/// | offset | field |
/// |---|---|
/// | 0 | magic `SHSTWAL\x01` |
/// | 8 | format version u32 |
/// | 12 | header bytes u32 = 64 |
/// | 16 | store uuid (16 bytes) |
/// | 32 | first LSN u64 |
/// | 40 | segment bytes u64 |
/// | 48 | incarnation of the creator u64 |
/// | 56 | reserved u32 = 0 |
/// | 60 | CRC-32 of bytes 0..60, u32 |
///
/// Magic, format version and checksum keep their places in every version of the format, so that
/// an older build can tell a newer segment from a damaged one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentHeader {
    /// Store and first LSN.
    pub id: SegmentId,
    /// Length of the file in bytes.
    pub segment_bytes: u64,
    /// The opening of the store that made the segment.
    pub incarnation: u64,
}

/// Why 64 bytes are no segment header of this format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderFault {
    /// Not the magic.
    Magic([u8; 8]),
    /// The checksum does not match.
    Checksum { stored: u32, computed: u32 },
    /// Intact, but of a newer format.
    Version(u32),
    /// Intact, but this field cannot have this value.
    Field(&'static str, u64),
}

impl SegmentHeader {
    /// The header's bytes.
    pub fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES] {
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        let mut writer = Writer(&mut bytes);
        writer.put(SEGMENT_MAGIC);
        writer.put(FORMAT_VERSION.to_le_bytes());
        writer.put((SEGMENT_HEADER_BYTES as u32).to_le_bytes());
        writer.put(self.id.uuid.into_bytes());
        writer.put(self.id.first_lsn.to_le_bytes());
        writer.put(self.segment_bytes.to_le_bytes());
        writer.put(self.incarnation.to_le_bytes());
        writer.put(0u32.to_le_bytes());
        let checksum = crc32fast::hash(&bytes[..60]);
        bytes[60..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Verifies, then reads, a header. Nothing is believed before the checksum matches.
    pub(crate) fn decode(bytes: &[u8; SEGMENT_HEADER_BYTES]) -> Result<Self, HeaderFault> {
        let mut reader = Reader(bytes);
        let magic = reader.array();
        if magic != SEGMENT_MAGIC {
            return Err(HeaderFault::Magic(magic));
        }
        let computed = crc32fast::hash(&bytes[..60]);
        let stored = Reader(&bytes[60..]).u32();
        if stored != computed {
            return Err(HeaderFault::Checksum { stored, computed });
        }
        let version = reader.u32();
        if version == 0 {
            return Err(HeaderFault::Field("format version", 0));
        }
        if version != FORMAT_VERSION {
            return Err(HeaderFault::Version(version));
        }
        let header_bytes = reader.u32();
        if header_bytes as usize != SEGMENT_HEADER_BYTES {
            return Err(HeaderFault::Field("header bytes", header_bytes.into()));
        }
        let uuid = Uuid::from_bytes(reader.array());
        let first_lsn = reader.u64();
        if first_lsn == 0 {
            return Err(HeaderFault::Field("first LSN", 0));
        }
        let segment_bytes = reader.u64();
        let allowed = crate::limits::SEGMENT_BYTES_MIN..=crate::limits::SEGMENT_BYTES_MAX;
        if !allowed.contains(&segment_bytes) || !segment_bytes.is_multiple_of(4096) {
            return Err(HeaderFault::Field("segment bytes", segment_bytes));
        }
        let incarnation = reader.u64();
        let reserved = reader.u32();
        if reserved != 0 {
            return Err(HeaderFault::Field("reserved", reserved.into()));
        }
        Ok(SegmentHeader { id: SegmentId { uuid, first_lsn }, segment_bytes, incarnation })
    }
}

/// Fills a header field by field.
pub(crate) struct Writer<'a>(pub(crate) &'a mut [u8]);

impl Writer<'_> {
    pub(crate) fn put<const N: usize>(&mut self, field: [u8; N]) {
        let rest = std::mem::take(&mut self.0);
        if let Some((place, rest)) = rest.split_first_chunk_mut() {
            *place = field;
            self.0 = rest;
        } else {
            debug_assert!(false, "a header has room for its fields");
        }
    }
}

/// Reads a header of known size field by field; past its end everything is zero, which only a
/// mistake in this crate can reach.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl Reader<'_> {
    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        let Some((field, rest)) = self.0.split_first_chunk() else {
            debug_assert!(false, "a header has all its fields");
            return [0; N];
        };
        self.0 = rest;
        *field
    }

    pub(crate) fn u8(&mut self) -> u8 {
        u8::from_le_bytes(self.array())
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }
}
