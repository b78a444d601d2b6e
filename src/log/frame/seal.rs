//! Makes the checksums of a changed segment right again, so that what stands behind them is tested
//! too. For fuzzers and damage tests only; the store itself never repairs a checksum.

use super::super::format::{
    FIRST_FRAME, FRAME_HEADER_BYTES, Reader, SEGMENT_HEADER_BYTES, SegmentId, Writer,
};
use super::{FRAME_MAGIC, frame_bytes, payload_checksum};
use uuid::Uuid;

/// The segment that a header claims to begin; nothing of the header is verified.
#[must_use]
pub fn claimed_id(segment: &[u8]) -> Option<SegmentId> {
    let (header, _) = segment.split_first_chunk::<SEGMENT_HEADER_BYTES>()?;
    let mut reader = Reader(header);
    let _: [u8; 16] = reader.array();
    let uuid = Uuid::from_bytes(reader.array());
    Some(SegmentId { uuid, first_lsn: reader.u64() })
}

/// Seals the frame that `bytes` begin with, whatever its fields say; `bytes` go on to the segment's
/// end. With `previous` it also continues the frame with that payload checksum. Answers its own
/// payload checksum and the bytes up to the next frame; none, and no change, when there is no frame
/// that fits.
pub fn seal_frame(
    segment: &SegmentId,
    offset: u64,
    bytes: &mut [u8],
    previous: Option<u32>,
) -> Option<(u32, usize)> {
    let available = bytes.len();
    let (header, rest) = bytes.split_first_chunk_mut::<FRAME_HEADER_BYTES>()?;
    if !header.starts_with(&FRAME_MAGIC) {
        return None;
    }
    let (_, at_length) = header.split_at(12);
    let length = Reader(at_length).u32() as usize;
    let payload = rest.get(..length)?;
    let whole = usize::try_from(frame_bytes(length)).ok().filter(|whole| *whole <= available)?;
    if let Some(previous) = previous {
        Writer(header.split_at_mut(28).1).put(previous.to_le_bytes());
    }
    let checksum = payload_checksum(segment, offset, header, payload);
    Writer(header.split_at_mut(48).1).put(checksum.to_le_bytes());
    let mut hasher = segment.seed(offset);
    hasher.update(header.split_at(8).1);
    Writer(header.split_at_mut(4).1).put(hasher.finalize().to_le_bytes());
    Some((checksum, whole))
}

/// Seals the segment's header and its frames up to the first place where none stands. With `chain`
/// each frame continues the one before; the first one is left as it is in this.
pub fn seal_segment(segment: &mut [u8], chain: bool) {
    let Some(id) = claimed_id(segment) else { return };
    let (header, _) = segment.split_at_mut(SEGMENT_HEADER_BYTES);
    let (covered, place) = header.split_at_mut(SEGMENT_HEADER_BYTES.saturating_sub(4));
    Writer(place).put(crc32fast::hash(covered).to_le_bytes());
    let mut offset = FIRST_FRAME as usize;
    let mut previous = None;
    while let Some(rest) = segment.get_mut(offset..) {
        let Some((checksum, bytes)) = seal_frame(&id, offset as u64, rest, previous) else {
            return;
        };
        previous = chain.then_some(checksum);
        offset = offset.saturating_add(bytes);
    }
}
