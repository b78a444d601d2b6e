//! The operating system's file system.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::FallocateFlags;
use rustix::io::{Errno, retry_on_intr};

use super::{DirEntry, Fs, FsError, FsFile, FsOp, LockError, LockGuard, Mapped, OpenMode};

/// The operating system's file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealFs;

#[derive(Debug)]
struct RealFile {
    file: File,
    path: PathBuf,
}

/// The lock is the open file description's: closing it releases the lock.
#[derive(Debug)]
struct RealLock {
    _file: File,
}

impl LockGuard for RealLock {}

impl Fs for RealFs {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Box<dyn FsFile>, FsError> {
        let mut options = OpenOptions::new();
        options.read(true);
        let op = match mode {
            OpenMode::Read => FsOp::Open,
            OpenMode::ReadWrite => {
                options.write(true);
                FsOp::Open
            }
            OpenMode::CreateNew => {
                options.write(true).create_new(true);
                FsOp::Create
            }
        };
        let file = options.open(path).map_err(|source| FsError::new(op, path, source))?;
        Ok(Box::new(RealFile { file, path: path.to_owned() }))
    }

    fn create_dir(&self, path: &Path) -> Result<(), FsError> {
        fs::create_dir(path).map_err(|source| FsError::new(FsOp::CreateDir, path, source))
    }

    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>, FsError> {
        let failed = |source| FsError::new(FsOp::List, dir, source);
        let mut entries = Vec::new();
        for entry in fs::read_dir(dir).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            match entry.metadata() {
                Ok(metadata) => entries.push(DirEntry {
                    name: entry.file_name(),
                    is_dir: metadata.is_dir(),
                    len: metadata.len(),
                }),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
            }
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn exists(&self, path: &Path) -> Result<bool, FsError> {
        path.try_exists().map_err(|source| FsError::new(FsOp::Exists, path, source))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), FsError> {
        fs::rename(from, to).map_err(|source| FsError::new(FsOp::Rename, from, source))
    }

    fn remove_file(&self, path: &Path) -> Result<(), FsError> {
        fs::remove_file(path).map_err(|source| FsError::new(FsOp::Remove, path, source))
    }

    fn sync_dir(&self, dir: &Path) -> Result<(), FsError> {
        File::open(dir)
            .and_then(|dir| dir.sync_all())
            .map_err(|source| FsError::new(FsOp::SyncDir, dir, source))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn LockGuard>, LockError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|source| FsError::new(FsOp::Lock, path, source))?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(RealLock { _file: file })),
            Err(TryLockError::WouldBlock) => Err(LockError::Held { path: path.to_owned() }),
            Err(TryLockError::Error(source)) => Err(FsError::new(FsOp::Lock, path, source).into()),
        }
    }

    fn lock_dir(&self, dir: &Path) -> Result<Option<Box<dyn LockGuard>>, LockError> {
        let file = File::open(dir).map_err(|source| FsError::new(FsOp::Lock, dir, source))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(RealLock { _file: file }))),
            Err(TryLockError::WouldBlock) => Err(LockError::Held { path: dir.to_owned() }),
            // NFS wants a file that is open for writing, which no directory ever is.
            Err(TryLockError::Error(error)) => {
                tracing::debug!(%error, dir = %dir.display(), "the directory cannot be locked");
                Ok(None)
            }
        }
    }

    fn map(&self, path: &Path) -> Result<Option<Mapped>, FsError> {
        File::open(path)
            .and_then(|file| Mapped::new(&file))
            .map(Some)
            .map_err(|source| FsError::new(FsOp::Map, path, source))
    }
}

impl RealFile {
    fn failed(&self, op: FsOp) -> impl FnOnce(io::Error) -> FsError + '_ {
        move |source| FsError::new(op, &self.path, source)
    }
}

impl FsFile for RealFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize, FsError> {
        self.file
            .read_at(buf, offset)
            .map_err(|source| FsError::at(FsOp::Read, &self.path, offset, source))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize, FsError> {
        self.file
            .write_at(buf, offset)
            .map_err(|source| FsError::at(FsOp::Write, &self.path, offset, source))
    }

    fn sync_data(&self) -> Result<(), FsError> {
        self.file.sync_data().map_err(self.failed(FsOp::SyncData))
    }

    fn sync_all(&self) -> Result<(), FsError> {
        self.file.sync_all().map_err(self.failed(FsOp::SyncAll))
    }

    fn set_len(&self, len: u64) -> Result<(), FsError> {
        self.file.set_len(len).map_err(self.failed(FsOp::SetLen))
    }

    fn allocate(&self, len: u64) -> Result<(), FsError> {
        let answer =
            retry_on_intr(|| rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, len));
        match answer {
            // Not every file system can; the zeros written afterwards reserve the space there.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(errno) => Err(self.failed(FsOp::Allocate)(errno.into())),
        }
    }

    fn len(&self) -> Result<u64, FsError> {
        self.file.metadata().map(|metadata| metadata.len()).map_err(self.failed(FsOp::Len))
    }

    fn path(&self) -> &Path {
        &self.path
    }
}
