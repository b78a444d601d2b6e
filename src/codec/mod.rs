//! The bytes of entry bodies and snapshot rows: the only place that knows bincode.
//!
//! Owns one frozen struct per (kind, version) and the conversions from and to the model's types. A
//! frozen struct never changes; new content is a new version beside it. Knows nothing of frames,
//! segments or RocksDB.
//!
//! Encoding: bincode 2, little endian, fixed-width integers. Lengths are `u64`, an option is a byte
//! 0 or 1 before its value, a bool is a byte. No derived enums, maps, `usize` or floats;
//! `storage-format.md` spells the bytes out.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic
)]

mod entry;
mod frozen;
mod key;
mod row;

pub use entry::{EntryKind, decode_transition, encode_transition};
pub use key::{
    decode_partition_key, decode_producer_key, encode_group_prefix, encode_partition_key,
    encode_producer_id, encode_producer_key,
};
pub use row::{ProducerRow, decode_partition, decode_producer, encode_partition, encode_producer};

use bincode::{Decode, Encode, config};

use crate::model::KeyError;
use crate::seeded;

/// Bytes that passed their checksum but do not decode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// An entry kind that this release does not know.
    #[error("entry kind {kind} version {version} was written by a newer sharestate")]
    NewerEntry {
        /// Kind found.
        kind: u16,
        /// Version found.
        version: u8,
    },
    /// A row version that this release does not know.
    #[error("row version {version} was written by a newer sharestate")]
    NewerRow {
        /// Version found.
        version: u8,
    },
    /// The body is shorter than its struct, or a length in it lies.
    #[error("the body does not decode: {0}")]
    Body(String),
    /// The body is longer than its struct.
    #[error("{left} bytes are left behind the body of {used}")]
    TrailingBytes {
        /// Bytes decoded.
        used: usize,
        /// Bytes left.
        left: usize,
    },
    /// A number that no release ever wrote in this field.
    #[error("{field} cannot be {found}")]
    Value {
        /// Field.
        field: &'static str,
        /// Value found.
        found: i64,
    },
    /// A key that is malformed.
    #[error("malformed key: {0}")]
    Key(#[from] KeyError),
    /// A struct that cannot be encoded: a bug, reported instead of a panic.
    #[error("the body does not encode: {0}")]
    Encode(String),
}

const CONFIG: config::Configuration<config::LittleEndian, config::Fixint> =
    config::standard().with_little_endian().with_fixed_int_encoding();

/// Appends the encoding of `value` to `out`.
fn encode_into<T: Encode>(value: &T, out: &mut Vec<u8>) -> Result<(), CodecError> {
    bincode::encode_into_std_write(value, out, CONFIG)
        .map(|_| ())
        .map_err(|error| CodecError::Encode(error.to_string()))
}

/// Decodes exactly one `T` that fills `bytes`.
///
/// The limit bounds what a lying length can make bincode allocate: it counts in-memory sizes, so it
/// is the next step above twice the bytes at hand (no frozen struct takes more than twice its
/// encoding).
fn decode_all<T: Decode<()>>(bytes: &[u8]) -> Result<T, CodecError> {
    const SMALL: usize = 4_096;
    const MEDIUM: usize = 256 << 10;
    const LARGE: usize = 64 << 20;
    let decoded = match bytes.len().saturating_mul(2) {
        _ if seeded::bug("bincode-764") => bincode::decode_from_slice(bytes, CONFIG),
        ..=4_096 => bincode::decode_from_slice(bytes, CONFIG.with_limit::<SMALL>()),
        4_097..=MEDIUM => bincode::decode_from_slice(bytes, CONFIG.with_limit::<MEDIUM>()),
        _ => bincode::decode_from_slice(bytes, CONFIG.with_limit::<LARGE>()),
    };
    let (value, used) = decoded.map_err(|error| CodecError::Body(error.to_string()))?;
    match bytes.len().saturating_sub(used) {
        0 => Ok(value),
        left => Err(CodecError::TrailingBytes { used, left }),
    }
}
