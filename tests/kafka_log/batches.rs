//! Record batches as `kafka-protocol` writes them, and ways to damage them.

use bytes::{Bytes, BytesMut};
use kafka_protocol::records::{
    Compression, Record, RecordBatchEncoder, RecordEncodeOptions, TimestampType,
};
use sharestate::kafka_log::{
    KafkaLogError, KafkaLogErrorKind, LogRecord, SegmentSummary, ShareRecord, read_segment,
};
use sharestate::model::SharePartitionKey;
use uuid::Uuid;

pub const FILE: &str = "00000000000000000000.log";

pub fn key(partition: i32) -> SharePartitionKey {
    SharePartitionKey::new("group", Uuid::from_u128(0xfeed), partition).expect("valid")
}

pub fn raw(offset: i64, key: Option<Vec<u8>>, value: Option<Vec<u8>>) -> Record {
    Record {
        transactional: false,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: 5,
        producer_id: -1,
        producer_epoch: -1,
        timestamp_type: TimestampType::Creation,
        offset,
        sequence: i32::try_from(offset).expect("a small offset"),
        timestamp: 1_000 + offset,
        key: key.map(Bytes::from),
        value: value.map(Bytes::from),
        headers: Default::default(),
    }
}

pub fn tombstone(offset: i64) -> Record {
    let partition = i32::try_from(offset).expect("a small offset");
    raw(offset, Some(ShareRecord::Tombstone { key: key(partition) }.encode_key()), None)
}

/// One batch written by `kafka-protocol`.
pub fn foreign_batch(records: &[Record], compression: Compression) -> Vec<u8> {
    let mut out = BytesMut::new();
    let options = RecordEncodeOptions { version: 2, compression };
    RecordBatchEncoder::encode(&mut out, records, &options).expect("encodable");
    out.to_vec()
}

/// Makes the CRC right again.
pub fn forge(mut batch: Vec<u8>) -> Vec<u8> {
    let mut crc = !0_u32;
    for byte in &batch[21..] {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg());
        }
    }
    batch[17..21].copy_from_slice(&(!crc).to_be_bytes());
    batch
}

/// A batch with one field overwritten and its CRC made right again.
pub fn forged(batch: &[u8], at: usize, field: &[u8]) -> Vec<u8> {
    let mut batch = batch.to_vec();
    batch[at..at + field.len()].copy_from_slice(field);
    forge(batch)
}

pub fn read(bytes: &[u8]) -> Result<(Vec<LogRecord>, SegmentSummary), KafkaLogError> {
    let mut records = Vec::new();
    let summary = read_segment(FILE, bytes, &mut |record| {
        records.push(record);
        Ok(())
    })?;
    Ok((records, summary))
}

pub fn kind(bytes: &[u8]) -> KafkaLogErrorKind {
    read(bytes).expect_err("damage").kind
}
