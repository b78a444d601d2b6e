//! Damaged and forged segments: an answer, never a panic.

use bytes::{Bytes, BytesMut};
use kafka_protocol::records::{
    Compression, Record, RecordBatchEncoder, RecordEncodeOptions, TimestampType,
};
use proptest::prelude::*;
use sharestate::kafka_log::{
    LogRecord, Replay, ShareRecord, ShareSnapshot, ShareUpdate, formatter_json, read_segment,
};
use sharestate::model::{DeliveryState, SharePartitionKey, StateBatch};
use uuid::Uuid;

fn records() -> Vec<ShareRecord> {
    let key = SharePartitionKey::new("fuzz", Uuid::from_u128(3), 1).expect("valid");
    let batch = |first_offset| StateBatch {
        first_offset,
        last_offset: first_offset + 1,
        delivery_state: DeliveryState::ACKNOWLEDGED,
        delivery_count: 1,
    };
    let snapshot = ShareSnapshot {
        snapshot_epoch: 0,
        state_epoch: 1,
        leader_epoch: 2,
        start_offset: 3,
        delivery_complete_count: 4,
        create_timestamp: 5,
        write_timestamp: 6,
        state_batches: (0..4).map(|index| batch(index * 4)).collect(),
    };
    let update = ShareUpdate {
        snapshot_epoch: 0,
        leader_epoch: 2,
        start_offset: 5,
        delivery_complete_count: -1,
        state_batches: vec![batch(20)],
    };
    vec![
        ShareRecord::Snapshot { key: key.clone(), value: snapshot },
        ShareRecord::Update { key: key.clone(), value: update },
        ShareRecord::Tombstone { key },
    ]
}

/// One batch.
fn segment(compression: Compression) -> Vec<u8> {
    let raw = (0_i32..).zip(records()).map(|(offset, record)| Record {
        transactional: false,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: 0,
        producer_id: -1,
        producer_epoch: -1,
        timestamp_type: TimestampType::Creation,
        offset: offset.into(),
        sequence: offset,
        timestamp: 9,
        key: Some(Bytes::from(record.encode_key())),
        value: record.encode_value().map(Bytes::from),
        headers: Default::default(),
    });
    let raw: Vec<_> = raw.collect();
    let mut out = BytesMut::new();
    let options = RecordEncodeOptions { version: 2, compression };
    RecordBatchEncoder::encode(&mut out, &raw, &options).expect("encodable");
    out.to_vec()
}

/// Makes length and CRC of a file of one batch right again, if it still has a header.
fn forge(file: &mut [u8]) {
    let Some(length) = file.len().checked_sub(12).filter(|length| *length >= 49) else { return };
    file[8..12].copy_from_slice(&i32::try_from(length).expect("small").to_be_bytes());
    let crc = file[21..].iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg())
        })
    });
    file[17..21].copy_from_slice(&(!crc).to_be_bytes());
}

#[derive(Debug, Clone)]
enum Mutation {
    Set(prop::sample::Index, u8),
    Flip(prop::sample::Index, u8),
    Insert(prop::sample::Index, Vec<u8>),
    Remove(prop::sample::Index, usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let index = any::<prop::sample::Index>;
    let interesting = prop::sample::select(vec![0, 1, 2, 0x7f, 0x80, 0xfe, 0xff]);
    prop_oneof![
        (index(), interesting).prop_map(|(at, byte)| Mutation::Set(at, byte)),
        (index(), 0..8_u8).prop_map(|(at, bit)| Mutation::Flip(at, bit)),
        (index(), prop::collection::vec(any::<u8>(), 1..12))
            .prop_map(|(at, bytes)| Mutation::Insert(at, bytes)),
        (index(), 1..12_usize).prop_map(|(at, size)| Mutation::Remove(at, size)),
    ]
}

fn mutate(file: &mut Vec<u8>, mutations: Vec<Mutation>) {
    for mutation in mutations {
        if file.is_empty() {
            return;
        }
        let size = file.len();
        match mutation {
            Mutation::Set(at, byte) => file[at.index(size)] = byte,
            Mutation::Flip(at, bit) => file[at.index(size)] ^= 1 << bit,
            Mutation::Insert(at, bytes) => {
                let at = at.index(size);
                file.splice(at..at, bytes);
            }
            Mutation::Remove(at, count) => {
                let at = at.index(size);
                file.drain(at..size.min(at + count));
            }
        }
    }
}

/// Reads and replays; whatever is accepted must print and encode.
fn exercise(file: &[u8]) -> Option<Vec<LogRecord>> {
    let mut replay = Replay::new();
    let mut seen = Vec::new();
    let answer = read_segment("fuzz", file, &mut |record| {
        let known = !matches!(record.record, ShareRecord::Unknown { .. });
        assert_eq!(formatter_json(&record.record).is_some(), known);
        if let ShareRecord::Snapshot { .. } | ShareRecord::Update { .. } = record.record {
            let (key, value) = (record.record.encode_key(), record.record.encode_value());
            let again = ShareRecord::decode(Some(&key), value.as_deref());
            assert_eq!(again.as_ref(), Ok(&record.record));
        }
        seen.push(record.clone());
        replay.apply("fuzz", &record)
    });
    for state in replay.finish().into_values() {
        assert!(state.batches.iter().all(StateBatch::is_well_formed));
    }
    answer.ok().map(|_| seen)
}

fn codec() -> impl Strategy<Value = Compression> {
    use Compression::{Gzip, Lz4, None, Snappy, Zstd};
    prop::sample::select(vec![None, None, Gzip, Snappy, Lz4, Zstd])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn forged_batches_never_panic(
        codec in codec(),
        mutations in prop::collection::vec(mutation(), 1..6),
    ) {
        let mut file = segment(codec);
        mutate(&mut file, mutations);
        forge(&mut file);
        exercise(&file);
    }

    #[test]
    fn forged_records_never_panic(mutations in prop::collection::vec(mutation(), 1..4)) {
        // Only what follows the header is changed, so that every case gets as far as the records.
        let mut file = segment(Compression::None);
        let mut payload = file.split_off(61);
        mutate(&mut payload, mutations);
        file.append(&mut payload);
        forge(&mut file);
        exercise(&file);
    }

    #[test]
    fn damage_without_forgery_changes_no_record(
        codec in codec(),
        mutations in prop::collection::vec(mutation(), 1..4),
    ) {
        let intact = segment(codec);
        let mut file = intact.clone();
        mutate(&mut file, mutations);
        // The base offset of an only batch has no witness: look at the others.
        if file.get(..8) == intact.get(..8) && let Some(seen) = exercise(&file) {
            prop_assert!(seen.is_empty() || seen.iter().map(|seen| &seen.record).eq(&records()));
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(file in prop::collection::vec(any::<u8>(), 0..300)) {
        exercise(&file);
    }
}
