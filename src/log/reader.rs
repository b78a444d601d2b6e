//! Reads a segment through a window, or through a map for offline tools.

use std::path::Path;

use super::directory::KnownSegment;
use super::format::{FIRST_FRAME, FRAME_HEADER_BYTES};
use super::frame::{Frame, FrameError, HeadedFrame, RawFrame};
use crate::fsio::{Fs, FsError, FsFile, Mapped, OpenMode, read_up_to};
use crate::seeded;

/// Bytes read at once, unless a frame is larger.
const READ_AHEAD: usize = 256 << 10;

/// The bytes of one segment.
#[derive(Debug)]
pub(super) struct SegmentReader<'a> {
    segment: &'a KnownSegment,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Window { file: Box<dyn FsFile>, window: Vec<u8>, filled: usize, start: u64 },
    Mapped(Mapped),
}

/// What is left of a segment behind some position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rest {
    /// Zeros only, and none missing.
    pub zero: bool,
    /// End of the last byte that is not zero; the position itself if there is none.
    pub used_end: u64,
}

impl<'a> SegmentReader<'a> {
    /// Opens a segment. `sealed` ones, which nobody writes any more, may be mapped.
    pub(super) fn open(
        fs: &dyn Fs,
        segment: &'a KnownSegment,
        sealed: bool,
    ) -> Result<SegmentReader<'a>, FsError> {
        let path: &Path = &segment.path;
        let mapped = if sealed { fs.map(path)? } else { None };
        let source = match mapped {
            Some(map) => Source::Mapped(map),
            None => Source::Window {
                file: fs.open(path, OpenMode::Read)?,
                window: Vec::new(),
                filled: 0,
                start: 0,
            },
        };
        Ok(SegmentReader { segment, source })
    }

    /// `want` bytes from `offset` on, fewer at the end of the file.
    pub(super) fn get(&mut self, offset: u64, want: usize) -> Result<&[u8], FsError> {
        let left = self.segment.file_bytes.saturating_sub(offset);
        let want = want.min(usize::try_from(left).unwrap_or(usize::MAX));
        match &mut self.source {
            Source::Mapped(map) => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX);
                let bytes = map.get(from..).unwrap_or_default();
                Ok(bytes.get(..want).unwrap_or(bytes))
            }
            Source::Window { file, window, filled, start } => {
                let inside = offset.checked_sub(*start).and_then(|from| usize::try_from(from).ok());
                let held = |from: usize| from.saturating_add(want) <= *filled;
                let from = match inside.filter(|from| held(*from)) {
                    Some(from) => from,
                    None => {
                        let ahead = (READ_AHEAD as u64).min(left) as usize;
                        let size = want.max(ahead);
                        if window.len() < size {
                            window.resize(size, 0);
                        }
                        *filled = 0;
                        let buffer = window.get_mut(..size).unwrap_or_default();
                        *filled = read_up_to(&**file, buffer, offset)?;
                        *start = offset;
                        0
                    }
                };
                let bytes = window.get(from..*filled).unwrap_or_default();
                Ok(bytes.get(..want).unwrap_or(bytes))
            }
        }
    }

    /// Forgets what was read, so that it is read again: a store may have written meanwhile.
    pub(super) fn forget(&mut self) {
        if let Source::Window { filled, .. } = &mut self.source {
            *filled = 0;
        }
    }

    /// The verified header of the frame at `offset`.
    pub(super) fn header(
        &mut self,
        offset: u64,
    ) -> Result<Result<HeadedFrame, FrameError>, FsError> {
        let header = &self.segment.header;
        let room = header.segment_bytes.saturating_sub(offset);
        let bytes = self.get(offset, FRAME_HEADER_BYTES)?;
        Ok(RawFrame::read(&header.id, bytes, offset).and_then(|raw| raw.verify_header(room)))
    }

    /// The frame at `offset`. Nothing is read beyond its header before that is verified.
    pub(super) fn frame(&mut self, offset: u64) -> Result<Result<Frame<'_>, FrameError>, FsError> {
        let headed = match self.header(offset)? {
            Ok(headed) => headed,
            Err(error) => return Ok(Err(error)),
        };
        let bytes = usize::try_from(headed.frame_bytes()).unwrap_or(usize::MAX);
        Ok(headed.verify_payload(self.get(offset, bytes)?))
    }

    /// Looks through everything from `offset` to the end of the segment.
    pub(super) fn rest(&mut self, offset: u64) -> Result<Rest, FsError> {
        if seeded::bug("leveldb-161") && is_zero(self.get(offset, FRAME_HEADER_BYTES)?) {
            return Ok(Rest { zero: true, used_end: offset });
        }
        let mut used_end = offset;
        let mut at = offset;
        loop {
            let chunk = self.get(at, READ_AHEAD)?;
            if chunk.is_empty() {
                break;
            }
            if !is_zero(chunk) {
                let last = chunk.iter().rposition(|byte| *byte != 0).unwrap_or(0) as u64;
                used_end = at.saturating_add(last).saturating_add(1);
            }
            at = at.saturating_add(chunk.len() as u64);
        }
        let whole = at >= self.segment.header.segment_bytes;
        Ok(Rest { zero: whole && used_end == offset, used_end })
    }

    /// Whether there is nothing but the header and zeros.
    pub(super) fn is_blank(&mut self) -> Result<bool, FsError> {
        let start = self.get(FIRST_FRAME, FRAME_HEADER_BYTES)?;
        if !is_zero(start) {
            return Ok(false);
        }
        Ok(self.rest(FIRST_FRAME)?.zero)
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    // Blocks without an early exit inside become vector code.
    let (blocks, rest) = bytes.as_chunks::<64>();
    blocks.iter().all(|block| block.iter().fold(0, |all, byte| all | byte) == 0)
        && rest.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bytes_do_not_cancel_out_to_zeros() {
        for length in [0, 1, 63, 64, 65, 200] {
            let mut bytes = vec![0; length];
            assert!(is_zero(&bytes));
            for at in 0..length {
                bytes[at] = 0x41;
                assert!(!is_zero(&bytes), "{length} bytes, byte {at}");
                let other = (at + 1) % length;
                bytes[other] = 0x41;
                assert!(!is_zero(&bytes), "{length} bytes, bytes {at} and {other}");
                (bytes[at], bytes[other]) = (0, 0);
            }
        }
    }
}
