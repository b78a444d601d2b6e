//! The write-ahead log: segments, frames, entries, and the decision where the log ends.
//!
//! Owns: the bytes of `wal/`, their checksums, rollover, recovery and repair. Must never know what
//! an entry means: it is a kind, a version and opaque bytes here. All file work goes through
//! [`fsio`](crate::fsio).
//!
//! * [`create`] makes an empty log, [`scan`] reads and verifies one without writing, and
//!   [`ScannedLog::repair`] turns the result into a [`LogWriter`].
//! * [`frame`] is the decoder, pure over bytes, shared by recovery, tools and fuzzers.
//! * [`tail`] decides where a log ends, as a table.
//! * [`salvage`] reads what is left of a damaged log.
//! * [`purge`] unlinks what a snapshot has made superfluous.
#![deny(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod chain;
mod directory;
mod entry;
mod error;
mod format;
pub mod frame;
mod position;
mod prepare;
mod reader;
mod repair;
pub mod salvage;
mod scan;
mod segment;
pub mod tail;
mod walk;
mod writer;

use uuid::Uuid;

pub use directory::{file_names, segment_file_name};
pub use entry::Batch;
pub use error::{LogError, ScanError, Stage};
pub use format::{
    ENTRY_HEADER_BYTES, FORMAT_VERSION, FRAME_HEADER_BYTES, SEGMENT_HEADER_BYTES, SegmentHeader,
    SegmentId,
};
pub use repair::{Evidence, RepairReport};
pub use scan::{Entry, ScannedLog, Scope, TailReport, TailVerdict, TornTail, scan};
pub use segment::{Segment, SegmentSet, purge};
pub use writer::{LogWriter, create, create_from};

use crate::limits::{SEGMENT_BYTES_DEFAULT, SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN};

/// Log sequence number: one per entry, from 1, without gaps.
pub type Lsn = u64;

/// Whose log this is, and which opening of it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogIdentity {
    /// The store; every checksum is bound to it.
    pub uuid: Uuid,
    /// Raised durably, before the log is touched, at every opening for writing.
    pub incarnation: u64,
}

/// How a log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogOptions {
    /// Size of every new segment in bytes: a multiple of 4,096 within the bounds of
    /// [`limits`](crate::limits). Segments that exist keep theirs.
    pub segment_bytes: u64,
    /// Whether frames are answered for before they are synced. Recovery then allows un-synced
    /// frames to have reached the disk out of order.
    pub relaxed: bool,
    /// Who makes the next segment.
    pub prepare: Prepare,
}

/// Who makes the next segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prepare {
    /// A thread, ahead of need, from the moment the current segment is half full.
    Background,
    /// The writer itself, when it rolls over. Deterministic, for simulation.
    Inline,
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions {
            segment_bytes: SEGMENT_BYTES_DEFAULT,
            relaxed: false,
            prepare: Prepare::Background,
        }
    }
}

impl LogOptions {
    /// Checks the segment size.
    ///
    /// # Errors
    /// [`LogError::SegmentBytes`] when it is out of bounds or no multiple of 4,096.
    pub fn check(&self) -> Result<(), LogError> {
        let bytes = self.segment_bytes;
        if (SEGMENT_BYTES_MIN..=SEGMENT_BYTES_MAX).contains(&bytes) && bytes.is_multiple_of(4096) {
            Ok(())
        } else {
            Err(LogError::SegmentBytes { bytes })
        }
    }
}
