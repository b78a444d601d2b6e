//! What is left of a damaged log: every stretch that does not verify between frames that do.
//!
//! The scan of the log stops at the first damage, since nothing behind it can be trusted to be what
//! was written last. Whoever has to judge the extent of the damage wants to see the rest as well.

use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::findings::{FIRST_LSN_OFFSET, UUID_OFFSET};
use super::{Finding, Findings};
use crate::fsio::{Fs, FsError, read_file};
use crate::limits::SEGMENT_BYTES_MAX;
use crate::log::frame::{FrameError, FrameKind, decode_frame};
use crate::log::{SEGMENT_HEADER_BYTES, SegmentHeader, SegmentId};
use crate::model::Lsn;

/// Frames start on multiples of this.
const ALIGN: usize = 8;

/// Goes through all segments and adds what does not verify.
pub(super) fn check(
    fs: &dyn Fs,
    segments: &[(Lsn, PathBuf)],
    uuid: Uuid,
    findings: &mut Findings,
) -> Result<(), FsError> {
    for (index, (first_lsn, path)) in segments.iter().enumerate() {
        let bytes = read_file(fs, path, SEGMENT_BYTES_MAX)?;
        let id = SegmentId { uuid, first_lsn: *first_lsn };
        let is_last = index.saturating_add(1) == segments.len();
        match header_finding(path, &id, &bytes) {
            Some(finding) => findings.add(finding),
            None => frames(path, &id, &bytes, is_last, findings),
        }
    }
    Ok(())
}

fn header_finding(path: &Path, id: &SegmentId, bytes: &[u8]) -> Option<Finding> {
    let Some(header) = bytes.first_chunk::<SEGMENT_HEADER_BYTES>() else {
        let expected = format!("a segment header of {SEGMENT_HEADER_BYTES} bytes");
        return Some(Finding::new(path, expected, format!("{} bytes", bytes.len())).at(0));
    };
    let found = match SegmentHeader::decode(header) {
        Ok(header) => header.id,
        Err(fault) => {
            return Some(Finding::new(path, "a whole segment header", format!("{fault:?}")).at(0));
        }
    };
    if found.uuid != id.uuid {
        let expected = format!("a segment of store {}", id.uuid);
        return Some(Finding::new(path, expected, found.uuid.to_string()).at(UUID_OFFSET));
    }
    let expected = format!("the segment from LSN {}", id.first_lsn);
    let finding = Finding::new(path, expected, format!("the one from LSN {}", found.first_lsn));
    (found.first_lsn != id.first_lsn).then(|| finding.at(FIRST_LSN_OFFSET))
}

/// Goes through the frames of a segment.
fn frames(path: &Path, id: &SegmentId, bytes: &[u8], is_last: bool, findings: &mut Findings) {
    let mut offset = SEGMENT_HEADER_BYTES;
    let mut next_lsn = id.first_lsn;
    loop {
        let fault = match decode(id, bytes, offset) {
            Ok((kind, lsn, end)) => {
                if kind == FrameKind::Seal {
                    return;
                }
                (offset, next_lsn) = (end, lsn);
                continue;
            }
            Err(fault) => fault,
        };
        let next = resume(id, bytes, offset);
        // Without a frame behind it, it may be where the last segment ends.
        if next.is_some() || !is_last {
            let expected = if next.is_some() { "a frame" } else { "a frame or a seal" };
            let finding = Finding::new(path, expected, fault.to_string());
            findings.add(finding.at(offset as u64).of_lsn(next_lsn));
        }
        match next {
            Some(next) => offset = next,
            None => return,
        }
    }
}

/// Kind, next LSN and end of the frame at `offset`.
fn decode(
    id: &SegmentId,
    bytes: &[u8],
    offset: usize,
) -> Result<(FrameKind, Lsn, usize), FrameError> {
    let rest = bytes.get(offset..).unwrap_or_default();
    let frame = decode_frame(id, rest, offset as u64)?;
    let end = usize::try_from(frame.frame_bytes()).unwrap_or(usize::MAX);
    Ok((frame.fields().kind, frame.fields().next_lsn(), offset.saturating_add(end)))
}

/// The next place behind `offset` where a frame verifies.
fn resume(id: &SegmentId, bytes: &[u8], offset: usize) -> Option<usize> {
    (offset.saturating_add(ALIGN)..bytes.len())
        .step_by(ALIGN)
        .find(|place| decode(id, bytes, *place).is_ok())
}
