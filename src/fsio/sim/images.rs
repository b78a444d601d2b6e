//! The live and the durable image of one file, and the changes between them.

use super::cut::{Keep, Page};
use super::plan::Random;

#[derive(Debug, Clone, Default)]
pub(super) struct Images {
    pub live: Vec<u8>,
    pub durable: Vec<u8>,
    /// Changes that no sync has covered, in order.
    pub unsynced: Vec<Change>,
}

/// A change of content or length, and the call that made it.
#[derive(Debug, Clone)]
pub(super) struct Change {
    pub call: u64,
    pub kind: ChangeKind,
}

#[derive(Debug, Clone)]
pub(super) enum ChangeKind {
    Write(usize, Vec<u8>),
    SetLen(usize),
}

impl ChangeKind {
    fn apply(&self, image: &mut Vec<u8>) {
        match self {
            ChangeKind::Write(at, bytes) => {
                let end = at + bytes.len();
                if image.len() < end {
                    image.resize(end, 0);
                }
                image[*at..end].copy_from_slice(bytes);
            }
            ChangeKind::SetLen(len) => image.resize(*len, 0),
        }
    }

    /// Does to one page, which starts at `start` of its file, what it does to the file.
    fn apply_to_page(&self, start: usize, page: &mut [u8]) {
        match self {
            ChangeKind::Write(at, bytes) => {
                let from = start.max(*at);
                let to = (start + page.len()).min(at + bytes.len());
                if from < to {
                    page[from - start..to - start].copy_from_slice(&bytes[from - at..to - at]);
                }
            }
            ChangeKind::SetLen(len) => {
                let from = len.saturating_sub(start).min(page.len());
                page[from..].fill(0);
            }
        }
    }

    fn touches(&self, start: usize, end: usize) -> bool {
        match self {
            ChangeKind::Write(at, bytes) => *at < end && start < at + bytes.len(),
            ChangeKind::SetLen(len) => *len < end,
        }
    }
}

impl Images {
    pub fn change(&mut self, call: u64, kind: ChangeKind) {
        kind.apply(&mut self.live);
        self.unsynced.push(Change { call, kind });
    }

    pub fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            change.kind.apply(&mut self.durable);
        }
    }

    /// Of every page the state after some of the changes to it.
    pub fn random(&self, random: &mut Random, granularity: usize) -> Vec<u8> {
        let count = self.unsynced.len();
        if count == 0 {
            return self.durable.clone();
        }
        // The length is metadata of its own: it may be that after any number of changes.
        let mut sized = self.durable.clone();
        for change in &self.unsynced[..random.below(count + 1)] {
            change.kind.apply(&mut sized);
        }
        let mut image = self.durable.clone();
        image.resize(sized.len(), 0);
        for (index, page) in image.chunks_mut(granularity).enumerate() {
            let start = index * granularity;
            let changes = self.touching(start, start + page.len());
            // A page reaches the disk as it is at some moment.
            for change in &changes[..random.below(changes.len() + 1)] {
                change.kind.apply_to_page(start, page);
            }
        }
        image
    }

    /// Only the changes that `keep` picks, in order.
    pub fn with_writes(&self, keep: impl Fn(u64) -> bool) -> Vec<u8> {
        let mut image = self.durable.clone();
        for change in self.unsynced.iter().filter(|change| keep(change.call)) {
            change.kind.apply(&mut image);
        }
        image
    }

    /// The pages that changes touch, by their start.
    pub fn dirty_pages(&self, granularity: usize) -> Vec<usize> {
        let pages = (0..self.live.len().max(self.durable.len())).step_by(granularity.max(1));
        pages.filter(|start| !self.touching(*start, start + granularity).is_empty()).collect()
    }

    /// Of the dirty pages only those that `keep` picks, in their live state. The length, which is
    /// metadata of its own, is the live one.
    pub fn with_pages(&self, pages: &[Page], first: usize, keep: &Keep) -> Vec<u8> {
        let mut image = self.durable.clone();
        image.resize(self.live.len(), 0);
        for (index, page) in pages.iter().enumerate() {
            let from = (page.start as usize).min(image.len());
            let to = (page.start as usize + page.bytes).min(image.len());
            if keep.keeps(first + index) {
                image[from..to].copy_from_slice(&self.live[from..to]);
            }
        }
        image
    }

    fn touching(&self, start: usize, end: usize) -> Vec<&Change> {
        self.unsynced.iter().filter(|change| change.kind.touches(start, end)).collect()
    }
}
