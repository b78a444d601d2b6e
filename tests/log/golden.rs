//! The bytes on disk, pinned. If this test fails, the format has changed: logs in the field would
//! no longer open.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::support::*;
use sharestate::fsio::Fs;
use sharestate::fsio::sim::SimFs;
use sharestate::log::frame::{FrameKind, decode_frame};
use sharestate::log::{Batch, SegmentId};

/// A segment with a frame of two entries, one of one entry, and a mark; trailing zeros left out.
const GOLDEN: &str = include_str!("golden-segment.hex");

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (index, line) in bytes.chunks(16).enumerate() {
        let _ = write!(text, "{:04x} ", index * 16);
        for byte in line {
            let _ = write!(text, " {byte:02x}");
        }
        text.push('\n');
    }
    text
}

fn write_segment() -> Vec<u8> {
    let sim = SimFs::new(0);
    let fs: Arc<dyn Fs> = Arc::new(sim.clone());
    let mut log = new_log(&fs, false);
    let mut batch = Batch::new(1);
    batch.push(1, 1, b"first entry");
    batch.push(2, 1, b"");
    log.append(&batch).expect("written");
    log.sync().expect("synced");
    batch.clear(3);
    batch.push(0x0102, 3, b"third");
    log.append(&batch).expect("written");
    log.sync().expect("synced");
    log.mark().expect("marked");
    sim.content(&log.segments().list()[0].path).expect("the segment")
}

#[test]
fn the_bytes_of_a_segment_are_those_of_the_golden_file() {
    let bytes = write_segment();
    assert_eq!(bytes.len() as u64, SEGMENT_BYTES);
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let text = hex(&bytes[..end.next_multiple_of(8)]);
    println!("{text}");
    assert_eq!(text, GOLDEN);
}

#[test]
fn the_golden_frames_decode() {
    let bytes = write_segment();
    let segment = SegmentId { uuid: store(), first_lsn: 1 };
    let mut offset = 64;
    let mut seen = Vec::new();
    for _ in 0..3 {
        let frame = decode_frame(&segment, &bytes[offset..], offset as u64).expect("verifies");
        let fields = *frame.fields();
        seen.push((fields.kind, fields.first_lsn, fields.durable_mark, frame.entries().count()));
        offset += frame.frame_bytes() as usize;
    }
    assert_eq!(
        seen,
        [(FrameKind::Data, 1, 0, 2), (FrameKind::Data, 3, 2, 1), (FrameKind::Mark, 4, 3, 0),]
    );
    assert!(decode_frame(&segment, &bytes[offset..], offset as u64).is_err());
}
