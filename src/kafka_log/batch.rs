//! Kafka's record batch, format version 2, and the records in it.
//!
//! ```text
//! at   size
//!  0   8     base offset
//!  8   4     batch length: bytes after this field
//! 12   4     partition leader epoch
//! 16   1     magic, 2
//! 17   4     CRC-32C of everything after this field
//! 21   2     attributes: bits 0-2 codec, 3 timestamp type, 4 transactional, 5 control
//! 23   4     last offset delta
//! 27   8     base timestamp
//! 35   8     max timestamp
//! 43   8     producer id
//! 51   2     producer epoch
//! 53   4     base sequence
//! 57   4     record count
//! 61         records, compressed as a whole where a codec is set
//! ```

use super::crc32c::crc32c;
use super::error::KafkaLogErrorKind;
use super::raw::{Reader, length, put_varint, put_varlong};

/// Bytes up to and including the batch length.
pub(super) const HEAD_BYTES: usize = 12;

/// Bytes after the batch length of a batch without records.
const LENGTH_MIN: i32 = 49;

/// Smallest record: seven fields of one byte each.
const RECORD_BYTES_MIN: usize = 7;

const MAGIC: i8 = 2;
const CODEC_BITS: i16 = 0b111;
const LOG_APPEND_TIME_BIT: i16 = 1 << 3;
const CONTROL_BIT: i16 = 1 << 5;

/// A batch whose checksum is right.
#[derive(Debug)]
pub(super) struct Batch<'a> {
    pub(super) base_offset: i64,
    pub(super) last_offset: i64,
    attributes: i16,
    base_timestamp: i64,
    max_timestamp: i64,
    record_count: i32,
    /// The records, still compressed.
    pub(super) payload: &'a [u8],
}

/// The outer shape of the bytes at the start of `file`, which are not empty.
pub(super) enum Head<'a> {
    /// A batch that fits into the file; nothing of it is verified.
    Batch {
        /// From the base offset to the last record.
        bytes: &'a [u8],
        /// What follows it.
        rest: &'a [u8],
    },
    /// Zeros to the end: a preallocated file.
    Zeros,
}

/// Finds the end of the batch that `file` begins with.
pub(super) fn split(file: &[u8]) -> Result<Head<'_>, KafkaLogErrorKind> {
    let left = file.len() as u64;
    let only_zeros = || file.iter().all(|byte| *byte == 0);
    let mut head = Reader::new(file);
    let (Ok(_base_offset), Ok(batch_length)) = (head.i64("base offset"), head.i32("batch length"))
    else {
        if only_zeros() {
            return Ok(Head::Zeros);
        }
        let expected = HEAD_BYTES as u64;
        return Err(KafkaLogErrorKind::Truncated { expected, found: left });
    };
    if batch_length == 0 && only_zeros() {
        return Ok(Head::Zeros);
    }
    let too_small = KafkaLogErrorKind::BatchLength { minimum: LENGTH_MIN, found: batch_length };
    if batch_length < LENGTH_MIN {
        return Err(too_small);
    }
    let size = usize::try_from(batch_length)
        .ok()
        .and_then(|size| size.checked_add(HEAD_BYTES))
        .ok_or(too_small)?;
    match file.split_at_checked(size) {
        Some((bytes, rest)) => Ok(Head::Batch { bytes, rest }),
        None => Err(KafkaLogErrorKind::Truncated { expected: size as u64, found: left }),
    }
}

impl<'a> Batch<'a> {
    /// Verifies magic and checksum of one batch, as [`split`] cut it out, and reads its header.
    pub(super) fn verify(bytes: &'a [u8]) -> Result<Self, KafkaLogErrorKind> {
        let mut reader = Reader::new(bytes);
        let base_offset = reader.i64("base offset")?;
        let _batch_length = reader.i32("batch length")?;
        let _partition_leader_epoch = reader.i32("partition leader epoch")?;
        let magic = reader.i8("magic")?;
        if magic != MAGIC {
            return Err(KafkaLogErrorKind::Magic { found: magic });
        }
        let expected = reader.u32("CRC")?;
        let covered = reader.take(reader.left(), "batch")?;
        let found = crc32c(covered);
        if found != expected {
            return Err(KafkaLogErrorKind::Crc { expected, found });
        }
        Self::header(base_offset, Reader::new(covered))
    }

