//! Records as the JSON of Kafka's `ShareGroupStateMessageFormatter`.

use serde_json::{Value, json};
use uuid::Uuid;

use super::share::{ShareRecord, ShareSnapshot, ShareUpdate};
use crate::model::{SharePartitionKey, StateBatch};

/// What `kafka-console-consumer.sh --formatter
/// org.apache.kafka.tools.consumer.group.share.ShareGroupStateMessageFormatter` prints for a
/// record; nothing for one of unknown type.
#[must_use]
pub fn formatter_json(record: &ShareRecord) -> Option<Value> {
    Some(match record {
        ShareRecord::Snapshot { key, value } => message(0, key, Some(snapshot(value))),
        ShareRecord::Update { key, value } => message(1, key, Some(update(value))),
        ShareRecord::Tombstone { key } => message(0, key, None),
        ShareRecord::Unknown { .. } => return None,
    })
}

fn message(key_type: i16, key: &SharePartitionKey, value: Option<Value>) -> Value {
    let data = json!({
        "groupId": key.group_id(),
        "topicId": kafka_uuid(key.topic_id()),
        "partition": key.partition(),
    });
    let value = value.map(|data| json!({ "version": 0, "data": data }));
    json!({ "key": { "type": key_type, "data": data }, "value": value })
}

fn snapshot(value: &ShareSnapshot) -> Value {
    let data = json!({
        "snapshotEpoch": value.snapshot_epoch,
        "stateEpoch": value.state_epoch,
        "leaderEpoch": value.leader_epoch,
        "startOffset": value.start_offset,
        "createTimestamp": value.create_timestamp,
        "writeTimestamp": value.write_timestamp,
        "stateBatches": batches(&value.state_batches),
    });
    with_count(data, value.delivery_complete_count)
}

fn update(value: &ShareUpdate) -> Value {
    let data = json!({
        "snapshotEpoch": value.snapshot_epoch,
        "leaderEpoch": value.leader_epoch,
        "startOffset": value.start_offset,
        "stateBatches": batches(&value.state_batches),
    });
    with_count(data, value.delivery_complete_count)
}

/// Kafka leaves the tagged count out when it has its default.
fn with_count(mut data: Value, count: i32) -> Value {
    if let Some(data) = data.as_object_mut().filter(|_| count != -1) {
        data.insert("deliveryCompleteCount".to_owned(), count.into());
    }
    data
}

fn batches(batches: &[StateBatch]) -> Value {
    batches
        .iter()
        .map(|batch| {
            json!({
                "firstOffset": batch.first_offset,
                "lastOffset": batch.last_offset,
                "deliveryState": batch.delivery_state.0,
                "deliveryCount": batch.delivery_count,
            })
        })
        .collect()
}

/// Kafka's text form of a UUID: URL-safe base64 without padding.
fn kafka_uuid(uuid: Uuid) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    // Six bits a digit, from the top; the last digit has two bits and four zeros.
    let mut bits = uuid.as_u128();
    let mut text = String::with_capacity(22);
    for _ in 0..22 {
        let [top, ..] = bits.to_be_bytes();
        text.extend(ALPHABET.get(usize::from(top >> 2)).copied().map(char::from));
        bits <<= 6;
    }
    text
}
