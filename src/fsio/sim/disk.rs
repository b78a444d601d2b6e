//! The live and the durable image of every file and every name.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::PageModel;
use super::plan::{ENOSPC, Random};
use crate::fsio::DirEntry;

pub(super) type FileId = usize;

#[derive(Debug, Clone)]
pub(super) struct Disk {
    files: Vec<Images>,
    live: Names,
    durable: Names,
    /// Changes of names that no directory sync has covered, in order.
    unsynced: Vec<NameChange>,
}

type Names = BTreeMap<PathBuf, Node>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Node {
    Dir,
    File(FileId),
}

#[derive(Debug, Clone)]
enum NameChange {
    Link(PathBuf, Node),
    /// Carries the node: that it moved may survive even if its first name did not.
    Rename(PathBuf, PathBuf, Node),
    Unlink(PathBuf),
}

#[derive(Debug, Clone, Default)]
struct Images {
    live: Vec<u8>,
    durable: Vec<u8>,
    /// Changes that no sync has covered, in order.
    unsynced: Vec<Change>,
}

#[derive(Debug, Clone)]
enum Change {
    Write(usize, Vec<u8>),
    SetLen(usize),
}

impl NameChange {
    fn dir(&self) -> Option<&Path> {
        match self {
            NameChange::Link(path, _) | NameChange::Unlink(path) => path.parent(),
            NameChange::Rename(_, to, _) => to.parent(),
        }
    }

    fn apply(&self, names: &mut Names) {
        match self {
            NameChange::Link(path, node) => {
                names.insert(path.clone(), *node);
            }
            NameChange::Rename(from, to, node) => {
                names.remove(from);
                names.insert(to.clone(), *node);
            }
            NameChange::Unlink(path) => {
                names.remove(path);
            }
        }
    }
}

impl Change {
    fn apply(&self, image: &mut Vec<u8>) {
        match self {
            Change::Write(at, bytes) => {
                let end = at + bytes.len();
                if image.len() < end {
                    image.resize(end, 0);
                }
                image[*at..end].copy_from_slice(bytes);
            }
            Change::SetLen(len) => image.resize(*len, 0),
        }
    }

    /// Does to one page, which starts at `start` of its file, what it does to the file.
    fn apply_to_page(&self, start: usize, page: &mut [u8]) {
        match self {
            Change::Write(at, bytes) => {
                let from = start.max(*at);
                let to = (start + page.len()).min(at + bytes.len());
                if from < to {
                    page[from - start..to - start].copy_from_slice(&bytes[from - at..to - at]);
                }
            }
            Change::SetLen(len) => {
                let from = len.saturating_sub(start).min(page.len());
                page[from..].fill(0);
            }
        }
    }

    fn touches(&self, start: usize, end: usize) -> bool {
        match self {
            Change::Write(at, bytes) => *at < end && start < at + bytes.len(),
            Change::SetLen(len) => *len < end,
        }
    }
}

impl Images {
    fn change(&mut self, change: Change) {
        change.apply(&mut self.live);
        self.unsynced.push(change);
    }

    fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            change.apply(&mut self.durable);
        }
    }

    fn survivor(&self, random: &mut Random, granularity: usize) -> Vec<u8> {
        let count = self.unsynced.len();
        if count == 0 {
            return self.durable.clone();
        }
        // The length is metadata of its own: it may be that after any number of changes.
        let mut sized = self.durable.clone();
        for change in &self.unsynced[..random.below(count + 1)] {
            change.apply(&mut sized);
        }
        let mut image = self.durable.clone();
        image.resize(sized.len(), 0);
        for (index, page) in image.chunks_mut(granularity).enumerate() {
            let start = index * granularity;
            let end = start + page.len();
            let changes: Vec<&Change> =
                self.unsynced.iter().filter(|change| change.touches(start, end)).collect();
            // A page reaches the disk as it is at some moment.
            for change in &changes[..random.below(changes.len() + 1)] {
                change.apply_to_page(start, page);
            }
        }
        image
    }
}

impl Disk {
    pub(super) fn new() -> Disk {
        let root = BTreeMap::from([(PathBuf::from("/"), Node::Dir)]);
        Disk { files: Vec::new(), live: root.clone(), durable: root, unsynced: Vec::new() }
    }

    pub(super) fn after_power_cut(&self, model: PageModel) -> Disk {
        let mut files = self.files.clone();
        let mut names = self.durable.clone();
        match model {
            PageModel::AllKept => {
                names = self.live.clone();
                for file in &mut files {
                    file.durable = std::mem::take(&mut file.live);
                }
            }
            PageModel::UnsyncedLost => {}
            PageModel::Random { seed, granularity } => {
                let mut random = Random(seed);
                for change in &self.unsynced {
                    if random.below(2) == 0 {
                        change.apply(&mut names);
                    }
                }
                for file in &mut files {
                    file.durable = file.survivor(&mut random, granularity);
                }
            }
        }
        for file in &mut files {
            file.live = file.durable.clone();
            file.unsynced.clear();
        }
        // A name in a directory that is gone is gone with it.
        let all = names.clone();
        names
            .retain(|path, _| path.ancestors().skip(1).all(|dir| all.get(dir) == Some(&Node::Dir)));
        Disk { files, live: names.clone(), durable: names, unsynced: Vec::new() }
    }

