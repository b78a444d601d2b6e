//! What a power cut leaves of changes that were never synced: by a rule, by a seed, or chosen one
//! by one.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::disk::Disk;
use super::images::Images;
use super::plan::Random;

/// What a reboot finds of changes that were never synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageModel {
    /// All of them.
    AllKept,
    /// None of them.
    UnsyncedLost,
    /// Of every page touched, the state after some of the writes to it; of the changed names, a
    /// random subset, in order.
    Random {
        /// Decides which.
        seed: u64,
        /// Bytes of a page: 512 for a sector, 4,096 for a page of the cache.
        granularity: usize,
    },
}

/// What a reboot finds, chosen piece by piece: for tests that go through every possibility.
///
/// Pieces are numbered from 0 in the order in which [`SimFs`](super::SimFs) lists them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survivors {
    /// Of the names, by [`SimFs::unsynced_names`](super::SimFs::unsynced_names).
    pub names: Keep,
    /// Of the content.
    pub content: Content,
}

/// Which content survives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Whole writes and changes of length, by
    /// [`SimFs::unsynced_writes`](super::SimFs::unsynced_writes). Keeping a later one and dropping
    /// an earlier one is what a disk does that reorders.
    Writes(Keep),
    /// Pages, by [`SimFs::unsynced_pages`](super::SimFs::unsynced_pages); a page that survives
    /// holds all writes to it. Lengths survive.
    Pages {
        /// Bytes of a page: 512 for a sector, 4,096 for a page of the cache.
        granularity: usize,
        /// Which of them.
        keep: Keep,
    },
}

/// A choice among numbered pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keep {
    /// All survive.
    All,
    /// None survives.
    None,
    /// These survive.
    Only(BTreeSet<usize>),
    /// All but these survive.
    Except(BTreeSet<usize>),
}

impl Keep {
    /// Those whose bit is set: a subset of at most 64 pieces as a number.
    #[must_use]
    pub fn subset(bits: u64) -> Keep {
        Keep::Only((0..64).filter(|piece| bits >> piece & 1 == 1).collect())
    }

    /// All but these.
    #[must_use]
    pub fn except(lost: impl IntoIterator<Item = usize>) -> Keep {
        Keep::Except(lost.into_iter().collect())
    }

    /// Whether the piece survives.
    #[must_use]
    pub fn keeps(&self, piece: usize) -> bool {
        match self {
            Keep::All => true,
            Keep::None => false,
            Keep::Only(kept) => kept.contains(&piece),
            Keep::Except(lost) => !lost.contains(&piece),
        }
    }
}

/// A page with changes that no sync has covered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The file, by its present name; by none once it was unlinked.
    pub path: Option<PathBuf>,
    /// Where it starts in the file, in bytes.
    pub start: u64,
    /// Its size in bytes.
    pub bytes: usize,
}

impl Disk {
    pub(super) fn after_power_cut(&self, model: PageModel) -> Disk {
        let mut random = Random(match model {
            PageModel::Random { seed, .. } => seed,
            PageModel::AllKept | PageModel::UnsyncedLost => 0,
        });
        let mut names = match model {
            PageModel::AllKept => self.live.clone(),
            PageModel::UnsyncedLost | PageModel::Random { .. } => self.durable.clone(),
        };
        if let PageModel::Random { .. } = model {
            for change in self.unsynced.iter().filter(|_| random.below(2) == 0) {
                change.kind.apply(&mut names);
            }
        }
        let content = self.files.iter().map(|file| match model {
            PageModel::AllKept => file.live.clone(),
            PageModel::UnsyncedLost => file.durable.clone(),
            PageModel::Random { granularity, .. } => file.random(&mut random, granularity),
        });
        let content = content.collect();
        Disk::at_rest(content, names)
    }

    pub(super) fn after_choice(&self, survivors: &Survivors) -> Disk {
        let mut names = self.durable.clone();
        for (index, change) in self.unsynced.iter().enumerate() {
            if survivors.names.keeps(index) {
                change.kind.apply(&mut names);
            }
        }
        let content = match &survivors.content {
            Content::Writes(keep) => {
                let calls = self.unsynced_writes();
                let kept = calls.iter().enumerate().filter(|(index, _)| keep.keeps(*index));
                let kept: BTreeSet<u64> = kept.map(|(_, call)| *call).collect();
                let file = |file: &Images| file.with_writes(|call| kept.contains(&call));
                self.files.iter().map(file).collect()
            }
            Content::Pages { granularity, keep } => {
                let mut first = 0;
                let mut survivor = |(id, file): (usize, &Images)| {
                    let pages = self.pages_of(id, *granularity);
                    let image = file.with_pages(&pages, first, keep);
                    first += pages.len();
                    image
                };
                self.files.iter().enumerate().map(&mut survivor).collect()
            }
        };
        Disk::at_rest(content, names)
    }

    /// The calls whose changes of content no sync has covered, in order.
    pub(super) fn unsynced_writes(&self) -> Vec<u64> {
        let changes = self.files.iter().flat_map(|file| &file.unsynced);
        let mut calls: Vec<u64> = changes.map(|change| change.call).collect();
        calls.sort_unstable();
        calls.dedup();
        calls
    }

    pub(super) fn unsynced_pages(&self, granularity: usize) -> Vec<Page> {
        (0..self.files.len()).flat_map(|id| self.pages_of(id, granularity)).collect()
    }

    fn pages_of(&self, id: usize, granularity: usize) -> Vec<Page> {
        let starts = self.files[id].dirty_pages(granularity);
        let path = if starts.is_empty() { None } else { self.name_of(id) };
        let page =
            |start: usize| Page { path: path.clone(), start: start as u64, bytes: granularity };
        starts.into_iter().map(page).collect()
    }
}
