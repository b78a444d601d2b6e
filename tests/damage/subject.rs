//! A segment in one of its roles, damaged, and what must be answered then.
//!
//! Every case goes through the scan of the log, and one in [`WHOLE_STORE`] through a whole store as
//! well, which must agree; `SHARESTATE_DAMAGE=all` sends all of them through both.

use std::path::PathBuf;

use sharestate::OpenError;
use sharestate::fsio::sim::SimFs;
use sharestate::log::{LogError, Lsn};

use crate::effort::all_cases;
use crate::image::{End, Image, Opened, SEGMENT_BYTES, field, frames};

/// Odd, so that all eight bits of a byte have their turn.
const WHOLE_STORE: usize = 9;

/// A segment in one of its roles.
pub struct Subject {
    pub name: &'static str,
    pub image: Image,
    pub disk: SimFs,
    pub path: PathBuf,
    pub good: Vec<u8>,
    pub frames: Vec<(usize, usize)>,
    pub end: Option<End>,
    pub cases: usize,
    pub whole_stores: u64,
}

/// A sealed segment, a last one that ends with a mark, and one that ends with a data frame.
pub fn subjects() -> Vec<Subject> {
    let [marked, bare] = [End::Marked, End::Bare].map(|end| Image::new(1, end));
    let (first, last) = (marked.segments[0], marked.segments[1]);
    vec![
        Subject::new("sealed", marked.clone(), first, None),
        Subject::new("last, marked", marked.applied_at(last - 1), last, Some(End::Marked)),
        Subject::new("last, bare", bare.applied_at(last - 1), last, Some(End::Bare)),
    ]
}

impl Subject {
    /// The segment from `first_lsn` on; `end` says how the last one ends.
    pub fn new(name: &'static str, image: Image, first_lsn: Lsn, end: Option<End>) -> Self {
        let path = image.segment(first_lsn);
        let good = image.bytes(&path).to_vec();
        assert_eq!(good.len(), SEGMENT_BYTES);
        let (disk, frames) = (image.disk(), frames(&good));
        Self { name, image, disk, path, good, frames, end, cases: 0, whole_stores: 0 }
    }

    /// Reads the segment with these bytes in its place.
    pub fn read(&mut self, bytes: &[u8], what: &dyn Fn() -> String) -> Opened {
        let disk = self.disk.restart();
        disk.set_content(&self.path, bytes);
        let answer = self.image.scan(&disk, what);
        if self.cases.is_multiple_of(WHOLE_STORE) || all_cases() {
            let opened = self.image.open(&disk, what);
            assert_eq!(opened.gist(), answer.gist(), "{}", what());
            self.whole_stores += 1;
        }
        self.cases += 1;
        answer
    }

    /// Damages bytes that all belong to one frame, or to none, and checks the answer: damage that
    /// anything vouches for is refused and named; what nothing vouches for is cut; nothing else is
    /// lost.
    pub fn check(&mut self, at: usize, bytes: &[u8], what: &dyn Fn() -> String) {
        let answer = self.read(bytes, what);
        let end = self.end_of_frames();
        let frame = self.frames.iter().position(|(start, end)| (*start..*end).contains(&at));
        let is_last = frame.is_some_and(|frame| frame + 1 == self.frames.len());
        let last_lsn = self.image.last_lsn;
        let least: Option<Lsn> = match self.end {
            Some(_) if at >= end => Some(last_lsn),
            Some(End::Marked) if is_last => Some(last_lsn),
            Some(End::Bare) if is_last => Some(last_lsn - 1),
            _ => None,
        };
        let place = frame.map_or(if at >= end { end } else { 0 }, |frame| self.frames[frame].0);
        match (answer, least) {
            (Opened::Refused(OpenError::Log(LogError::Corrupt { path, offset, .. })), _) => {
                let named = (&path, offset) == (&self.path, place as u64);
                assert!(named, "{}: named at {offset} of {}", what(), path.display());
                // Rot in the padding is no torn write: its frame is whole.
                assert!(least.is_none() || self.is_padding(place, at), "{}", what());
            }
            (Opened::Torn(lsn, _), Some(least)) => assert_eq!(lsn, least, "{}", what()),
            (other, _) => panic!("{}: {other:?}", what()),
        }
    }

    pub fn end_of_frames(&self) -> usize {
        self.frames.last().expect("frames").1
    }

    /// Whether this byte is padding of the frame that starts at `frame`.
    fn is_padding(&self, frame: usize, at: usize) -> bool {
        let length = self.good[frame + 12..frame + 16].try_into().expect("4 bytes");
        at >= frame + 56 + u32::from_le_bytes(length) as usize
    }

    /// Damage anywhere: what is read is a prefix with everything that the frames that are still
    /// whole vouch for, and if it is shorter than it was, that is said.
    pub fn check_anywhere(&mut self, bytes: &[u8], what: &dyn Fn() -> String) {
        let whole =
            |frame: &&(usize, usize)| bytes[frame.0..frame.1] == self.good[frame.0..frame.1];
        let marks = self.frames.iter().filter(whole).map(|frame| field(&self.good, frame.0, 32));
        let vouched = marks.max().unwrap_or(0).max(self.image.applied);
        match (self.read(bytes, what), self.end) {
            (Opened::Refused(error), _) => assert!(matches!(error, OpenError::Log(_)), "{error}"),
            (Opened::Torn(lsn, _), Some(_)) => {
                assert!(lsn >= vouched, "{}: lost down to {lsn}", what());
                assert!(lsn <= self.image.last_lsn, "{}: invented {lsn}", what());
            }
            (other, _) => panic!("{}: {other:?}", what()),
        }
    }
}
