//! Leaves half a frame behind the end of a killed store's log.
//!
//! A killed process leaves whole frames only: what it wrote is in the page cache. A power cut would
//! also leave such a frame, of which nothing was ever acknowledged; the next opening has to cut it.
//! And a RocksDB that has lost its newest batch is healed by the log.

use std::path::Path;

use sharestate::fsio::{Fs as _, FsError, OpenMode, RealFs, read_file, write_all_at};
use sharestate::limits::SEGMENT_BYTES_MAX;
use sharestate::log::frame::{FrameKind, decode_frame};
use sharestate::log::{FRAME_HEADER_BYTES, SEGMENT_HEADER_BYTES, SegmentId};
use uuid::Uuid;

use super::rng::Rng;

/// Writes part of a frame behind the last one. Answers how many bytes; 0 when the log ends in no
/// place for it.
pub fn tear(dir: &Path, uuid: Uuid, rng: &mut Rng) -> Result<u64, FsError> {
    let wal = dir.join("wal");
    let last = RealFs.list(&wal)?.into_iter().rev().find_map(|entry| {
        let first_lsn = entry.name.to_str()?.strip_suffix(".wal")?.parse().ok()?;
        Some((wal.join(entry.name), first_lsn))
    });
    let Some((path, first_lsn)) = last else { return Ok(0) };
    let bytes = read_file(&RealFs, &path, SEGMENT_BYTES_MAX)?;
    let Some((frame, end)) = last_frame(&SegmentId { uuid, first_lsn }, &bytes) else {
        return Ok(0);
    };
    // At the wrong place a frame does not verify; and it is cut off, too.
    let most = frame.len().min(bytes.len().saturating_sub(end));
    if most <= FRAME_HEADER_BYTES {
        return Ok(0);
    }
    let torn = 1 + rng.below(most as u64 - 1) as usize;
    let file = RealFs.open(&path, OpenMode::ReadWrite)?;
    write_all_at(&*file, &frame[..torn], end as u64)?;
    Ok(torn as u64)
}

/// The last frame with entries, and where the frames end; nothing when the segment is sealed.
fn last_frame<'a>(id: &SegmentId, bytes: &'a [u8]) -> Option<(&'a [u8], usize)> {
    let mut at = SEGMENT_HEADER_BYTES;
    let mut last = None;
    while let Ok(frame) = decode_frame(id, bytes.get(at..)?, at as u64) {
        let end = at + usize::try_from(frame.frame_bytes()).ok()?;
        match frame.fields().kind {
            FrameKind::Data => last = bytes.get(at..end),
            FrameKind::Mark => {}
            FrameKind::Seal => return None,
        }
        at = end;
    }
    last.map(|frame| (frame, at))
}

/// Below this, what RocksDB's log holds is no checkpoint.
const CHECKPOINT_BYTES_MIN: u64 = 2 << 10;

/// Cuts the last byte of RocksDB's newest log, so that RocksDB drops the batch that it ends with: a
/// checkpoint. Answers whether there was one.
pub fn lose_checkpoint(dir: &Path) -> Result<bool, FsError> {
    let snapshot = dir.join("snapshot");
    if !RealFs.exists(&snapshot)? {
        return Ok(false);
    }
    let mut logs = RealFs.list(&snapshot)?.into_iter().filter(|entry| {
        Path::new(&entry.name).extension().is_some_and(|extension| extension == "log")
    });
    let Some(newest) = logs.next_back().filter(|log| log.len >= CHECKPOINT_BYTES_MIN) else {
        return Ok(false);
    };
    let file = RealFs.open(&snapshot.join(newest.name), OpenMode::ReadWrite)?;
    file.set_len(newest.len - 1)?;
    Ok(true)
}
