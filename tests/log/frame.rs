//! The frame decoder, over any bytes.

use std::path::PathBuf;
use std::sync::Arc;

use crate::support::*;
use proptest::prelude::*;
use sharestate::fsio::Fs;
use sharestate::fsio::sim::SimFs;
use sharestate::log::frame::{FrameError, FrameKind, decode_frame};
use sharestate::log::{LogError, Scope, SegmentId, TailVerdict, segment_file_name};

const SEGMENT: SegmentId = SegmentId {
    uuid: uuid::Uuid::from_u128(0x5e55_1011_0000_4000_8000_0000_0000_0001),
    first_lsn: 1,
};

fn path() -> PathBuf {
    dir().join(segment_file_name(1))
}

/// A segment with three frames, and where they start.
fn sample() -> (SimFs, Vec<u8>, Vec<(usize, usize)>) {
    let sim = SimFs::new(0);
    let fs: Arc<dyn Fs> = Arc::new(sim.clone());
    let mut log = new_log(&fs, false);
    for entries in [3, 1, 4] {
        append_synced(&mut log, entries).expect("written");
    }
    let bytes = sim.content(&path()).expect("the segment");
    let frames = frames(&bytes);
    (sim, bytes, frames)
}

fn decode(bytes: &[u8], at: usize) -> Result<FrameKind, FrameError> {
    decode_frame(&SEGMENT, &bytes[at..], at as u64).map(|frame| frame.fields().kind)
}

#[test]
fn odd_lengths_are_refused_before_anything_is_read_or_allocated() {
    let (sim, good, frames) = sample();
    let room = |at: usize| (good.len() - at - 56) as u32;
    let mut cases = 0;
    for (index, (at, _)) in frames.iter().enumerate() {
        let max = room(*at);
        for length in [0, 1, max - 1, max, max + 1, (1 << 31) - 1, 1 << 31, u32::MAX] {
            for resealed in [false, true] {
                let mut bytes = good.clone();
                bytes[at + 12..at + 16].copy_from_slice(&length.to_le_bytes());
                if resealed {
                    reseal(&mut bytes, 1, *at);
                }
                let error = decode(&bytes, *at).expect_err("an odd length");
                match (resealed, length) {
                    (false, _) => {
                        let fits = length <= max;
                        assert!(
                            matches!(error, FrameError::HeaderChecksum { plausible, .. }
                                if plausible == fits),
                            "{error}"
                        );
                    }
                    (true, 0) => assert!(matches!(error, FrameError::Field { .. }), "{error}"),
                    (true, length) if length > max => {
                        assert!(matches!(error, FrameError::Length { .. }), "{error}");
                    }
                    _ => assert!(
                        matches!(error, FrameError::Entries { .. } | FrameError::Padding),
                        "{error}"
                    ),
                }
                sim.set_content(&path(), &bytes);
                let fs: Arc<dyn Fs> = Arc::new(sim.clone());
                match read(&fs, 0, Scope::Tail) {
                    Err(LogError::Corrupt { .. }) => {}
                    Err(other) => panic!("{other}"),
                    Ok((_, scanned)) => {
                        assert!(!resealed && index == 2, "length {length} in frame {index}");
                        assert!(matches!(scanned.report().verdict, TailVerdict::Torn(_)));
                    }
                }
                cases += 1;
            }
        }
    }
    println!("{cases} lengths");
}

#[test]
fn whatever_a_newer_version_writes_is_called_newer_and_not_corrupt() {
    let (sim, good, frames) = sample();
    let (at, _) = frames[2];
    let frame_fields = [(8, 4), (8, 200), (9, 1), (10, 2), (11, 0x80), (52, 1)];
    let entry_flags = (56 + 3, 1);
    for (offset, value) in frame_fields.into_iter().chain([entry_flags]) {
        let mut bytes = good.clone();
        bytes[at + offset] = value;
        reseal(&mut bytes, 1, at);
        sim.set_content(&path(), &bytes);
        let fs: Arc<dyn Fs> = Arc::new(sim.clone());
        let error = read(&fs, 0, Scope::Tail).expect_err("newer");
        let place = at + if offset < 56 { 0 } else { 56 };
        assert!(
            matches!(error, LogError::Newer { offset, .. } if offset == place as u64),
            "byte {offset} = {value}: {error}"
        );
    }
    let mut bytes = good;
    bytes[8] = 2;
    let checksum = crc32fast::hash(&bytes[..60]);
    bytes[60..64].copy_from_slice(&checksum.to_le_bytes());
    sim.set_content(&path(), &bytes);
    let fs: Arc<dyn Fs> = Arc::new(sim.clone());
    let error = read(&fs, 0, Scope::Tail).expect_err("newer");
    assert!(matches!(error, LogError::Newer { found: 2, supported: 1, .. }), "{error}");
}

