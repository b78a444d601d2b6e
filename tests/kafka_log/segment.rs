//! Segment files: batches and damage. `kafka-protocol` is the other side.

use bytes::Bytes;
use kafka_protocol::records::{Compression, Record, RecordBatchDecoder};
use sharestate::kafka_log::{
    KafkaLogErrorKind, SegmentSummary, ShareRecord, read_segment, write_segment,
};
use sharestate::model::{DeliveryState, Partition, StateBatch};

use crate::batches::*;

/// Header fields that the CRC does not cover, by their place in the batch.
const BASE_OFFSET: std::ops::Range<usize> = 0..8;
const PARTITION_LEADER_EPOCH: std::ops::Range<usize> = 12..16;

fn partition(start_offset: i64) -> Partition {
    let batch = StateBatch {
        first_offset: start_offset,
        last_offset: start_offset + 9,
        delivery_state: DeliveryState::ACKNOWLEDGED,
        delivery_count: 1,
    };
    let mut partition = Partition::new_initialized(1, start_offset, 77, None, 0);
    partition.batches.push(batch);
    partition
}

/// One batch of snapshot records, written by us.
fn own_batch(first_offset: i64, count: i32) -> Vec<u8> {
    let states: Vec<_> = (0..count).map(|index| (key(index), partition(10))).collect();
    let records = states.iter().map(|(key, state)| (key.clone(), state));
    write_segment(records, first_offset, 1_700_000_000_000).expect("nothing is pending")
}

#[test]
fn an_empty_file_is_an_empty_log() {
    assert_eq!(read(&[]), Ok((Vec::new(), SegmentSummary::default())));
}

#[test]
fn kafka_protocol_reads_what_we_write() {
    let file = own_batch(40, 3);
    let (records, _) = read(&file).expect("undamaged");
    let sets = RecordBatchDecoder::decode_all(&mut Bytes::from(file)).expect("decodable");
    let foreign: Vec<_> = sets.into_iter().flat_map(|set| set.records).collect();
    assert_eq!(foreign.len(), 3);
    for (ours, theirs) in records.iter().zip(&foreign) {
        assert_eq!((ours.offset, ours.timestamp), (theirs.offset, theirs.timestamp));
        assert_eq!(Some(ours.record.encode_key().as_slice()), theirs.key.as_deref());
        assert_eq!(ours.record.encode_value().as_deref(), theirs.value.as_deref());
        assert_eq!((theirs.producer_id, theirs.producer_epoch), (-1, -1));
    }
}

#[test]
fn a_cut_is_an_error_except_between_batches() {
    // An offset whose first byte is not zero, so that no cut looks like a preallocated rest.
    let base = 0x0101_0101_0101_0101;
    let batches = [own_batch(base, 2), own_batch(base + 2, 1), own_batch(base + 3, 1)];
    let edges = [0, batches[0].len(), batches[0].len() + batches[1].len()];
    let file = batches.concat();
    let whole = read(&file).expect("undamaged").0;
    for cut in 0..file.len() {
        let answer = read(&file[..cut]);
        if edges.contains(&cut) {
            let (records, summary) = answer.expect("a shorter log");
            assert!(whole.starts_with(&records));
            assert_eq!(summary.trailing_zero_bytes, 0);
            continue;
        }
        let error = answer.expect_err("a batch is cut");
        let start = edges.into_iter().rfind(|edge| *edge < cut).expect("an edge");
        assert_eq!(error.position, start as u64, "cut at {cut}");
        let found = (cut - start) as u64;
        assert!(
            matches!(error.kind, KafkaLogErrorKind::Truncated { found: f, .. } if f == found),
            "cut at {cut}: {error}"
        );
    }
}

#[test]
fn a_cut_within_leading_zeros_is_a_preallocated_rest() {
    let file = own_batch(0, 1);
    let zeros = file.iter().position(|byte| *byte != 0).expect("a byte");
    assert_eq!(zeros, 11, "offset 0, and a length below 256");
    for cut in 0..file.len() {
        match read(&file[..cut]) {
            Ok((records, summary)) => {
                assert!(cut <= zeros && records.is_empty());
                assert_eq!(summary.trailing_zero_bytes, cut as u64);
            }
            Err(error) => assert!(cut > zeros, "{error}"),
        }
    }
}

