//! What can be wrong with a segment, a record or an export.

use crate::model::{KeyError, SharePartitionKey};

/// A segment that cannot be read, or a record that cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: position {position}{}: {kind}", place(offset.as_ref(), key.as_deref()))]
#[non_exhaustive]
pub struct KafkaLogError {
    /// The segment, as its reader named it.
    pub file: Box<str>,
    /// Position in the file of the batch at fault.
    pub position: u64,
    /// Kafka offset of the record at fault, or of the batch's first record; absent where the bytes
    /// do not tell.
    pub offset: Option<i64>,
    /// The share partition at fault, where one is known.
    pub key: Option<Box<SharePartitionKey>>,
    /// What is wrong.
    #[source]
    pub kind: KafkaLogErrorKind,
}

fn place(offset: Option<&i64>, key: Option<&SharePartitionKey>) -> String {
    let offset = offset.map(|offset| format!(", offset {offset}"));
    let key = key.map(|key| format!(", share partition {key}"));
    offset.unwrap_or_default() + &key.unwrap_or_default()
}

/// See [`KafkaLogError::kind`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KafkaLogErrorKind {
    /// The file ends within a batch.
    #[error("the batch takes {expected} bytes, {found} are left in the file")]
    Truncated {
        /// Bytes that the batch, or the head that tells its length, takes.
        expected: u64,
        /// Bytes that are left.
        found: u64,
    },
    /// The batch length is too small for a batch, and what follows is not all zeros.
    #[error("the batch length is {found}, at least {minimum} is expected")]
    BatchLength {
        /// Smallest possible length.
        minimum: i32,
        /// The length found.
        found: i32,
    },
    /// The batch has another format than version 2, the only one since Kafka 0.11.
    #[error("the batch has magic {found}, 2 is expected")]
    Magic {
        /// The magic found.
        found: i8,
    },
    /// The batch is damaged.
    #[error("the batch has CRC-32C {found:08x}, its header says {expected:08x}")]
    Crc {
        /// As stored in the batch.
        expected: u32,
        /// As computed over the batch.
        found: u32,
    },
    /// A batch or a record does not follow the one before.
    #[error("found offset {found}, {expected} is expected")]
    Offset {
        /// One above the offset before.
        expected: i64,
        /// The offset found.
        found: i64,
    },
    /// The batch begins below 0 or ends before its start or above 2^63-2.
    #[error("the batch at offset {base} cannot end {last_offset_delta} above it")]
    OffsetRange {
        /// Base offset.
        base: i64,
        /// Offset of the last record relative to it.
        last_offset_delta: i32,
    },
    /// The number of records does not fit the batch.
    #[error("the batch has {found} records, {expected} are expected")]
    RecordCount {
        /// What the batch's offsets call for.
        expected: i64,
        /// What its header says.
        found: i32,
    },
    /// A timestamp leaves the range of 64 bits.
    #[error("the timestamp {delta} ms after {base} is out of range")]
    Timestamp {
        /// Timestamp of the batch.
        base: i64,
        /// Of the record, relative to it.
        delta: i64,
    },
    /// The compression codec is not known.
    #[error("unknown compression codec {found}, 0 to 4 are expected")]
    Codec {
        /// Its number.
        found: i16,
    },
    /// A compressed batch cannot be inflated.
    #[error("the {codec} data cannot be inflated: {reason}")]
    Inflate {
        /// Name of the codec.
        codec: &'static str,
        /// What is wrong with it.
        reason: Box<str>,
    },
    /// A compressed batch inflates to more than any batch of this topic holds.
    #[error("the {codec} data inflates to up to {found} bytes, {bound} are allowed")]
    InflatedSize {
        /// Name of the codec.
        codec: &'static str,
        /// The most bytes that it can inflate to, as far as its framing tells.
        found: u64,
        /// The most that is accepted.
        bound: u64,
    },
    /// A field ends after its record, key or value.
    #[error("{field} takes {expected} bytes, {found} are left")]
    Short {
        /// The field.
        field: &'static str,
        /// Bytes that it takes.
        expected: u64,
        /// Bytes that are left.
        found: u64,
    },
    /// A variable-length number is longer than its type allows.
    #[error("{field} is not a valid variable-length number")]
    Varint {
        /// The field.
        field: &'static str,
    },
    /// A length or count is negative, or null where that is not allowed.
    #[error("the length of {field} is {found}")]
    Length {
        /// The field.
        field: &'static str,
        /// The length found; -1 = null.
        found: i64,
    },
    /// A tagged field of known type has another size than its type.
    #[error("tagged field {field} has {found} bytes, {expected} are expected")]
    TagSize {
        /// The field.
        field: &'static str,
        /// Size of its type.
        expected: u32,
        /// The size found.
        found: u32,
    },
    /// Bytes are left over where something should end.
    #[error("{found} bytes are left over after {field}")]
    LeftOver {
        /// What should have ended.
        field: &'static str,
        /// How many are left.
        found: u64,
    },
    /// A string is not UTF-8.
    #[error("{field} is not valid UTF-8")]
    Utf8 {
        /// The field.
        field: &'static str,
    },
    /// A record has no key.
    #[error("the record has no key")]
    MissingKey,
    /// An update record has no value; only snapshot keys have tombstones.
    #[error("the update record has no value")]
    MissingValue,
    /// A record value was written by a newer Kafka.
    #[error("unknown record version {found} of {message}, 0 is expected")]
    UnknownVersion {
        /// Name of the message in Kafka's schema.
        message: &'static str,
        /// The version found.
        found: i16,
    },
    /// The key of a record is not a share partition.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A value that no share coordinator stores.
    #[error("{field} is {found}, allowed is {allowed}")]
    Content {
        /// The field.
        field: &'static str,
        /// Its value.
        found: i64,
        /// What may be stored.
        allowed: &'static str,
    },
}

/// Why a state cannot be written as a Kafka segment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The share partition has staged transactional acks, which Kafka's record format cannot show:
    /// left out, they would look like undelivered records and be delivered again.
    #[error("share partition {key} has {ranges} pending ack ranges")]
    PendingAcks {
        /// The share partition.
        key: SharePartitionKey,
        /// How many ranges are pending.
        ranges: usize,
    },
    /// The state holds a value that the import would refuse.
    #[error("share partition {key}: {reason}")]
    Content {
        /// The share partition.
        key: SharePartitionKey,
        /// The value at fault.
        reason: KafkaLogErrorKind,
    },
    /// The state is too large for one record batch.
    #[error("share partition {key} takes {bytes} bytes as a record")]
    TooLarge {
        /// The share partition.
        key: SharePartitionKey,
        /// Size of its record.
        bytes: usize,
    },
    /// The first offset is negative, or so high that the records run out of offsets.
    #[error("offset {0} is out of range")]
    Offset(i64),
}
