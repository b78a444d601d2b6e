//! Entries: how they are laid into the payload of a frame, and read back.
//!
//! | offset | field |
//! |---|---|
//! | 0 | kind u16 |
//! | 2 | version u8: of the body's encoding |
//! | 3 | flags u8 = 0 |
//! | 4 | length of the body u32 |
//! | 8 | body |
//!
//! Entries follow each other without gaps and fill the payload exactly.

use super::Lsn;
use super::format::{ENTRY_HEADER_BYTES, Reader};

/// A growable sequence of encoded entries that will become the payload of one frame.
#[derive(Debug, Clone)]
pub struct Batch {
    first_lsn: Lsn,
    entries: u32,
    payload: Vec<u8>,
}

impl Batch {
    /// An empty batch whose first entry will get `first_lsn`.
    pub fn new(first_lsn: Lsn) -> Batch {
        Batch { first_lsn, entries: 0, payload: Vec::new() }
    }

    /// Appends an entry and tells its LSN. The caller keeps the sum within
    /// [`LogWriter::max_frame_payload`](super::LogWriter::max_frame_payload), of which an entry
    /// takes 8 bytes and its body.
    pub fn push(&mut self, kind: u16, version: u8, body: &[u8]) -> Lsn {
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
        debug_assert_eq!(length as usize, body.len(), "entries stay below 4 GiB");
        let lsn = self.next_lsn();
        self.payload.extend_from_slice(&kind.to_le_bytes());
        self.payload.extend_from_slice(&[version, 0]);
        self.payload.extend_from_slice(&length.to_le_bytes());
        self.payload.extend_from_slice(body);
        self.entries = self.entries.saturating_add(1);
        lsn
    }

    /// What an entry with this body takes of a frame's payload, in bytes.
    pub const fn entry_bytes(body: usize) -> usize {
        body.saturating_add(ENTRY_HEADER_BYTES)
    }

    /// LSN of the first entry.
    pub fn first_lsn(&self) -> Lsn {
        self.first_lsn
    }

    /// LSN the next entry will get.
    pub fn next_lsn(&self) -> Lsn {
        self.first_lsn.saturating_add(self.entries.into())
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries as usize
    }

    /// Whether it holds no entries.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Bytes of payload so far.
    pub fn bytes(&self) -> usize {
        self.payload.len()
    }

    /// Empties the batch, keeping its memory, for entries from `first_lsn` on.
    pub fn clear(&mut self, first_lsn: Lsn) {
        self.first_lsn = first_lsn;
        self.entries = 0;
        self.payload.clear();
    }

    pub(super) fn payload(&self) -> &[u8] {
        &self.payload
    }
}

/// One entry of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawEntry<'a> {
    /// What the entry is; the log does not know the kinds.
    pub kind: u16,
    /// Version of the body's encoding.
    pub version: u8,
    /// Zero in this version of the format.
    pub flags: u8,
    /// The encoded entry.
    pub body: &'a [u8],
}

/// The entries of a verified frame.
#[derive(Debug, Clone)]
pub struct Entries<'a> {
    rest: &'a [u8],
}

impl<'a> Entries<'a> {
    /// The entries of a payload.
    pub(super) fn new(payload: &'a [u8]) -> Entries<'a> {
        Entries { rest: payload }
    }

    /// Whether exactly `count` entries fill the payload; if not, how many of them fit.
    pub(super) fn check(mut self, count: u32) -> Result<(), u32> {
        for index in 0..count {
            self.next().ok_or(index)?;
        }
        if self.rest.is_empty() { Ok(()) } else { Err(count) }
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = RawEntry<'a>;

    fn next(&mut self) -> Option<RawEntry<'a>> {
        let (header, rest) = self.rest.split_first_chunk::<ENTRY_HEADER_BYTES>()?;
        let mut reader = Reader(header);
        let kind = reader.u16();
        let version = reader.u8();
        let flags = reader.u8();
        let length = reader.u32();
        let (body, rest) = rest.split_at_checked(length as usize)?;
        self.rest = rest;
        Some(RawEntry { kind, version, flags, body })
    }
}
