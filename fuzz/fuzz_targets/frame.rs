//! The frame decoder and the entry decoder behind it, over whole segments: uuid and first LSN are
//! taken from where a segment header holds them, frames from behind it. Seeded with real segments.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sharestate::codec::decode_transition;
use sharestate::log::frame::decode_frame;
use sharestate::log::{SEGMENT_HEADER_BYTES, SegmentId};
use uuid::Uuid;

fuzz_target!(|segment: &[u8]| {
    let Some((header, _)) = segment.split_first_chunk::<SEGMENT_HEADER_BYTES>() else { return };
    let uuid = Uuid::from_slice(&header[16..32]).expect("16 bytes");
    let first_lsn = u64::from_le_bytes(header[32..40].try_into().expect("8 bytes"));
    let id = SegmentId { uuid, first_lsn };
    let mut offset = SEGMENT_HEADER_BYTES;
    while let Some(rest) = segment.get(offset..) {
        let Ok(frame) = decode_frame(&id, rest, offset as u64) else { return };
        let mut entries = 0;
        for entry in frame.entries() {
            entries += 1;
            // What decodes encodes to the same bytes: nothing is read in two ways.
            if let Ok(transition) = decode_transition(entry.kind, entry.version, entry.body) {
                let mut body = Vec::new();
                sharestate::codec::encode_transition(&transition, &mut body).expect("encodes");
                assert_eq!(body, entry.body);
            }
        }
        assert_eq!(entries, frame.fields().entry_count);
        assert!(frame.frame_bytes() > 0 && frame.frame_bytes() <= rest.len() as u64 + 7);
        offset += frame.frame_bytes() as usize;
    }
});
