//! The files and names of a disk, as calls see them and as they are durable.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::images::{ChangeKind, Images};
use super::plan::ENOSPC;
use crate::fsio::DirEntry;

pub(super) type FileId = usize;

#[derive(Debug, Clone)]
pub(super) struct Disk {
    pub files: Vec<Images>,
    pub live: Names,
    pub durable: Names,
    /// Changes of names that no directory sync has covered, in order.
    pub unsynced: Vec<NameChange>,
    /// The call that is carried out.
    pub call: u64,
}

pub(super) type Names = BTreeMap<PathBuf, Node>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    Dir,
    File(FileId),
}

/// A change of names, and the call that made it.
#[derive(Debug, Clone)]
pub(super) struct NameChange {
    pub call: u64,
    pub kind: NameChangeKind,
}

#[derive(Debug, Clone)]
pub(super) enum NameChangeKind {
    Link(PathBuf, Node),
    /// Carries the node: that it moved may survive even if its first name did not.
    Rename(PathBuf, PathBuf, Node),
    Unlink(PathBuf),
}

impl NameChangeKind {
    fn dir(&self) -> Option<&Path> {
        match self {
            NameChangeKind::Link(path, _) | NameChangeKind::Unlink(path) => path.parent(),
            NameChangeKind::Rename(_, to, _) => to.parent(),
        }
    }

    pub(super) fn apply(&self, names: &mut Names) {
        match self {
            NameChangeKind::Link(path, node) => {
                names.insert(path.clone(), *node);
            }
            NameChangeKind::Rename(from, to, node) => {
                names.remove(from);
                names.insert(to.clone(), *node);
            }
            NameChangeKind::Unlink(path) => {
                names.remove(path);
            }
        }
    }
}

impl Disk {
    pub(super) fn new() -> Disk {
        let root = BTreeMap::from([(PathBuf::from("/"), Node::Dir)]);
        Disk::at_rest(Vec::new(), root)
    }

    /// A disk with nothing un-synced.
    pub(super) fn at_rest(content: Vec<Vec<u8>>, mut names: Names) -> Disk {
        let image = |live: Vec<u8>| Images { durable: live.clone(), live, unsynced: Vec::new() };
        // A name in a directory that is gone is gone with it.
        let all = names.clone();
        names
            .retain(|path, _| path.ancestors().skip(1).all(|dir| all.get(dir) == Some(&Node::Dir)));
        let files = content.into_iter().map(image).collect();
        Disk { files, live: names.clone(), durable: names, unsynced: Vec::new(), call: 0 }
    }

    fn change(&mut self, kind: NameChangeKind) {
        kind.apply(&mut self.live);
        self.unsynced.push(NameChange { call: self.call, kind });
    }

    pub(super) fn file(&self, path: &Path) -> Option<FileId> {
        match self.live.get(path) {
            Some(Node::File(id)) => Some(*id),
            Some(Node::Dir) | None => None,
        }
    }

    /// The present name of a file.
    pub(super) fn name_of(&self, id: FileId) -> Option<PathBuf> {
        let mut names = self.live.iter();
        names.find(|(_, node)| **node == Node::File(id)).map(|(path, _)| path.clone())
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
        self.change(NameChangeKind::Link(path.to_owned(), Node::File(id)));
        Ok(id)
    }

    pub(super) fn create_dir(&mut self, path: &Path) -> io::Result<()> {
        self.check_new(path)?;
        self.change(NameChangeKind::Link(path.to_owned(), Node::Dir));
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
        self.change(NameChangeKind::Rename(from.to_owned(), to.to_owned(), Node::File(id)));
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.open(path)?;
        self.change(NameChangeKind::Unlink(path.to_owned()));
        Ok(())
    }

    pub(super) fn sync_dir(&mut self, dir: &Path) -> io::Result<()> {
        self.list(dir)?;
        let durable = &mut self.durable;
        self.unsynced.retain(|change| {
            let here = change.kind.dir() == Some(dir);
            if here {
                change.kind.apply(durable);
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
        let change = ChangeKind::Write(offset as usize, bytes.to_vec());
        self.files[id].change(self.call, change);
    }

    pub(super) fn set_len(&mut self, id: FileId, len: u64) {
        self.files[id].change(self.call, ChangeKind::SetLen(len as usize));
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

    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let files = self.live.iter().filter(|(_, node)| matches!(node, Node::File(_)));
        files.map(|(path, _)| path.clone()).collect()
    }

    pub(super) fn remove_content(&mut self, path: &Path) {
        self.live.remove(path);
        self.durable.remove(path);
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
