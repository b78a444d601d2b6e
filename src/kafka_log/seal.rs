//! Makes the checksums of changed record batches right again. For fuzzers and damage tests only.

use super::batch::HEAD_BYTES;
use super::crc32c::crc32c;
use super::raw::Reader;

/// Bytes up to and including the CRC, which covers all that follows it in its batch.
const UNCOVERED_BYTES: usize = 21;

/// Seals every batch of a segment file, whatever its fields say, up to the first place where none
/// fits; with `stretch` a batch whose length does not fit is made to reach the end of the file.
pub fn seal_batches(file: &mut [u8], stretch: bool) {
    let mut rest = file;
    while let Some(size) = batch_bytes(rest, stretch) {
        let Some((batch, behind)) = rest.split_at_mut_checked(size) else { return };
        seal(batch);
        rest = behind;
    }
}

/// Bytes of the batch at the start of `file`; with `stretch` a length that does not fit means all.
fn batch_bytes(file: &[u8], stretch: bool) -> Option<usize> {
    let mut reader = Reader::new(file);
    let _base_offset = reader.i64("base offset").ok()?;
    let length = usize::try_from(reader.i32("batch length").ok()?).ok();
    let size = length.and_then(|length| length.checked_add(HEAD_BYTES));
    let fits = size.filter(|size| *size >= UNCOVERED_BYTES && *size <= file.len());
    let all = (stretch && file.len() >= UNCOVERED_BYTES).then_some(file.len());
    fits.or(all)
}

fn seal(batch: &mut [u8]) {
    let length = i32::try_from(batch.len().saturating_sub(HEAD_BYTES)).unwrap_or(i32::MAX);
    let Some((head, covered)) = batch.split_at_mut_checked(UNCOVERED_BYTES) else { return };
    let crc = crc32c(covered).to_be_bytes();
    if let (_, [l0, l1, l2, l3, _, _, _, _, _, c0, c1, c2, c3]) = head.split_at_mut(8) {
        [*l0, *l1, *l2, *l3] = length.to_be_bytes();
        [*c0, *c1, *c2, *c3] = crc;
    }
}