    fn header(base_offset: i64, mut reader: Reader<'a>) -> Result<Self, KafkaLogErrorKind> {
        let attributes = reader.i16("attributes")?;
        let last_offset_delta = reader.i32("last offset delta")?;
        let base_timestamp = reader.i64("base timestamp")?;
        let max_timestamp = reader.i64("max timestamp")?;
        let _producer_id = reader.i64("producer id")?;
        let _producer_epoch = reader.i16("producer epoch")?;
        let _base_sequence = reader.i32("base sequence")?;
        let record_count = reader.i32("record count")?;
        let payload = reader.take(reader.left(), "records")?;

        // i64::MAX itself is out of range, so that there always is a next offset.
        let last_offset = base_offset
            .checked_add(i64::from(last_offset_delta))
            .filter(|last| base_offset >= 0 && *last >= base_offset && *last < i64::MAX)
            .ok_or(KafkaLogErrorKind::OffsetRange { base: base_offset, last_offset_delta })?;
        let expected = i64::from(last_offset_delta).saturating_add(1);
        if i64::from(record_count) != expected {
            return Err(KafkaLogErrorKind::RecordCount { expected, found: record_count });
        }
        Ok(Self {
            base_offset,
            last_offset,
            attributes,
            base_timestamp,
            max_timestamp,
            record_count,
            payload,
        })
    }

    /// Number of the compression codec, 0 = none.
    pub(super) fn codec(&self) -> i16 {
        self.attributes & CODEC_BITS
    }

    /// Whether this is a transaction marker or the like, not data.
    pub(super) fn is_control(&self) -> bool {
        self.attributes & CONTROL_BIT != 0
    }

    /// Visits the records in `inflated`, the payload without its compression. An error comes with
    /// the offset of the record at fault.
    pub(super) fn records<E>(
        &self,
        inflated: &[u8],
        fail: impl Fn(i64, KafkaLogErrorKind) -> E,
        visit: &mut dyn FnMut(Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let most = (inflated.len() / RECORD_BYTES_MIN) as u64;
        if u64::from(self.record_count.unsigned_abs()) > most {
            let expected = i64::try_from(most).unwrap_or(i64::MAX);
            let kind = KafkaLogErrorKind::RecordCount { expected, found: self.record_count };
            return Err(fail(self.base_offset, kind));
        }
        let mut reader = Reader::new(inflated);
        for offset in self.base_offset..=self.last_offset {
            visit(self.record(offset, &mut reader).map_err(|kind| fail(offset, kind))?)?;
        }
        reader.finish("the last record").map_err(|kind| fail(self.last_offset, kind))
    }

    fn record<'r>(
        &self,
        expected: i64,
        reader: &mut Reader<'r>,
    ) -> Result<Record<'r>, KafkaLogErrorKind> {
        let size = length(reader.varint("record length")?, "record")?;
        let mut reader = Reader::new(reader.take(size, "record")?);
        let _attributes = reader.i8("record attributes")?;
        let timestamp = self.timestamp(reader.varlong("timestamp delta")?)?;
        let delta = i64::from(reader.varint("offset delta")?);
        let found = self.base_offset.saturating_add(delta);
        if found != expected {
            return Err(KafkaLogErrorKind::Offset { expected, found });
        }
        let key = reader.nullable_bytes("record key")?;
        let value = reader.nullable_bytes("record value")?;
        // Share records have no headers, but nothing forbids them. Each takes at least two bytes,
        // which ends the loop.
        for _ in 0..length(reader.varint("header count")?, "headers")? {
            let size = length(reader.varint("header key length")?, "header key")?;
            reader.take(size, "header key")?;
            reader.nullable_bytes("header value")?;
        }
        reader.finish("the record")?;
        Ok(Record { offset: expected, timestamp, key, value })
    }

    fn timestamp(&self, delta: i64) -> Result<i64, KafkaLogErrorKind> {
        if self.attributes & LOG_APPEND_TIME_BIT != 0 {
            return Ok(self.max_timestamp);
        }
        let base = self.base_timestamp;
        base.checked_add(delta).ok_or(KafkaLogErrorKind::Timestamp { base, delta })
    }
}

