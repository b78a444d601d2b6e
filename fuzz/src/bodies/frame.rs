//! The frame decoder over whole segments. It takes a frame exactly when the rules of
//! `storage-format.md` section 2, written a second time here, say that it is whole.

use sharestate::limits::FRAME_BYTES_MAX;
use sharestate::log::frame::seal::{claimed_id, seal_frame};
use sharestate::log::frame::{Frame, decode_frame};
use sharestate::log::{SEGMENT_HEADER_BYTES, SegmentId};

use super::entry::check_canonical;

const HEADER: usize = 56;

pub fn run(segment: &[u8]) {
    let Some(id) = claimed_id(segment) else { return };
    let mut offset = SEGMENT_HEADER_BYTES;
    while let Some(rest) = segment.get(offset..) {
        let decoded = decode_frame(&id, rest, offset as u64);
        assert_eq!(decoded.is_ok(), is_whole(&id, offset, rest), "at {offset}: {decoded:?}");
        let Ok(frame) = decoded else { return };
        check(&frame, rest);
        offset += usize::try_from(frame.frame_bytes()).expect("fits");
    }
}

/// What is read is what stands there.
fn check(frame: &Frame<'_>, bytes: &[u8]) {
    let fields = frame.fields();
    assert_eq!(fields.first_lsn, u64_at(bytes, 16));
    assert_eq!(fields.entry_count, u32_at(bytes, 24));
    assert_eq!(fields.prev_checksum, u32_at(bytes, 28));
    assert_eq!(fields.durable_mark, u64_at(bytes, 32));
    assert_eq!(fields.incarnation, u64_at(bytes, 40));
    assert_eq!(frame.payload_checksum(), u32_at(bytes, 48));
    assert_eq!(fields.next_lsn(), fields.first_lsn + u64::from(fields.entry_count));
    assert!(fields.durable_mark < fields.first_lsn);
    let mut at = HEADER;
    let mut count = 0;
    for entry in frame.entries() {
        assert_eq!(entry.body, &bytes[at + 8..at + 8 + entry.body.len()]);
        check_canonical(entry.kind, entry.version, entry.body);
        at += 8 + entry.body.len();
        count += 1;
    }
    assert_eq!(count, fields.entry_count);
    assert_eq!(frame.frame_bytes(), at.next_multiple_of(8) as u64);
}

/// The rules. Only the checksums are not computed a second time: sealing changes nothing.
fn is_whole(id: &SegmentId, offset: usize, bytes: &[u8]) -> bool {
    if bytes.len() < HEADER || bytes[..4] != *b"SFRM" {
        return false;
    }
    let (kind, codec) = (bytes[8], bytes[9]);
    let (flags, reserved) = (u16::from_le_bytes([bytes[10], bytes[11]]), u32_at(bytes, 52));
    let length = u32_at(bytes, 12) as usize;
    let (first_lsn, count) = (u64_at(bytes, 16), u32_at(bytes, 24));
    let whole = (HEADER + length).next_multiple_of(8);
    if !(1..=3).contains(&kind) || codec != 0 || flags > 1 || reserved != 0 {
        return false;
    }
    if HEADER + length > FRAME_BYTES_MAX || whole > bytes.len() {
        return false;
    }
    if (kind == 1) != (count > 0) || (kind == 1) != (length > 0) {
        return false;
    }
    if first_lsn == 0 || first_lsn.checked_add(count.into()).is_none() {
        return false;
    }
    let payload = &bytes[HEADER..HEADER + length];
    u64_at(bytes, 32) < first_lsn
        && bytes[HEADER + length..whole].iter().all(|byte| *byte == 0)
        && holds_entries(payload, count)
        && is_sealed(id, offset, &bytes[..whole])
}

fn holds_entries(mut payload: &[u8], count: u32) -> bool {
    for _ in 0..count {
        if payload.len() < 8 {
            return false;
        }
        let end = 8 + u32_at(payload, 4) as usize;
        if end > payload.len() {
            return false;
        }
        payload = &payload[end..];
    }
    payload.is_empty()
}

fn is_sealed(id: &SegmentId, offset: usize, frame: &[u8]) -> bool {
    let mut sealed = frame.to_vec();
    seal_frame(id, offset as u64, &mut sealed, None).is_some() && sealed == frame
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}
