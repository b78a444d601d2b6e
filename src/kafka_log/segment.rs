//! One segment file: a sequence of record batches.

use super::batch::{Batch, Head, split};
use super::compression::inflate;
use super::error::{KafkaLogError, KafkaLogErrorKind};
use super::share::ShareRecord;

/// A record of the share coordinator and where it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRecord {
    /// Position in the file of the batch that holds it.
    pub position: u64,
    /// Kafka offset in the state partition.
    pub offset: i64,
    /// Timestamp of the record, in ms since the Unix epoch.
    pub timestamp: i64,
    /// What it says.
    pub record: ShareRecord,
}

/// What [`read_segment`] has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SegmentSummary {
    /// Batches, control batches included.
    pub batches: u64,
    /// Records in batches other than control batches.
    pub records: u64,
    /// Of these, records of a key type that is not known; Kafka skips them when it loads, and so
    /// does [`Replay`](super::Replay).
    pub unknown_records: u64,
    /// Control batches; their records are skipped.
    pub control_batches: u64,
    /// Offset of the first batch; a segment file is named after it. Absent when there is no batch.
    pub first_offset: Option<i64>,
    /// Last offset of the last batch: the next segment begins one above. Absent when there is no
    /// batch.
    pub last_offset: Option<i64>,
    /// Zero bytes after the last batch, as in a preallocated file.
    pub trailing_zero_bytes: u64,
}

/// Reads the bytes of one segment file of `__share_group_state` and visits its records in order.
///
/// `name` is used in errors only. A file of the state topic that is not damaged reads to its end;
/// see the [module](super) for what is checked. Records that were visited before an error stay
/// visited.
///
/// # Errors
/// [`KafkaLogError`] at the first damage, or whatever `visit` answers.
pub fn read_segment(
    name: &str,
    bytes: &[u8],
    visit: &mut dyn FnMut(LogRecord) -> Result<(), KafkaLogError>,
) -> Result<SegmentSummary, KafkaLogError> {
    let mut summary = SegmentSummary::default();
    let mut rest = bytes;
    while !rest.is_empty() {
        let position = (bytes.len() as u64).saturating_sub(rest.len() as u64);
        let file = Place { name, position };
        let stated = rest.first_chunk().map(|offset| i64::from_be_bytes(*offset));
        let (batch, after) = match split(rest).map_err(|kind| file.error(stated, kind))? {
            Head::Batch { bytes, rest } => (bytes, rest),
            Head::Zeros => {
                summary.trailing_zero_bytes = rest.len() as u64;
                break;
            }
        };
        let batch = Batch::verify(batch).map_err(|kind| file.error(stated, kind))?;
        if let Some(last) = summary.last_offset {
            // Below i64::MAX, or `verify` would have refused it.
            let (expected, found) = (last.saturating_add(1), batch.base_offset);
            if found != expected {
                return Err(file.error(stated, KafkaLogErrorKind::Offset { expected, found }));
            }
        }
        if batch.is_control() {
            summary.control_batches = summary.control_batches.saturating_add(1);
        } else {
            read_batch(file, &batch, &mut summary, visit)?;
        }
        summary.batches = summary.batches.saturating_add(1);
        summary.first_offset.get_or_insert(batch.base_offset);
        summary.last_offset = Some(batch.last_offset);
        rest = after;
    }
    Ok(summary)
}

fn read_batch(
    file: Place<'_>,
    batch: &Batch<'_>,
    summary: &mut SegmentSummary,
    visit: &mut dyn FnMut(LogRecord) -> Result<(), KafkaLogError>,
) -> Result<(), KafkaLogError> {
    let buffer;
    let inflated = match batch.codec() {
        0 => batch.payload,
        codec => {
            buffer = inflate(codec, batch.payload)
                .map_err(|kind| file.error(Some(batch.base_offset), kind))?;
            buffer.as_ref()
        }
    };
    let fail = |offset, kind| file.error(Some(offset), kind);
    batch.records(inflated, fail, &mut |raw| {
        let record = ShareRecord::decode(raw.key, raw.value)
            .map_err(|kind| file.error(Some(raw.offset), kind))?;
        summary.records = summary.records.saturating_add(1);
        if let ShareRecord::Unknown { .. } = record {
            summary.unknown_records = summary.unknown_records.saturating_add(1);
        }
        visit(LogRecord {
            position: file.position,
            offset: raw.offset,
            timestamp: raw.timestamp,
            record,
        })
    })
}

/// Where the reader stands.
#[derive(Debug, Clone, Copy)]
struct Place<'a> {
    name: &'a str,
    position: u64,
}

impl Place<'_> {
    fn error(self, offset: Option<i64>, kind: KafkaLogErrorKind) -> KafkaLogError {
        let Self { name, position } = self;
        KafkaLogError { file: name.into(), position, offset, key: None, kind }
    }
}
