//! Keys and values of the share coordinator's records (KIP-932), in Kafka's binary form.
//!
//! A key is an int16 type and its body, a value an int16 version and its body; all are version 0.
//! Values are of Kafka's "flexible" kind: compact arrays, and tagged fields at the end of every
//! struct.

use uuid::Uuid;

use super::error::KafkaLogErrorKind;
use super::raw::{Reader, length, put_unsigned_varint};
use crate::model::{DeliveryState, SharePartitionKey, StateBatch};

/// Key type of snapshots and tombstones.
const SNAPSHOT_KEY: i16 = 0;
/// Key type of updates.
const UPDATE_KEY: i16 = 1;

/// Tag of `DeliveryCompleteCount` (KIP-1226), in both kinds of value.
const DELIVERY_COMPLETE_COUNT_TAG: u32 = 0;
/// What its absence means: unknown.
const DELIVERY_COMPLETE_COUNT_DEFAULT: i32 = -1;

/// Size of one encoded state batch without unknown tagged fields.
const STATE_BATCH_BYTES: usize = 20;

/// A record of `__share_group_state`. Its numbers are as the record has them, sensible or not;
/// [`Replay::apply`](super::Replay::apply) judges them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShareRecord {
    /// The whole state of a share partition.
    Snapshot {
        /// Share partition.
        key: SharePartitionKey,
        /// Its state.
        value: ShareSnapshot,
    },
    /// A change to the state.
    Update {
        /// Share partition.
        key: SharePartitionKey,
        /// The change.
        value: ShareUpdate,
    },
    /// The share partition is deleted: a snapshot key without a value.
    Tombstone {
        /// Share partition.
        key: SharePartitionKey,
    },
    /// A key type of some newer Kafka. Skipped on load.
    Unknown {
        /// The key type.
        key_type: i16,
    },
}

/// Kafka's `ShareSnapshotValue`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareSnapshot {
    /// One more at every snapshot of the share partition.
    pub snapshot_epoch: i32,
    /// State epoch.
    pub state_epoch: i32,
    /// Leader epoch, -1 = none.
    pub leader_epoch: i32,
    /// Start offset, -1 = not known yet.
    pub start_offset: i64,
    /// Delivery-complete count, -1 = unknown.
    pub delivery_complete_count: i32,
    /// When the state was first written, in ms since the Unix epoch.
    pub create_timestamp: i64,
    /// When the snapshot was written, in ms since the Unix epoch.
    pub write_timestamp: i64,
    /// All state batches.
    pub state_batches: Vec<StateBatch>,
}

/// Kafka's `ShareUpdateValue`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareUpdate {
    /// That of the snapshot it builds on.
    pub snapshot_epoch: i32,
    /// Leader epoch, -1 = unchanged.
    pub leader_epoch: i32,
    /// Start offset, -1 = unchanged.
    pub start_offset: i64,
    /// Delivery-complete count, -1 = unknown.
    pub delivery_complete_count: i32,
    /// Changed state batches.
    pub state_batches: Vec<StateBatch>,
}

impl ShareRecord {
    /// Decodes the key and value of a Kafka record.
    ///
    /// # Errors
    /// When the key is missing, when key or value are damaged, or when the value is of a newer
    /// version. An unknown key type is no error.
    pub fn decode(key: Option<&[u8]>, value: Option<&[u8]>) -> Result<Self, KafkaLogErrorKind> {
        let mut reader = Reader::new(key.ok_or(KafkaLogErrorKind::MissingKey)?);
        let key_type = reader.i16("record type")?;
        match key_type {
            SNAPSHOT_KEY => {
                let key = decode_key(reader)?;
                Ok(match value {
                    None => Self::Tombstone { key },
                    Some(value) => Self::Snapshot { key, value: ShareSnapshot::decode(value)? },
                })
            }
            UPDATE_KEY => {
                let key = decode_key(reader)?;
                let value = value.ok_or(KafkaLogErrorKind::MissingValue)?;
                Ok(Self::Update { key, value: ShareUpdate::decode(value)? })
            }
            key_type => Ok(Self::Unknown { key_type }),
        }
    }

    /// Encodes the record's key. That of an unknown record has no body.
    #[must_use]
    pub fn encode_key(&self) -> Vec<u8> {
        match self {
            Self::Snapshot { key, .. } | Self::Tombstone { key } => encode_key(SNAPSHOT_KEY, key),
            Self::Update { key, .. } => encode_key(UPDATE_KEY, key),
            Self::Unknown { key_type } => key_type.to_be_bytes().into(),
        }
    }

