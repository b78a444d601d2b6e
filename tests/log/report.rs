//! What a refusal says of the place: what was expected there, what was found, and what follows.

use std::sync::Arc;

use crate::support::*;
use sharestate::fsio::Fs;
use sharestate::fsio::sim::SimFs;
use sharestate::log::{LogError, Lsn, Scope};

/// Three segments, each of several frames.
fn three_segments() -> (SimFs, Arc<dyn Fs>, Vec<Lsn>) {
    let (sim, fs, mut log) = start(false);
    while log.segments().list().len() < 3 {
        append_synced(&mut log, 2).expect("written");
    }
    append_synced(&mut log, 2).expect("written");
    let firsts = log.segments().list().iter().map(|segment| segment.first_lsn).collect();
    (sim, fs, firsts)
}

/// Changes a segment; offset, LSN, expected and found of the refusal.
#[track_caller]
fn refusal(
    sim: &SimFs,
    first_lsn: Lsn,
    change: impl FnOnce(&mut Vec<u8>),
) -> (u64, Lsn, String, String) {
    let sim = sim.restart();
    let mut bytes = sim.content(&segment(first_lsn)).expect("the segment");
    change(&mut bytes);
    sim.set_content(&segment(first_lsn), &bytes);
    match read(&shared(&sim), 0, Scope::Tail).expect_err("damaged") {
        LogError::Corrupt { offset, lsn, expected, found, .. } => (offset, lsn, expected, found),
        other => panic!("{other}"),
    }
}

#[test]
fn rot_is_reported_with_the_check_that_failed_and_the_whole_frame_behind_it() {
    let (sim, fs, firsts) = three_segments();
    let frames = frames(&sim.content(&segment(firsts[2])).expect("the segment"));
    let first = frames[0].0;
    let (offset, lsn, expected, found) = refusal(&sim, firsts[2], |bytes| bytes[first + 60] ^= 1);
    assert_eq!((offset, lsn), (first as u64, firsts[2]));
    assert_eq!(expected, format!("the frame of LSN {}", firsts[2]));
    assert!(found.starts_with("payload checksum "), "{found}");
    let used = frames.last().expect("frames").1 - first;
    // The last bytes of a frame may be padding.
    let known = (used - 7..=used)
        .any(|used| found.contains(&format!("; {used} bytes up to the last that is not zero")));
    assert!(known, "{found}");
    assert!(
        found.ends_with(&format!("; a whole frame follows at byte {}", frames[1].0)),
        "{found}"
    );
    drop(fs);
}

#[test]
fn of_several_whole_frames_behind_the_first_is_reported() {
    let (sim, fs, mut log) = start(true);
    append_synced(&mut log, 2).expect("written");
    (0..4).for_each(|_| append(&mut log, 2).expect("written"));
    let mut bytes = sim.content(&segment(1)).expect("the segment");
    let frames = frames(&bytes);
    bytes[frames[1].0 + 60] ^= 1;
    sim.set_content(&segment(1), &bytes);
    // The snapshot vouches for the frame, and those behind it for nothing.
    match read(&fs, 4, Scope::All).expect_err("damaged") {
        LogError::Corrupt { row: "@pay1", found, .. } => {
            let expected = format!("; a whole frame follows at byte {}", frames[2].0);
            assert!(found.ends_with(&expected), "{found}");
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_frame_that_is_gone_is_reported_as_zeros_or_as_missing_bytes() {
    let (sim, fs, firsts) = three_segments();
    let seal = frames(&sim.content(&segment(firsts[0])).expect("the segment")).pop().expect("seal");
    let (offset, _, _, found) = refusal(&sim, firsts[0], |bytes| bytes[seal.0..].fill(0));
    assert_eq!((offset, &*found), (seal.0 as u64, "zeros to the end of the segment"));
    let (offset, _, _, found) = refusal(&sim, firsts[0], |bytes| bytes.truncate(seal.0));
    let missing = SEGMENT_BYTES as usize - seal.0;
    assert_eq!(offset, seal.0 as u64);
    assert!(found.ends_with(&format!("; a file {missing} bytes too short")), "{found}");
    let (_, _, _, found) = refusal(&sim, firsts[0], |bytes| bytes.truncate(seal.1 - 9));
    let expected = format!(" bytes, and a file {} bytes too short", missing - 47);
    assert!(found.ends_with(&expected), "{found} {expected}");
    drop(fs);
}

#[test]
fn bytes_behind_a_seal_are_refused() {
    let (sim, fs, firsts) = three_segments();
    let seal = frames(&sim.content(&segment(firsts[0])).expect("the segment")).pop().expect("seal");
    for at in [seal.1, SEGMENT_BYTES as usize - 1] {
        let (offset, lsn, expected, found) = refusal(&sim, firsts[0], |bytes| bytes[at] = 1);
        assert_eq!((offset, lsn), (seal.1 as u64, firsts[1]));
        assert_eq!(expected, format!("zeros behind the seal to byte {SEGMENT_BYTES}"));
        let used = at + 1 - seal.1;
        assert_eq!(found, format!("{used} bytes up to the last that is not zero"));
    }
    drop(fs);
}

#[test]
fn a_file_too_short_for_a_header_is_reported_with_its_length() {
    let (sim, fs, firsts) = three_segments();
    for length in [0, 63] {
        let (offset, _, expected, found) = refusal(&sim, firsts[1], |bytes| bytes.truncate(length));
        assert_eq!((offset, &*expected), (0, "a segment header of 64 bytes"));
        assert_eq!(found, format!("{length} bytes"));
    }
    drop(fs);
}

#[test]
fn a_segment_header_that_no_writer_makes_is_refused_although_its_checksum_matches() {
    let (sim, fs, firsts) = three_segments();
    let fields: [(usize, u64, &str); 6] = [
        (8, 0, "format version"),
        (12, 63, "header bytes"),
        (32, 0, "first LSN"),
        (40, SEGMENT_BYTES + 8, "segment bytes"),
        (40, 1 << 40, "segment bytes"),
        (56, 1, "reserved"),
    ];
    for (at, value, field) in fields {
        let width = if matches!(at, 32 | 40) { 8 } else { 4 };
        let (offset, _, expected, found) = refusal(&sim, firsts[1], |bytes| {
            bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
            let checksum = crc32fast::hash(&bytes[..60]);
            bytes[60..64].copy_from_slice(&checksum.to_le_bytes());
        });
        assert_eq!((offset, expected), (0, format!("a possible {field}")));
        assert_eq!(found, value.to_string());
    }
    drop(fs);
}
