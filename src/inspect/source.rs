//! A store's directory as an onlooker sees it, and how to read it while a store is at work there.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use crate::engine::directory::{Contents, Directory, Identity};
use crate::error::OpenError;
use crate::fsio::{Fs, FsError, FsOp, RealFs};
use crate::log::LogError;
use crate::model::Lsn;
use crate::snapshot::{
    Family, RocksMode, RocksRows, RowOp, RowReader, RowStore, RowsVisitor, SnapshotError,
    SnapshotStats,
};

/// How often a reading that a store at work has spoilt is begun anew.
pub(super) const ATTEMPTS: u32 = 12;

/// Pause before the second attempt; later ones wait longer, up to so many times that.
const PAUSE: Duration = Duration::from_millis(20);
const PAUSES_MAX: u32 = 6;

/// Block cache of an onlooker: rows are read once.
const CACHE_BYTES: usize = 8 << 20;

/// A store's directory, without a lock.
#[derive(Debug)]
pub(super) struct Source {
    pub fs: Arc<dyn Fs>,
    pub directory: Directory,
    pub identity: Identity,
}

/// File names in the log and in the snapshot: they differ when a store at work changed something.
pub(super) type Names = Vec<OsString>;

impl Source {
    /// Finds out whose store it is.
    pub fn find(root: &Path) -> Result<Self, OpenError> {
        let fs: Arc<dyn Fs> = Arc::new(RealFs);
        let nothing = |reason| OpenError::NotAStore { path: root.to_owned(), reason };
        if !fs.exists(root)? {
            return Err(nothing("the directory does not exist"));
        }
        let directory = Directory::unlocked(Arc::clone(&fs), root);
        match directory.contents()? {
            Contents::Store(identity) => Ok(Self { fs, directory, identity }),
            Contents::Empty => Err(nothing("the directory is empty")),
            Contents::HalfMade => Err(nothing("its creation is not finished")),
        }
    }

    /// Opens the rows of the snapshot beside whoever writes them.
    pub fn rows(&self) -> Result<(RocksRows, TempDir), OpenError> {
        let scratch = tempfile::Builder::new()
            .prefix("sharestate-")
            .tempdir()
            .map_err(|source| FsError::new(FsOp::CreateDir, &std::env::temp_dir(), source))?;
        let snapshot = self.directory.snapshot();
        let mode = RocksMode::Secondary { scratch: scratch.path().to_owned() };
        let rows = RocksRows::open(&snapshot, &mode, CACHE_BYTES)?;
        Ok((rows, scratch))
    }

    /// The present file names.
    pub fn names(&self) -> Result<Names, FsError> {
        let mut names = Vec::new();
        for dir in [self.directory.wal(), self.directory.snapshot()] {
            if self.fs.exists(&dir)? {
                names.extend(self.fs.list(&dir)?.into_iter().map(|entry| entry.name));
            }
        }
        Ok(names)
    }

    /// The segments by name: first LSN and path, oldest first.
    pub fn segments(&self) -> Result<Vec<(Lsn, PathBuf)>, FsError> {
        let wal = self.directory.wal();
        let entries = self.fs.list(&wal)?;
        Ok(entries
            .into_iter()
            .filter_map(|entry| {
                let lsn = entry.name.to_str()?.strip_suffix(".wal")?.parse().ok()?;
                Some((lsn, wal.join(entry.name)))
            })
            .collect())
    }

    /// What to tell a scan of the log when the snapshot cannot say how far it reaches: as little as
    /// the segments themselves prove.
    pub fn least_applied(&self) -> Result<Lsn, FsError> {
        Ok(self.segments()?.first().map_or(0, |(lsn, _)| lsn.saturating_sub(1)))
    }

    /// Reads, and reads again when a store at work spoilt it.
    pub fn steadily<T>(
        &self,
        mut read: impl FnMut() -> Result<T, OpenError>,
    ) -> Result<T, OpenError> {
        for attempt in 1..=ATTEMPTS {
            let before = self.names()?;
            match read() {
                Err(error) if is_spoilt(&error) || self.names()? != before => pause(attempt),
                answer => return answer,
            }
        }
        Err(LogError::Overtaken { dir: self.directory.root().to_owned() }.into())
    }
}

/// Waits a little longer after every attempt.
pub(super) fn pause(attempt: u32) {
    std::thread::sleep(PAUSE.saturating_mul(attempt.min(PAUSES_MAX)));
}

fn is_spoilt(error: &OpenError) -> bool {
    matches!(error, OpenError::Log(LogError::Overtaken { .. }))
}

/// Rows that a snapshot and a check of the raw rows read together.
#[derive(Debug, Clone)]
pub(super) struct SharedRows(pub Arc<RocksRows>);

impl RowReader for SharedRows {
    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, SnapshotError> {
        self.0.get(family, key)
    }

    fn scan(
        &self,
        family: Family,
        from: &[u8],
        limit: usize,
    ) -> Result<Vec<(Box<[u8]>, Box<[u8]>)>, SnapshotError> {
        self.0.scan(family, from, limit)
    }
}

impl RowStore for SharedRows {
    fn path(&self) -> PathBuf {
        self.0.path()
    }

    fn at_once(&self, read: RowsVisitor<'_>) -> Result<(), SnapshotError> {
        self.0.at_once(read)
    }

    fn write(&self, ops: Vec<RowOp>) -> Result<(), SnapshotError> {
        self.0.write(ops)
    }

    fn copy_to(&self, target: &Path) -> Result<(), SnapshotError> {
        self.0.copy_to(target)
    }

    fn verify(&self) -> Result<(), SnapshotError> {
        self.0.verify()
    }

    fn stats(&self) -> SnapshotStats {
        self.0.stats()
    }
}