    /// Encodes the record's value; tombstones and unknown records have none.
    #[must_use]
    pub fn encode_value(&self) -> Option<Vec<u8>> {
        match self {
            Self::Snapshot { value, .. } => Some(value.encode()),
            Self::Update { value, .. } => Some(value.encode()),
            Self::Tombstone { .. } | Self::Unknown { .. } => None,
        }
    }

    /// The share partition, if the record has one.
    #[must_use]
    pub fn key(&self) -> Option<&SharePartitionKey> {
        match self {
            Self::Snapshot { key, .. } | Self::Update { key, .. } | Self::Tombstone { key } => {
                Some(key)
            }
            Self::Unknown { .. } => None,
        }
    }
}

fn decode_key(mut reader: Reader<'_>) -> Result<SharePartitionKey, KafkaLogErrorKind> {
    let size = length(reader.i16("group id length")?.into(), "group id")?;
    let group_id = std::str::from_utf8(reader.take(size, "group id")?)
        .map_err(|_| KafkaLogErrorKind::Utf8 { field: "group id" })?;
    let topic_id = Uuid::from_bytes(reader.array("topic id")?);
    let partition = reader.i32("partition")?;
    reader.finish("the record key")?;
    Ok(SharePartitionKey::new(group_id, topic_id, partition)?)
}

fn encode_key(key_type: i16, key: &SharePartitionKey) -> Vec<u8> {
    let mut out = Vec::from(key_type.to_be_bytes());
    // A key is valid by construction, so its group id fits.
    let size = i16::try_from(key.group_id().len()).unwrap_or(i16::MAX);
    out.extend_from_slice(&size.to_be_bytes());
    out.extend_from_slice(key.group_id().as_bytes());
    out.extend_from_slice(key.topic_id().as_bytes());
    out.extend_from_slice(&key.partition().to_be_bytes());
    out
}

impl ShareSnapshot {
    const MESSAGE: &str = "ShareSnapshotValue";

    fn decode(value: &[u8]) -> Result<Self, KafkaLogErrorKind> {
        let mut reader = versioned(value, Self::MESSAGE)?;
        let mut decoded = Self {
            snapshot_epoch: reader.i32("snapshot epoch")?,
            state_epoch: reader.i32("state epoch")?,
            leader_epoch: reader.i32("leader epoch")?,
            start_offset: reader.i64("start offset")?,
            delivery_complete_count: DELIVERY_COMPLETE_COUNT_DEFAULT,
            create_timestamp: reader.i64("create timestamp")?,
            write_timestamp: reader.i64("write timestamp")?,
            state_batches: decode_batches(&mut reader)?,
        };
        decoded.delivery_complete_count = decode_count(&mut reader)?;
        reader.finish(Self::MESSAGE)?;
        Ok(decoded)
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::from(0_i16.to_be_bytes());
        out.extend_from_slice(&self.snapshot_epoch.to_be_bytes());
        out.extend_from_slice(&self.state_epoch.to_be_bytes());
        out.extend_from_slice(&self.leader_epoch.to_be_bytes());
        out.extend_from_slice(&self.start_offset.to_be_bytes());
        out.extend_from_slice(&self.create_timestamp.to_be_bytes());
        out.extend_from_slice(&self.write_timestamp.to_be_bytes());
        encode_batches(&mut out, &self.state_batches);
        encode_count(&mut out, self.delivery_complete_count);
        out
    }
}

impl ShareUpdate {
    const MESSAGE: &str = "ShareUpdateValue";

    fn decode(value: &[u8]) -> Result<Self, KafkaLogErrorKind> {
        let mut reader = versioned(value, Self::MESSAGE)?;
        let mut decoded = Self {
            snapshot_epoch: reader.i32("snapshot epoch")?,
            leader_epoch: reader.i32("leader epoch")?,
            start_offset: reader.i64("start offset")?,
            delivery_complete_count: DELIVERY_COMPLETE_COUNT_DEFAULT,
            state_batches: decode_batches(&mut reader)?,
        };
        decoded.delivery_complete_count = decode_count(&mut reader)?;
        reader.finish(Self::MESSAGE)?;
        Ok(decoded)
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::from(0_i16.to_be_bytes());
        out.extend_from_slice(&self.snapshot_epoch.to_be_bytes());
        out.extend_from_slice(&self.leader_epoch.to_be_bytes());
        out.extend_from_slice(&self.start_offset.to_be_bytes());
        encode_batches(&mut out, &self.state_batches);
        encode_count(&mut out, self.delivery_complete_count);
        out
    }
}