#[test]
fn every_bit_flip_is_an_error_but_for_the_partition_leader_epoch() {
    let batches = [own_batch(0, 1), own_batch(1, 2)];
    let mut file = batches.concat();
    file.extend([0; 20]);
    let whole = read(&file).expect("undamaged");
    assert_eq!(whole.1.trailing_zero_bytes, 20);
    for bit in 0..file.len() * 8 {
        let at = bit / 8;
        let mut damaged = file.clone();
        damaged[at] ^= 1 << (bit % 8);
        let in_batch = if at < batches[0].len() { at } else { at - batches[0].len() };
        if PARTITION_LEADER_EPOCH.contains(&in_batch) {
            assert_eq!(read(&damaged).as_ref(), Ok(&whole), "bit {bit}: the field is not used");
            continue;
        }
        let error = read(&damaged).expect_err("damage");
        assert_eq!(&*error.file, FILE);
        // A wrong base offset of the first batch shows at the second, the rest where it is.
        let second = batches[0].len() as u64;
        let shows = if at < batches[0].len() && !BASE_OFFSET.contains(&at) { 0 } else { second };
        let in_zeros = at >= batches.concat().len();
        let shows = if in_zeros { batches.concat().len() as u64 } else { shows };
        let negative = at == 0 && bit == 7;
        assert_eq!(error.position, if negative { 0 } else { shows }, "bit {bit}: {error}");
    }
}

#[test]
fn the_base_offset_of_an_only_batch_has_no_witness() {
    let file = own_batch(0, 1);
    let whole = read(&file).expect("undamaged").0;
    for bit in 0..file.len() * 8 {
        let mut damaged = file.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        match read(&damaged) {
            Ok((records, _)) if PARTITION_LEADER_EPOCH.contains(&(bit / 8)) => {
                assert_eq!(records, whole);
            }
            Ok((records, summary)) => {
                assert!(BASE_OFFSET.contains(&(bit / 8)) && bit != 7, "bit {bit}");
                assert_eq!(records[0].record, whole[0].record);
                assert_ne!(summary.first_offset, Some(0), "the file's name tells");
            }
            Err(error) => assert_eq!(error.position, 0),
        }
    }
}

#[test]
fn only_zeros_may_follow_the_last_batch() {
    let batch = own_batch(7, 1);
    for zeros in [1, 11, 12, 60, 61, 4096] {
        let mut file = batch.clone();
        file.resize(batch.len() + zeros, 0);
        let (records, summary) = read(&file).expect("preallocated");
        assert_eq!((records.len(), summary.trailing_zero_bytes), (1, zeros as u64));
        file.push(1);
        let error = read(&file).expect_err("garbage");
        assert_eq!(error.position, batch.len() as u64);
    }
    let zeros_only = read(&[0; 512]).expect("preallocated").1;
    assert_eq!((zeros_only.batches, zeros_only.trailing_zero_bytes), (0, 512));
    assert_eq!(zeros_only.first_offset, None);
}

#[test]
fn offsets_are_dense() {
    let file = |second: i64| [own_batch(5, 2), own_batch(second, 1)].concat();
    assert!(read(&file(7)).is_ok());
    for found in [0, 5, 6, 8, 1 << 40] {
        let error = read(&file(found)).expect_err("not the next offset");
        assert_eq!(error.kind, KafkaLogErrorKind::Offset { expected: 7, found });
        assert_eq!(error.position, own_batch(5, 2).len() as u64);
        assert_eq!(error.offset, Some(found));
        assert_eq!(
            error.to_string(),
            format!(
                "{FILE}: position {}, offset {found}: found offset {found}, 7 is expected",
                error.position
            )
        );
    }
}

#[test]
fn control_batches_are_counted_and_skipped() {
    let marker = Record { control: true, ..raw(1, Some(vec![0, 0, 0, 1]), Some(vec![0; 6])) };
    let file = [
        foreign_batch(&[tombstone(0)], Compression::None),
        foreign_batch(&[marker], Compression::None),
        foreign_batch(&[tombstone(2)], Compression::None),
    ]
    .concat();
    let (records, summary) = read(&file).expect("undamaged");
    assert_eq!(records.iter().map(|record| record.offset).collect::<Vec<_>>(), [0, 2]);
    assert_eq!((summary.batches, summary.records, summary.control_batches), (3, 2, 1));
}

#[test]
fn unknown_records_are_visited_and_counted() {
    let file = foreign_batch(&[tombstone(0), raw(1, Some(vec![0, 9, 1]), None)], Compression::Lz4);
    let (records, summary) = read(&file).expect("undamaged");
    assert_eq!(records[1].record, ShareRecord::Unknown { key_type: 9 });
    assert_eq!((summary.records, summary.unknown_records), (2, 1));
}

#[test]
fn headers_and_log_append_time_are_understood() {
    let mut record = tombstone(0);
    record.headers.insert("name".into(), Some(Bytes::from_static(b"value")));
    record.headers.insert("empty".into(), None);
    let batch = foreign_batch(&[record], Compression::None);
    assert_eq!(read(&batch).expect("undamaged").0[0].timestamp, 1_000);

    // Under log append time every record has the batch's maximum timestamp.
    let appended = forged(&forged(&batch, 22, &[8]), 35, &9_999_i64.to_be_bytes());
    assert_eq!(read(&appended).expect("undamaged").0[0].timestamp, 9_999);
}

