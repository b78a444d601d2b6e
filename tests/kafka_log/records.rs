//! Keys and values of Kafka's share-state records.

use sharestate::kafka_log::{KafkaLogErrorKind, ShareRecord, ShareSnapshot, ShareUpdate};
use sharestate::model::{DeliveryState, SharePartitionKey, StateBatch};
use uuid::Uuid;

fn key() -> SharePartitionKey {
    SharePartitionKey::new("gs:1", Uuid::from_u128(0x0123_4567_89ab_cdef), 3).expect("valid")
}

fn batch(first_offset: i64, last_offset: i64, state: i8, delivery_count: i16) -> StateBatch {
    let delivery_state = DeliveryState(state);
    StateBatch { first_offset, last_offset, delivery_state, delivery_count }
}

fn snapshot(count: i32) -> ShareRecord {
    ShareRecord::Snapshot {
        key: key(),
        value: ShareSnapshot {
            snapshot_epoch: 1,
            state_epoch: 2,
            leader_epoch: 3,
            start_offset: 4,
            delivery_complete_count: count,
            create_timestamp: 5,
            write_timestamp: 6,
            state_batches: vec![batch(7, 8, 2, 9), batch(10, 10, 0, 1)],
        },
    }
}

fn update(count: i32) -> ShareRecord {
    ShareRecord::Update {
        key: key(),
        value: ShareUpdate {
            snapshot_epoch: 1,
            leader_epoch: -1,
            start_offset: -1,
            delivery_complete_count: count,
            state_batches: vec![batch(7, 8, 2, 9)],
        },
    }
}

fn decode(key: &[u8], value: &[u8]) -> Result<ShareRecord, KafkaLogErrorKind> {
    ShareRecord::decode(Some(key), Some(value))
}

#[test]
fn records_round_trip() {
    let tombstone = ShareRecord::Tombstone { key: key() };
    for record in [snapshot(-1), snapshot(11), update(-1), update(0), tombstone] {
        let (key, value) = (record.encode_key(), record.encode_value());
        assert_eq!(ShareRecord::decode(Some(&key), value.as_deref()), Ok(record));
    }
}

#[test]
fn bytes_are_those_of_the_schema() {
    let key = [
        &[0, 1][..],               // type: update
        &[0, 4],                   // length of the group id
        b"gs:1",                   //
        &[0, 0, 0, 0, 0, 0, 0, 0], // topic id
        &[1, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef],
        &[0, 0, 0, 3], // partition
    ]
    .concat();
    assert_eq!(update(11).encode_key(), key);
    let value = [
        &[0, 0][..],               // version
        &[0, 0, 0, 1],             // snapshot epoch
        &[0xff; 4],                // leader epoch
        &[0xff; 8],                // start offset
        &[2],                      // one state batch
        &[0, 0, 0, 0, 0, 0, 0, 7], // first offset
        &[0, 0, 0, 0, 0, 0, 0, 8], // last offset
        &[2],                      // delivery state
        &[0, 9],                   // delivery count
        &[0],                      // no tagged fields in the batch
        &[1, 0, 4, 0, 0, 0, 11],   // one tagged field: tag 0, 4 bytes, count
    ]
    .concat();
    assert_eq!(update(11).encode_value(), Some(value));
}

#[test]
fn unknown_tagged_fields_are_skipped_and_key_types_counted() {
    let record = update(11);
    let key = record.encode_key();
    // In the batch: tag 5 with two bytes. In the value: tags 0 and 300, the latter empty.
    let mut value = record.encode_value().expect("a value");
    value.truncate(value.len() - 8);
    value.extend([1, 5, 2, 0xaa, 0xbb]);
    value.extend([2, 0, 4, 0, 0, 0, 11, 0xac, 0x02, 0]);
    assert_eq!(decode(&key, &value), Ok(record));

    let unknown = [0x7f, 0xff, 1, 2, 3];
    assert_eq!(decode(&unknown, &[9]), Ok(ShareRecord::Unknown { key_type: 32767 }));
}