/// One record as its batch holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record<'a> {
    pub(super) offset: i64,
    pub(super) timestamp: i64,
    pub(super) key: Option<&'a [u8]>,
    pub(super) value: Option<&'a [u8]>,
}

/// An uncompressed batch in the making. All its records have one timestamp.
#[derive(Debug, Default)]
pub(super) struct BatchBuilder {
    count: i32,
    records: Vec<u8>,
}

impl BatchBuilder {
    /// Bytes of the records so far.
    pub(super) fn size(&self) -> usize {
        self.records.len()
    }

    /// Adds a record. False, and no change, when the batch would outgrow its length field.
    #[must_use]
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) -> bool {
        let (Ok(key_size), Ok(value_size)) = (i32::try_from(key.len()), i32::try_from(value.len()))
        else {
            return false;
        };
        let mut body = vec![0];
        put_varlong(&mut body, 0);
        put_varint(&mut body, self.count);
        put_varint(&mut body, key_size);
        body.extend_from_slice(key);
        put_varint(&mut body, value_size);
        body.extend_from_slice(value);
        put_varint(&mut body, 0);

        let Ok(size) = i32::try_from(body.len()) else { return false };
        let mut head = Vec::new();
        put_varint(&mut head, size);
        let total =
            [self.records.len(), head.len(), body.len()].into_iter().fold(0, usize::saturating_add);
        let (Ok(total), Some(count)) = (i32::try_from(total), self.count.checked_add(1)) else {
            return false;
        };
        if total.checked_add(LENGTH_MIN).is_none() {
            return false;
        }
        self.records.append(&mut head);
        self.records.append(&mut body);
        self.count = count;
        true
    }

    /// Appends the batch to `out`, unless it is empty, and starts the next one. Answers the number
    /// of its records.
    pub(super) fn finish(&mut self, base_offset: i64, timestamp: i64, out: &mut Vec<u8>) -> i32 {
        let Self { count, records } = std::mem::take(self);
        if count == 0 {
            return 0;
        }
        let mut covered = Vec::new();
        covered.extend_from_slice(&0_i16.to_be_bytes());
        covered.extend_from_slice(&count.wrapping_sub(1).to_be_bytes());
        covered.extend_from_slice(&timestamp.to_be_bytes());
        covered.extend_from_slice(&timestamp.to_be_bytes());
        covered.extend_from_slice(&(-1_i64).to_be_bytes());
        covered.extend_from_slice(&(-1_i16).to_be_bytes());
        covered.extend_from_slice(&(-1_i32).to_be_bytes());
        covered.extend_from_slice(&count.to_be_bytes());
        covered.extend_from_slice(&records);

        // `push` has kept the sum within an i32.
        let batch_length = i32::try_from(covered.len()).unwrap_or(i32::MAX).saturating_add(9);
        out.extend_from_slice(&base_offset.to_be_bytes());
        out.extend_from_slice(&batch_length.to_be_bytes());
        out.extend_from_slice(&0_i32.to_be_bytes());
        out.extend_from_slice(&MAGIC.to_be_bytes());
        out.extend_from_slice(&crc32c(&covered).to_be_bytes());
        out.append(&mut covered);
        count
    }
}
