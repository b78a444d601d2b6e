//! Kafka's own share-group state: segment files of `__share_group_state-N`, read for import and
//! written for export.
//!
//! Owns the bytes of Kafka's log (record batches, the keys and values of KIP-932's share
//! coordinator) and the coordinator's replay rules. Pure: no I/O; knows nothing of this project's
//! own log, snapshot or engine.
//!
//! ```text
//! read_segment: file -> batch (length, magic, CRC-32C, offsets) -> inflate -> record
//!               -> ShareRecord -> visit
//! Replay:       ShareRecord -> Partition
//! ```
//!
//! # What is checked
//!
//! A damaged file is an error that names file, position and offset, never a shorter or different
//! state:
//!
//! * a batch that does not fit into the rest of the file, or a rest that is neither a batch nor all
//!   zeros;
//! * the CRC-32C, which covers a batch from its attributes on;
//! * offsets: dense within and between batches. `__share_group_state` has the cleanup policy
//!   `delete`, under which Kafka assigns offsets without holes; a hole therefore means that
//!   something is missing. (A topic that an operator has changed to `compact` cannot be read.)
//! * every length inside a batch against what is left, before anything is allocated; nothing may be
//!   left over;
//! * in [`Replay`], the values: see [`Replay::apply`].
//!
//! # What cannot be seen
//!
//! * A file cut exactly between two batches, or zeroed from there on, looks like a shorter
//!   (preallocated) one. So does one that is cut within the leading zero bytes of a batch (low base
//!   offset and length), for example 5 bytes into the batch at offset 0. Compare
//!   [`SegmentSummary::last_offset`] and [`SegmentSummary::trailing_zero_bytes`] with what is known
//!   of the log.
//! * The header fields in front of the CRC's range are not covered by it. Batch length, magic and
//!   the CRC itself are caught all the same, and so is the base offset as long as the file has a
//!   neighbouring batch. The base offset of a file's only batch is not (compare it with the file's
//!   name: [`SegmentSummary::first_offset`]), nor is the partition leader epoch, which is not used.
//! * A CRC is no signature: whoever forges a batch forges its CRC.
//! * A file is not the topic: a leader's file may end in records that were never committed (above
//!   the high watermark), and may begin with records that were already deleted (below the log start
//!   offset). The latter only ever make
//!   [`Partition::leader_fence`](crate::model::Partition::leader_fence) higher.
//!
//! # Record batches and the `kafka-protocol` crate
//!
//! Records are decoded here, not by that crate's `RecordBatchDecoder`: with a forged CRC, that
//! reserves memory for a record count and a header count which it has not compared with what is
//! there, and adds timestamps and offsets unchecked, so it can abort or panic. It serves to inflate
//! compressed batches, after their framing was found to be within bounds, and as the other side in
//! tests.

#![deny(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects)
)]

mod batch;
mod compression;
mod crc32c;
mod error;
mod export;
mod formatter;
mod raw;
mod replay;
#[cfg(any(test, feature = "testing"))]
mod seal;
mod segment;
mod share;

pub use error::{ExportError, KafkaLogError, KafkaLogErrorKind};
pub use export::write_segment;
pub use formatter::formatter_json;
pub use replay::Replay;
#[cfg(any(test, feature = "testing"))]
pub use seal::seal_batches;
pub use segment::{LogRecord, SegmentSummary, read_segment};
pub use share::{ShareRecord, ShareSnapshot, ShareUpdate};
