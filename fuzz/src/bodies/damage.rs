//! Damage to the files of a store: what one step of a script of `segment_dir` does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sharestate::fsio::Fs;
use sharestate::fsio::sim::SimFs;
use sharestate::log::frame::seal::seal_segment;
use sharestate::log::{Lsn, segment_file_name};

use super::store_base::Base;

pub const ROOT: &str = "/store";
/// Length of one step of a script.
pub const EDIT_BYTES: usize = 8;

pub type Files = BTreeMap<PathBuf, Vec<u8>>;

/// The files of a store directory, with what was done to them.
pub struct Damaged<'a> {
    pub base: &'a Base,
    pub files: Files,
    /// Whether checksums were made right again behind a change.
    pub forged: bool,
}

pub fn wal() -> PathBuf {
    Path::new(ROOT).join("wal")
}

pub fn segment_path(first_lsn: Lsn) -> PathBuf {
    wal().join(segment_file_name(first_lsn))
}

impl<'a> Damaged<'a> {
    pub fn new(base: &'a Base) -> Self {
        let segments = base.segments.iter();
        let mut files: Files =
            segments.map(|(lsn, bytes)| (segment_path(*lsn), bytes.clone())).collect();
        files.insert(Path::new(ROOT).join("STORE"), base.store.clone());
        Self { base, files, forged: false }
    }

    /// Carries out one change: operation, file, offset, length, value, two more.
    pub fn edit(&mut self, edit: [u8; EDIT_BYTES]) {
        let [operation, file, high, low, length, value, more, last] = edit;
        let names: Vec<PathBuf> = self.files.keys().cloned().collect();
        let Some(path) = names.get(usize::from(file) % names.len().max(1)).cloned() else { return };
        let other = names[usize::from(more) % names.len()].clone();
        let bytes = self.files.get_mut(&path).expect("is listed");
        let at = usize::from(u16::from_be_bytes([high, low])) % (bytes.len() + 1);
        let end = (at + usize::from(length) * 8 + 1).min(bytes.len());
        match operation % 14 {
            0 if at < bytes.len() => bytes[at] ^= 1 << (value % 8),
            1 => bytes[at..end].fill(value),
            2 => bytes[at..].fill(0),
            3 => bytes.truncate(at),
            4 => {
                let from = (at / 512 * 512).min(bytes.len());
                let to = (from + 512).min(bytes.len());
                bytes[from..to].fill(0);
            }
            5 => {
                let source = self.files[&other].clone();
                let from = (usize::from(last) * 16).min(source.len());
                let size = (end - at).min(source.len() - from);
                let bytes = self.files.get_mut(&path).expect("is listed");
                bytes[at..at + size].copy_from_slice(&source[from..from + size]);
            }
            6 => drop(self.files.remove(&path)),
            7 => {
                let copy = bytes.clone();
                self.files.insert(segment_path(Lsn::from(value) + 1), copy);
            }
            8 => {
                let bytes = std::mem::take(bytes);
                let otherwise = self.files.insert(other, bytes).expect("is listed");
                self.files.insert(path, otherwise);
            }
            9 => bytes.extend(vec![value; usize::from(length) + 1]),
            10 => {
                let names = ["wal/prepared.tmp", "wal/notes.txt", "CREATING", "quarantine/x.torn"];
                let made = Path::new(ROOT).join(names[usize::from(value) % names.len()]);
                self.files.insert(made, vec![value; usize::from(length)]);
            }
            11 => self.tear(at, value, more),
            _ => self.forge(&path, at, end, value, last % 2 == 0),
        }
    }

    /// A power cut in the last segment: from some frame on, of every sector the old zeros or the
    /// new bytes.
    fn tear(&mut self, at: usize, kept: u8, more: u8) {
        let Some((first_lsn, whole)) = self.base.segments.last() else { return };
        let last = self.base.segments.len() - 1;
        let frames: Vec<_> = self.base.frames.iter().filter(|frame| frame.file == last).collect();
        let from = frames[at % frames.len()].from;
        let mut torn = whole.clone();
        for (index, sector) in torn.chunks_mut(512).enumerate() {
            let is_kept = u16::from_be_bytes([kept, more]) >> (index % 16) & 1 == 1;
            let start = from.saturating_sub(index * 512).min(sector.len());
            if !is_kept {
                sector[start..].fill(0);
            }
        }
        self.files.insert(segment_path(*first_lsn), torn);
    }

    fn forge(&mut self, path: &Path, at: usize, end: usize, value: u8, chain: bool) {
        self.forged = true;
        let bytes = self.files.get_mut(path).expect("is listed");
        if end > at {
            bytes[at..end.min(at + 4)].fill(value);
        }
        seal_segment(bytes, chain);
    }

    pub fn disk(&self) -> SimFs {
        let fs = SimFs::new(0);
        for dir in [PathBuf::from(ROOT), wal(), Path::new(ROOT).join("quarantine")] {
            fs.create_dir(&dir).expect("memory");
            fs.sync_dir(dir.parent().expect("has one")).expect("memory");
        }
        for (path, bytes) in self.files() {
            fs.set_content(path, bytes);
        }
        fs
    }

    /// The files. `CREATING` without `STORE` is how a store says that it was never finished; only
    /// somebody who wants that brings both about.
    fn files(&self) -> impl Iterator<Item = (&PathBuf, &Vec<u8>)> {
        let finished = self.files.contains_key(&Path::new(ROOT).join("STORE"));
        let is_mark = |path: &Path| path.ends_with("CREATING");
        self.files.iter().filter(move |(path, _)| finished || !is_mark(path.as_path()))
    }
}