#[test]
fn a_record_at_fault_is_named_by_its_offset() {
    let file = foreign_batch(&[tombstone(0), raw(1, None, None)], Compression::Gzip);
    let error = read(&file).expect_err("a missing key");
    assert_eq!((error.position, error.offset), (0, Some(1)));
    assert_eq!(error.kind, KafkaLogErrorKind::MissingKey);
}

#[test]
fn the_visitors_error_ends_the_walk() {
    let file = own_batch(0, 3);
    let answer = kind(&file[..20]);
    let mut visits = 0;
    let error = read_segment(FILE, &file, &mut |record| {
        visits += 1;
        if record.offset == 1 { Err(read(&file[..20]).expect_err("cut")) } else { Ok(()) }
    });
    assert_eq!((error.expect_err("as told").kind, visits), (answer, 2));
}

#[test]
fn headers_with_a_right_crc_are_still_judged() {
    let batch = foreign_batch(&[tombstone(0), tombstone(1)], Compression::None);
    assert_eq!(kind(&forged(&batch, 16, &[1])), KafkaLogErrorKind::Magic { found: 1 });
    assert_eq!(kind(&forged(&batch, 22, &[5])), KafkaLogErrorKind::Codec { found: 5 });

    let delta = |delta: i32| forged(&batch, 23, &delta.to_be_bytes());
    let below = KafkaLogErrorKind::OffsetRange { base: 0, last_offset_delta: -1 };
    assert_eq!(kind(&delta(-1)), below);
    assert_eq!(kind(&delta(0)), KafkaLogErrorKind::RecordCount { expected: 1, found: 2 });
    let count = |count: i32| forged(&batch, 57, &count.to_be_bytes());
    for found in [-1, 0, 1, 3, i32::MAX] {
        let expected = KafkaLogErrorKind::RecordCount { expected: 2, found };
        assert_eq!(kind(&count(found)), expected);
    }
    // Both agree, but there are not as many records.
    let both = forged(&delta(i32::MAX - 1), 57, &i32::MAX.to_be_bytes());
    let most = i64::try_from((batch.len() - 61) / 7).unwrap();
    assert_eq!(kind(&both), KafkaLogErrorKind::RecordCount { expected: most, found: i32::MAX });
    let three = forged(&delta(2), 57, &3_i32.to_be_bytes());
    assert_eq!(read(&three).expect_err("no third record").offset, Some(2));
    let one = forged(&delta(0), 57, &1_i32.to_be_bytes());
    assert!(matches!(kind(&one), KafkaLogErrorKind::LeftOver { .. }));

    let base = |base: i64| forged(&batch, 0, &base.to_be_bytes());
    for base_offset in [-1, i64::MIN, i64::MAX, i64::MAX - 1] {
        let kind = kind(&base(base_offset));
        assert!(matches!(kind, KafkaLogErrorKind::OffsetRange { base, .. } if base == base_offset));
    }
    let length = |length: i32| kind(&forged(&batch, 8, &length.to_be_bytes()));
    for found in [i32::MIN, -1, 0, 48] {
        assert_eq!(length(found), KafkaLogErrorKind::BatchLength { minimum: 49, found });
    }
    let expected = i32::MAX as u64 + 12;
    let found = batch.len() as u64;
    assert_eq!(length(i32::MAX), KafkaLogErrorKind::Truncated { expected, found });
}

#[test]
fn records_with_a_right_crc_are_still_judged() {
    let batch = foreign_batch(&[tombstone(0)], Compression::None);
    // From 61 on: length, attributes, timestamp delta, offset delta, key length.
    assert_eq!(batch[62..65], [0, 0, 0]);
    let offset = kind(&forged(&batch, 64, &[2]));
    assert_eq!(offset, KafkaLogErrorKind::Offset { expected: 0, found: 1 });
    assert!(matches!(kind(&forged(&batch, 61, &[1])), KafkaLogErrorKind::Length { found: -1, .. }));
    assert!(matches!(kind(&forged(&batch, 61, &[0x7e])), KafkaLogErrorKind::Short { .. }));
    assert!(matches!(kind(&forged(&batch, 65, &[0x7e])), KafkaLogErrorKind::Short { .. }));
    assert!(matches!(kind(&forged(&batch, 65, &[3])), KafkaLogErrorKind::Length { found: -2, .. }));
    // The last byte is the header count.
    let headers = kind(&forged(&batch, batch.len() - 1, &[0x7e]));
    assert!(matches!(headers, KafkaLogErrorKind::Short { .. }), "{headers:?}");

    let far = forged(&forged(&batch, 27, &i64::MAX.to_be_bytes()), 63, &[2]);
    assert_eq!(kind(&far), KafkaLogErrorKind::Timestamp { base: i64::MAX, delta: 1 });
}