#[test]
fn a_header_that_no_writer_makes_is_refused_although_its_checksum_matches() {
    let (_, good, frames) = sample();
    let (at, _) = frames[1];
    // Kind 0, a mark with entries, no entries, two entries, LSN 0, a durable mark from the future.
    for (offset, value) in [(8, 0), (8, 2), (24, 0), (24, 2), (16, 0), (32, 9)] {
        let mut bytes = good.clone();
        bytes[at + offset] = value;
        reseal(&mut bytes, 1, at);
        let error = decode(&bytes, at).expect_err("impossible");
        assert!(
            matches!(error, FrameError::Field { .. } | FrameError::Entries { .. }),
            "byte {offset} = {value}: {error}"
        );
        assert!(!matches!(error, FrameError::Newer { .. }));
    }
}

#[test]
fn a_frame_whose_lsns_are_zero_or_past_the_last_one_is_refused_for_them() {
    let (_, good, frames) = sample();
    let (at, _) = frames[1];
    for first_lsn in [0, u64::MAX] {
        let mut bytes = good.clone();
        bytes[at + 16..at + 24].copy_from_slice(&first_lsn.to_le_bytes());
        reseal(&mut bytes, 1, at);
        let error = decode(&bytes, at).expect_err("impossible");
        assert!(
            matches!(error, FrameError::Field { field: "first LSN", found } if found == first_lsn),
            "{error}"
        );
    }
}

#[test]
fn a_frame_verifies_at_its_place_only() {
    let (_, good, frames) = sample();
    for (at, end) in frames {
        assert!(decode(&good, at).is_ok());
        let frame = &good[at..end];
        for offset in (64..2048u64).step_by(8).filter(|offset| *offset != at as u64) {
            assert!(decode_frame(&SEGMENT, frame, offset).is_err());
        }
        let other_segment = SegmentId { first_lsn: 2, ..SEGMENT };
        assert!(decode_frame(&other_segment, frame, at as u64).is_err());
        let other_store = SegmentId { uuid: uuid::Uuid::from_u128(1), ..SEGMENT };
        assert!(decode_frame(&other_store, frame, at as u64).is_err());
    }
}

#[test]
fn zeros_never_verify() {
    for length in 0..256 {
        assert!(decode_frame(&SEGMENT, &vec![0; length], 64).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(2000)
    })]

    #[test]
    fn any_bytes_are_refused_without_a_panic(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..300),
        magic in any::<bool>(),
        offset in any::<u64>(),
    ) {
        if magic && bytes.len() >= 4 {
            bytes[..4].copy_from_slice(b"SFRM");
        }
        prop_assert!(decode_frame(&SEGMENT, &bytes, offset).is_err());
    }

    #[test]
    fn any_header_and_payload_under_right_checksums_decode_or_fail_without_a_panic(
        mut bytes in proptest::collection::vec(any::<u8>(), 56..300),
        kind in 0u8..5,
        count in 0u32..4,
        body in 0usize..300,
    ) {
        bytes[..4].copy_from_slice(b"SFRM");
        let payload = bytes.len() - 56;
        bytes[8..12].copy_from_slice(&[kind, 0, 0, 0]);
        bytes[12..16].copy_from_slice(&(payload as u32).to_le_bytes());
        bytes[24..28].copy_from_slice(&count.to_le_bytes());
        bytes[32..40].fill(0);
        bytes[52..56].fill(0);
        if payload >= 8 {
            bytes[60..64].copy_from_slice(&(body as u32).to_le_bytes());
        }
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        let mut placed = vec![0; 64];
        placed.extend_from_slice(&bytes);
        reseal(&mut placed, 1, 64);
        if let Ok(frame) = decode_frame(&SEGMENT, &placed[64..], 64) {
            prop_assert_eq!(frame.entries().count() as u32, count);
            let bytes: usize = frame.entries().map(|entry| entry.body.len() + 8).sum();
            prop_assert_eq!(bytes, payload);
        }
    }
}