/// The body of a value of version 0.
fn versioned<'a>(value: &'a [u8], message: &'static str) -> Result<Reader<'a>, KafkaLogErrorKind> {
    let mut reader = Reader::new(value);
    match reader.i16("record version")? {
        0 => Ok(reader),
        found => Err(KafkaLogErrorKind::UnknownVersion { message, found }),
    }
}

fn decode_batches(reader: &mut Reader<'_>) -> Result<Vec<StateBatch>, KafkaLogErrorKind> {
    let field = "state batches";
    // A compact array has its length plus one in front; 0 = null.
    let count = reader
        .unsigned_varint(field)?
        .checked_sub(1)
        .ok_or(KafkaLogErrorKind::Length { field, found: -1 })?;
    let expected = u64::from(count).saturating_mul(STATE_BATCH_BYTES as u64);
    let found = reader.left() as u64;
    if expected > found {
        return Err(KafkaLogErrorKind::Short { field, expected, found });
    }
    (0..count).map(|_| decode_batch(reader)).collect()
}

fn decode_batch(reader: &mut Reader<'_>) -> Result<StateBatch, KafkaLogErrorKind> {
    let batch = StateBatch {
        first_offset: reader.i64("first offset")?,
        last_offset: reader.i64("last offset")?,
        delivery_state: DeliveryState(reader.i8("delivery state")?),
        delivery_count: reader.i16("delivery count")?,
    };
    decode_tags(reader, |_, _| Ok(()))?;
    Ok(batch)
}

fn encode_batches(out: &mut Vec<u8>, batches: &[StateBatch]) {
    // Four thousand million batches take 80 GiB; the length saturates there, and the record is
    // refused for its size.
    let count = u32::try_from(batches.len()).unwrap_or(u32::MAX);
    put_unsigned_varint(out, count.saturating_add(1));
    for batch in batches {
        out.extend_from_slice(&batch.first_offset.to_be_bytes());
        out.extend_from_slice(&batch.last_offset.to_be_bytes());
        out.extend_from_slice(&batch.delivery_state.0.to_be_bytes());
        out.extend_from_slice(&batch.delivery_count.to_be_bytes());
        put_unsigned_varint(out, 0);
    }
}

/// The tagged fields at the end of a value: the delivery-complete count, and what a newer Kafka may
/// add.
fn decode_count(reader: &mut Reader<'_>) -> Result<i32, KafkaLogErrorKind> {
    let mut count = DELIVERY_COMPLETE_COUNT_DEFAULT;
    decode_tags(reader, |tag, bytes| {
        if tag == DELIVERY_COMPLETE_COUNT_TAG {
            count = i32::from_be_bytes(bytes.try_into().map_err(|_| {
                let (field, expected) = ("delivery complete count", 4);
                let found = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                KafkaLogErrorKind::TagSize { field, expected, found }
            })?);
        }
        Ok(())
    })?;
    Ok(count)
}

fn encode_count(out: &mut Vec<u8>, count: i32) {
    // Kafka leaves a tagged field out when it has its default.
    if count == DELIVERY_COMPLETE_COUNT_DEFAULT {
        put_unsigned_varint(out, 0);
        return;
    }
    put_unsigned_varint(out, 1);
    put_unsigned_varint(out, DELIVERY_COMPLETE_COUNT_TAG);
    put_unsigned_varint(out, 4);
    out.extend_from_slice(&count.to_be_bytes());
}

/// Visits the tagged fields of a struct. Each takes at least two bytes, which ends the loop.
fn decode_tags(
    reader: &mut Reader<'_>,
    mut visit: impl FnMut(u32, &[u8]) -> Result<(), KafkaLogErrorKind>,
) -> Result<(), KafkaLogErrorKind> {
    for _ in 0..reader.unsigned_varint("number of tagged fields")? {
        let tag = reader.unsigned_varint("tag")?;
        let size = reader.unsigned_varint("size of a tagged field")?;
        visit(tag, reader.take(usize::try_from(size).unwrap_or(usize::MAX), "tagged field")?)?;
    }
    Ok(())
}
