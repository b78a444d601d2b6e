//! Compressed batches. `kafka-protocol` is the other side.

use kafka_protocol::records::Compression;
use sharestate::kafka_log::{KafkaLogErrorKind, LogRecord, ShareRecord};

use crate::batches::*;

#[test]
fn every_codec_round_trips() {
    use Compression::{Gzip, Lz4, None, Snappy, Zstd};
    for compression in [None, Gzip, Snappy, Lz4, Zstd] {
        // Enough that snappy and lz4 need more than one block.
        let many: Vec<_> = (0..5_000).map(tombstone).collect();
        let mut file = foreign_batch(&many, compression);
        let second = file.len() as u64;
        file.extend(foreign_batch(&[tombstone(5_000)], compression));
        let (records, summary) = read(&file).expect("undamaged");
        assert_eq!((summary.batches, summary.records), (2, 5_001), "{compression:?}");
        assert_eq!((summary.first_offset, summary.last_offset), (Some(0), Some(5_000)));
        for (offset, record) in (0..).zip(&records) {
            let expected = LogRecord {
                position: if offset < 5_000 { 0 } else { second },
                offset,
                timestamp: 1_000 + offset,
                record: ShareRecord::Tombstone { key: key(i32::try_from(offset).unwrap()) },
            };
            assert_eq!(record, &expected, "{compression:?}");
        }
    }
}

/// A batch whose compressed payload is replaced.
fn with_payload(codec: u8, payload: &[u8]) -> Vec<u8> {
    let mut batch = foreign_batch(&[tombstone(0)], Compression::None);
    batch.truncate(61);
    batch.extend_from_slice(payload);
    let length = i32::try_from(batch.len() - 12).unwrap();
    forged(&forged(&batch, 8, &length.to_be_bytes()), 22, &[codec])
}

#[test]
fn what_would_inflate_beyond_the_bound_is_refused_unread() {
    let bomb = |codec, payload: &[u8]| kind(&with_payload(codec, payload));
    let gzip = [&[0x1f, 0x8b][..], &[0xff; 20]].concat();
    // One zstd frame of run-length blocks, 128 KiB out of four bytes each.
    let block = ((128_u32 << 10) << 3 | 0b010).to_le_bytes();
    let mut zstd = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x58];
    for _ in 0..2_049 {
        zstd.extend_from_slice(&block[..3]);
        zstd.push(0);
    }
    zstd.extend_from_slice(&[1, 0, 0]);
    // One lz4 frame of 4 MiB blocks.
    let mut lz4 = vec![0x04, 0x22, 0x4d, 0x18, 0x60, 0x70, 0];
    for _ in 0..65 {
        lz4.extend_from_slice(&20_000_u32.to_le_bytes());
        lz4.resize(lz4.len() + 20_000, 0);
    }
    lz4.extend_from_slice(&[0; 4]);
    let snappy = [0xff, 0xff, 0xff, 0xff, 0x0f, 0];
    let xerial = [
        &b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"[..],
        &[0, 0, 0, 6],
        &[0xff, 0xff, 0xff, 0xff, 0x0f, 0],
    ]
    .concat();
    for (codec, payload) in
        [(1, &gzip[..]), (2, &snappy[..]), (2, &xerial[..]), (3, &lz4[..]), (4, &zstd[..])]
    {
        let kind = bomb(codec, payload);
        assert!(
            matches!(kind, KafkaLogErrorKind::InflatedSize { found, bound, .. } if found > bound),
            "codec {codec}: {kind}"
        );
    }
}

#[test]
fn broken_compression_is_an_error() {
    use Compression::{Gzip, Lz4, Snappy, Zstd};
    for (codec, compression) in [(1, Gzip), (2, Snappy), (3, Lz4), (4, Zstd)] {
        let batch = foreign_batch(&[tombstone(0)], compression);
        assert_eq!(batch[22], codec);
        let payload = &batch[61..];
        assert!(read(&with_payload(codec, payload)).is_ok());
        for cut in 0..payload.len() {
            let error = read(&with_payload(codec, &payload[..cut])).expect_err("a cut payload");
            assert_eq!((error.position, error.offset), (0, Some(0)));
        }
        let longer = [payload, &[1]].concat();
        assert!(read(&with_payload(codec, &longer)).is_err(), "{compression:?}");
    }
}

/// A gzip member that inflates to this many zeros.
fn gzip_of_zeros(zeros: usize) -> Vec<u8> {
    use flate2::{Compression, write::GzEncoder};
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    std::io::Write::write_all(&mut encoder, &vec![0; zeros]).unwrap();
    encoder.finish().unwrap()
}

/// Shown by which check refuses it; memory is measured by the fuzz target.
#[test]
fn a_gzip_trailer_that_lies_is_found_within_the_length_that_it_states() {
    let honest = gzip_of_zeros(1 << 20);
    let reason = |payload: &[u8]| match kind(&with_payload(1, payload)) {
        KafkaLogErrorKind::Inflate { codec: "gzip", reason } => reason,
        other => panic!("{other}"),
    };
    let with_trailer = |size: u32| {
        let mut payload = honest.clone();
        let at = payload.len() - 4;
        payload[at..].copy_from_slice(&size.to_le_bytes());
        payload
    };
    for size in [0, 1, 10, (1 << 20) - 1] {
        assert_eq!(&*reason(&with_trailer(size)), "it is longer than its trailer states");
    }
    assert!(reason(&with_trailer((1 << 20) + 1)).contains("corrupt gzip"));
    assert!(reason(&with_trailer(15 << 20)).starts_with("it cannot come to"));
    let two = [honest.clone(), gzip_of_zeros(1 << 20)].concat();
    assert!(reason(&two).ends_with("bytes are left behind it"), "{}", reason(&two));
}