    fn change(&mut self, change: NameChange) {
        change.apply(&mut self.live);
        self.unsynced.push(change);
    }

    pub(super) fn file(&self, path: &Path) -> Option<FileId> {
        match self.live.get(path) {
            Some(Node::File(id)) => Some(*id),
            Some(Node::Dir) | None => None,
        }
    }

    pub(super) fn exists(&self, path: &Path) -> bool {
        self.live.contains_key(path)
    }

    pub(super) fn open(&self, path: &Path) -> io::Result<FileId> {
        match self.live.get(path) {
            Some(Node::File(id)) => Ok(*id),
            Some(Node::Dir) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub(super) fn create(&mut self, path: &Path) -> io::Result<FileId> {
        self.check_new(path)?;
        let id = self.files.len();
        self.files.push(Images::default());
        self.change(NameChange::Link(path.to_owned(), Node::File(id)));
        Ok(id)
    }

    pub(super) fn create_dir(&mut self, path: &Path) -> io::Result<()> {
        self.check_new(path)?;
        self.change(NameChange::Link(path.to_owned(), Node::Dir));
        Ok(())
    }

    fn check_new(&self, path: &Path) -> io::Result<()> {
        if self.exists(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        match path.parent().and_then(|parent| self.live.get(parent)) {
            Some(Node::Dir) => Ok(()),
            Some(Node::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub(super) fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        match self.live.get(dir) {
            Some(Node::Dir) => {}
            Some(Node::File(_)) => return Err(io::ErrorKind::NotADirectory.into()),
            None => return Err(io::ErrorKind::NotFound.into()),
        }
        let inside = self.live.iter().filter(|(path, _)| path.parent() == Some(dir));
        Ok(inside
            .filter_map(|(path, node)| {
                let (is_dir, len) = match node {
                    Node::Dir => (true, 0),
                    Node::File(id) => (false, self.files[*id].live.len() as u64),
                };
                Some(DirEntry { name: path.file_name()?.to_owned(), is_dir, len })
            })
            .collect())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let id = self.open(from)?;
        if self.live.get(to) == Some(&Node::Dir) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        debug_assert_eq!(from.parent(), to.parent(), "the store renames within a directory only");
        self.change(NameChange::Rename(from.to_owned(), to.to_owned(), Node::File(id)));
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.open(path)?;
        self.change(NameChange::Unlink(path.to_owned()));
        Ok(())
    }

    pub(super) fn sync_dir(&mut self, dir: &Path) -> io::Result<()> {
        self.list(dir)?;
        let durable = &mut self.durable;
        self.unsynced.retain(|change| {
            let here = change.dir() == Some(dir);
            if here {
                change.apply(durable);
            }
            !here
        });
        Ok(())
    }

    pub(super) fn live(&self, id: FileId) -> &[u8] {
        &self.files[id].live
    }

    pub(super) fn read(&self, id: FileId, buf: &mut [u8], offset: u64) -> usize {
        let live = self.live(id);
        let from = (offset as usize).min(live.len());
        let bytes = buf.len().min(live.len() - from);
        buf[..bytes].copy_from_slice(&live[from..from + bytes]);
        bytes
    }

    pub(super) fn write(&mut self, id: FileId, bytes: &[u8], offset: u64) {
        self.files[id].change(Change::Write(offset as usize, bytes.to_vec()));
    }

    pub(super) fn set_len(&mut self, id: FileId, len: u64) {
        self.files[id].change(Change::SetLen(len as usize));
    }

    pub(super) fn sync(&mut self, id: FileId) {
        self.files[id].sync();
    }

    /// What a failed sync does: the live image stays, and no later sync will make it durable.
    pub(super) fn forget_unsynced(&mut self, id: FileId) {
        self.files[id].unsynced.clear();
    }

    pub(super) fn set_content(&mut self, path: &Path, bytes: &[u8]) {
        let id = self.file(path).unwrap_or_else(|| {
            self.files.push(Images::default());
            self.files.len() - 1
        });
        self.files[id] =
            Images { live: bytes.to_vec(), durable: bytes.to_vec(), unsynced: Vec::new() };
        self.live.insert(path.to_owned(), Node::File(id));
        self.durable.insert(path.to_owned(), Node::File(id));
    }

    pub(super) fn used(&self) -> u64 {
        let files = self.live.values().filter_map(|node| match node {
            Node::File(id) => Some(self.files[*id].live.len() as u64),
            Node::Dir => None,
        });
        files.sum()
    }

    /// Whether `bytes` more fit.
    pub(super) fn check_space(&self, bytes: u64, capacity: Option<u64>) -> io::Result<()> {
        match capacity {
            Some(capacity) if self.used() + bytes > capacity => {
                Err(io::Error::from_raw_os_error(ENOSPC))
            }
            _ => Ok(()),
        }
    }

    /// The end of the part of a write for which there is space; overwriting takes none.
    pub(super) fn grow_to(
        &self,
        id: FileId,
        offset: u64,
        bytes: usize,
        capacity: Option<u64>,
    ) -> io::Result<u64> {
        let end = offset + bytes as u64;
        let have = self.live(id).len() as u64;
        let Some(capacity) = capacity.filter(|_| end > have) else {
            return Ok(end);
        };
        let possible = end.min(have + capacity.saturating_sub(self.used()));
        if possible > offset { Ok(possible) } else { Err(io::Error::from_raw_os_error(ENOSPC)) }
    }
}