#[test]
fn damage_is_named() {
    let record = snapshot(11);
    let (key, value) = (record.encode_key(), record.encode_value().expect("a value"));
    assert_eq!(ShareRecord::decode(None, Some(&value)), Err(KafkaLogErrorKind::MissingKey));
    let missing = ShareRecord::decode(Some(&update(0).encode_key()), None);
    assert_eq!(missing, Err(KafkaLogErrorKind::MissingValue));

    // Every shorter key and value, and every longer one.
    for cut in 0..key.len() {
        assert!(decode(&key[..cut], &value).is_err(), "key cut at {cut}");
    }
    for cut in 0..value.len() {
        assert!(decode(&key, &value[..cut]).is_err(), "value cut at {cut}");
    }
    let longer = |bytes: &[u8]| [bytes, &[0]].concat();
    for answer in [decode(&longer(&key), &value), decode(&key, &longer(&value))] {
        assert!(matches!(answer, Err(KafkaLogErrorKind::LeftOver { found: 1, .. })), "{answer:?}");
    }

    let mut newer = value.clone();
    newer[1] = 1;
    let error = decode(&key, &newer).expect_err("a newer version");
    assert_eq!(
        error,
        KafkaLogErrorKind::UnknownVersion { message: "ShareSnapshotValue", found: 1 }
    );
    assert!(error.to_string().starts_with("unknown record version 1"));
}

#[test]
fn lengths_are_judged_before_anything_is_allocated() {
    let (key, value) = (update(11).encode_key(), update(11).encode_value().expect("a value"));
    // The array length stands after version, two epochs and the offset.
    let with_count = |count: &[u8]| [&value[..18], count, &value[19..]].concat();
    let huge = decode(&key, &with_count(&[0xff, 0xff, 0xff, 0xff, 0x0f]));
    assert!(matches!(huge, Err(KafkaLogErrorKind::Short { field: "state batches", .. })));
    let null = decode(&key, &with_count(&[0]));
    assert_eq!(null, Err(KafkaLogErrorKind::Length { field: "state batches", found: -1 }));

    let group_length = |length: [u8; 2]| [&key[..2], &length, &key[4..]].concat();
    let short = decode(&group_length([0x7f, 0xff]), &value);
    assert!(matches!(short, Err(KafkaLogErrorKind::Short { field: "group id", .. })));
    let null = decode(&group_length([0xff, 0xff]), &value);
    assert_eq!(null, Err(KafkaLogErrorKind::Length { field: "group id", found: -1 }));

    let tag = |bytes: &[u8]| [&value[..value.len() - 7], bytes].concat();
    let short = decode(&key, &tag(&[1, 9, 0xff, 0xff, 0xff, 0xff, 0x0f]));
    assert!(matches!(short, Err(KafkaLogErrorKind::Short { field: "tagged field", .. })));
    let size = decode(&key, &tag(&[1, 0, 2, 0, 0]));
    assert!(matches!(size, Err(KafkaLogErrorKind::TagSize { expected: 4, found: 2, .. })));
}

#[test]
fn keys_that_name_no_share_partition_are_errors() {
    let encoded = snapshot(0).encode_key();
    let value = snapshot(0).encode_value();
    let mut bad_text = encoded.clone();
    bad_text[4] = 0xff;
    let mut nil_topic = encoded.clone();
    nil_topic[8..24].fill(0);
    let mut negative = encoded.clone();
    negative[24] = 0x80;
    let empty_group = [&encoded[..2], &[0, 0], &encoded[8..]].concat();
    for bytes in [bad_text, nil_topic, negative, empty_group] {
        let answer = ShareRecord::decode(Some(&bytes), value.as_deref());
        assert!(
            matches!(answer, Err(KafkaLogErrorKind::Utf8 { .. } | KafkaLogErrorKind::Key(_))),
            "{answer:?}"
        );
    }
}
