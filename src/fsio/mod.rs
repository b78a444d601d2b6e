//! The only place that touches files.
//!
//! Owns: the [`Fs`] and [`FsFile`] traits, the real file system behind them, a simulated one for
//! crash tests, and the few loops every caller needs (whole reads, whole writes, durable replace).
//! Must never know what the files mean.
//!
//! Nothing here is durable until the matching sync returned: file content after
//! [`FsFile::sync_data`] or [`FsFile::sync_all`], a created, renamed or removed name after
//! [`Fs::sync_dir`] of its directory.

use crate::seeded;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

mod mmap;
mod real;
#[cfg(any(test, feature = "testing"))]
pub mod sim;

pub use mmap::Mapped;
pub use real::RealFs;

/// A file system as the store sees it.
pub trait Fs: fmt::Debug + Send + Sync + 'static {
    /// Opens a file.
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Box<dyn FsFile>, FsError>;

    /// Creates one directory; its parent must exist.
    fn create_dir(&self, path: &Path) -> Result<(), FsError>;

    /// The entries of a directory, sorted by name. One that vanishes meanwhile is left out.
    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>, FsError>;

    /// Whether something has this name.
    fn exists(&self, path: &Path) -> Result<bool, FsError>;

    /// Renames a file, replacing an existing target in one step.
    fn rename(&self, from: &Path, to: &Path) -> Result<(), FsError>;

    /// Unlinks a file.
    fn remove_file(&self, path: &Path) -> Result<(), FsError>;

    /// Makes the names created, renamed and removed in `dir` durable.
    fn sync_dir(&self, dir: &Path) -> Result<(), FsError>;

    /// Takes the advisory lock on `path` without waiting, creating the file if it is absent. The
    /// lock ends with the guard, or with the process.
    fn lock(&self, path: &Path) -> Result<Box<dyn LockGuard>, LockError>;

    /// Takes an advisory lock on a directory itself, which is there even when somebody has deleted
    /// the lock file. `None` where directories cannot be locked.
    fn lock_dir(&self, dir: &Path) -> Result<Option<Box<dyn LockGuard>>, LockError> {
        let _ = dir;
        Ok(None)
    }

    /// Maps a file for reading, for offline tools only: damage below the file system reaches the
    /// reader of a map as SIGBUS, not as an error. `None` where there is nothing to map.
    fn map(&self, path: &Path) -> Result<Option<Mapped>, FsError> {
        let _ = path;
        Ok(None)
    }
}

/// An open file with positional I/O.
pub trait FsFile: fmt::Debug + Send + Sync {
    /// Reads at `offset`. May be short; 0 means end of file. See [`read_up_to`].
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize, FsError>;

    /// Writes at `offset`. May be short. See [`write_all_at`].
    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize, FsError>;

    /// Makes the content, and the length needed to read it, durable.
    fn sync_data(&self) -> Result<(), FsError>;

    /// Makes the content and all metadata durable.
    fn sync_all(&self) -> Result<(), FsError>;

    /// Cuts the file to `len` bytes, or extends it with zeros.
    fn set_len(&self, len: u64) -> Result<(), FsError>;

    /// Reserves space for `len` bytes, extending the file. A hint where it is unsupported.
    fn allocate(&self, len: u64) -> Result<(), FsError>;

    /// Length in bytes.
    fn len(&self) -> Result<u64, FsError>;

    /// Whether the file has no bytes.
    fn is_empty(&self) -> Result<bool, FsError> {
        Ok(self.len()? == 0)
    }

    /// The path it was opened by, for error reports.
    fn path(&self) -> &Path;
}

/// Holds an advisory lock until it is dropped.
pub trait LockGuard: fmt::Debug + Send + Sync {}

/// How to open a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// An existing file, for reading.
    Read,
    /// An existing file, for reading and writing.
    ReadWrite,
    /// A new file, for reading and writing; fails if the name is taken.
    CreateNew,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    /// Its name within the directory.
    pub name: OsString,
    /// Whether it is a directory.
    pub is_dir: bool,
    /// Its length in bytes.
    pub len: u64,
}

/// The kinds of calls, for error reports and for fault plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FsOp {
    /// [`Fs::open`] of an existing file.
    Open,
    /// [`Fs::open`] with [`OpenMode::CreateNew`].
    Create,
    /// [`Fs::create_dir`].
    CreateDir,
    /// [`Fs::list`].
    List,
    /// [`Fs::exists`].
    Exists,
    /// [`Fs::rename`].
    Rename,
    /// [`Fs::remove_file`].
    Remove,
    /// [`Fs::sync_dir`].
    SyncDir,
    /// [`Fs::lock`].
    Lock,
    /// [`Fs::map`].
    Map,
    /// [`FsFile::read_at`].
    Read,
    /// [`FsFile::write_at`].
    Write,
    /// [`FsFile::sync_data`].
    SyncData,
    /// [`FsFile::sync_all`].
    SyncAll,
    /// [`FsFile::set_len`].
    SetLen,
    /// [`FsFile::allocate`].
    Allocate,
    /// [`FsFile::len`].
    Len,
    /// A read of a database's rows, where a simulated disk counts them.
    ReadRows,
    /// An atomic synced batch of a database's rows, where a simulated disk counts them.
    WriteRows,
}

impl fmt::Display for FsOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FsOp::Open => "open",
            FsOp::Create => "create",
            FsOp::CreateDir => "create directory",
            FsOp::List => "list directory",
            FsOp::Exists => "stat",
            FsOp::Rename => "rename",
            FsOp::Remove => "unlink",
            FsOp::SyncDir => "sync directory",
            FsOp::Lock => "lock",
            FsOp::Map => "map",
            FsOp::Read => "read",
            FsOp::Write => "write",
            FsOp::SyncData => "fdatasync",
            FsOp::SyncAll => "fsync",
            FsOp::SetLen => "set length",
            FsOp::Allocate => "allocate",
            FsOp::Len => "get length",
            FsOp::ReadRows => "read rows",
            FsOp::WriteRows => "write rows",
        })
    }
}

/// A failed call: what was tried, where, and what the operating system said.
#[derive(Debug, thiserror::Error)]
#[error("cannot {op} {}{}: {source}", path.display(), At(*offset))]
pub struct FsError {
    /// What was tried.
    pub op: FsOp,
    /// On which path.
    pub path: PathBuf,
    /// At which byte offset, where the call has one.
    pub offset: Option<u64>,
    /// The operating system's answer.
    pub source: io::Error,
}

impl FsError {
    /// An error of `op` on `path`, without an offset.
    pub fn new(op: FsOp, path: &Path, source: io::Error) -> FsError {
        FsError { op, path: path.to_owned(), offset: None, source }
    }

    /// An error of `op` on `path` at `offset`.
    pub fn at(op: FsOp, path: &Path, offset: u64, source: io::Error) -> FsError {
        FsError { op, path: path.to_owned(), offset: Some(offset), source }
    }

    /// The operating system's answer, by kind.
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }

    /// The operating system's error number, where it gave one.
    pub fn raw_os_error(&self) -> Option<i32> {
        self.source.raw_os_error()
    }

    /// Whether there is no space, or no quota, left.
    pub fn is_full(&self) -> bool {
        matches!(self.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
}

/// Prints ` at byte N`, or nothing.
struct At(Option<u64>);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |offset| write!(f, " at byte {offset}"))
    }
}

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Somebody else holds it.
    #[error("{} is locked by another process or handle", path.display())]
    Held {
        /// The lock file.
        path: PathBuf,
    },
    /// The lock file could not be opened or locked.
    #[error(transparent)]
    Fs(#[from] FsError),
}

/// Reads until `buf` is full or the file ends; tells how many bytes were read. Short reads are
/// continued, interrupted ones repeated.
pub fn read_up_to(file: &dyn FsFile, buf: &mut [u8], offset: u64) -> Result<usize, FsError> {
    let mut done = 0;
    while done < buf.len() {
        match file.read_at(&mut buf[done..], offset.saturating_add(done as u64)) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(_) if seeded::bug("raft-engine-191") => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Fills `buf`; a file that ends before is an error of kind `UnexpectedEof`.
pub fn read_exact_at(file: &dyn FsFile, buf: &mut [u8], offset: u64) -> Result<(), FsError> {
    let read = read_up_to(file, buf, offset)?;
    if read == buf.len() {
        return Ok(());
    }
    let end = offset.saturating_add(read as u64);
    Err(FsError::at(FsOp::Read, file.path(), end, io::ErrorKind::UnexpectedEof.into()))
}

/// Writes all of `buf`. Short writes are continued, interrupted ones repeated; a write that
/// transfers nothing is an error of kind `WriteZero`.
pub fn write_all_at(file: &dyn FsFile, buf: &[u8], offset: u64) -> Result<(), FsError> {
    let mut done = 0;
    while done < buf.len() {
        let at = offset.saturating_add(done as u64);
        match file.write_at(&buf[done..], at) {
            Ok(0) => {
                let source = io::ErrorKind::WriteZero.into();
                return Err(FsError::at(FsOp::Write, file.path(), at, source));
            }
            Ok(written) => done += written,
            Err(error) if seeded::bug("raft-engine-242") => return Err(error),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes zeros over `from..to`.
pub fn write_zeros_at(file: &dyn FsFile, from: u64, to: u64) -> Result<(), FsError> {
    static ZEROS: [u8; 256 << 10] = [0; 256 << 10];
    let mut at = from;
    while at < to {
        let step = (to - at).min(ZEROS.len() as u64);
        write_all_at(file, &ZEROS[..step as usize], at)?;
        at += step;
    }
    Ok(())
}

/// Reads a whole file of at most `limit` bytes; a longer one is an error of kind `FileTooLarge`.
pub fn read_file(fs: &dyn Fs, path: &Path, limit: u64) -> Result<Vec<u8>, FsError> {
    let file = fs.open(path, OpenMode::Read)?;
    let len = file.len()?;
    if len > limit {
        return Err(FsError::new(FsOp::Read, path, io::ErrorKind::FileTooLarge.into()));
    }
    let mut bytes = vec![0; len as usize];
    read_exact_at(&*file, &mut bytes, 0)?;
    Ok(bytes)
}

/// Replaces the file `name` in `dir` so that a crash leaves the old content or the new, never a
/// mixture: writes `name.tmp`, syncs it, renames it over `name` and syncs the directory.
pub fn write_durably(fs: &dyn Fs, dir: &Path, name: &str, bytes: &[u8]) -> Result<(), FsError> {
    let target = dir.join(name);
    let temporary = dir.join(format!("{name}.tmp"));
    if fs.exists(&temporary)? {
        // Left over from a crash before the rename; nobody has ever read it.
        fs.remove_file(&temporary)?;
    }
    let file = fs.open(&temporary, OpenMode::CreateNew)?;
    write_all_at(&*file, bytes, 0)?;
    if !seeded::bug("KAFKA-16541") {
        file.sync_all()?;
    }
    fs.rename(&temporary, &target)?;
    fs.sync_dir(dir)
}

/// Makes the name of `path` durable in the directory that holds it.
pub fn sync_parent(fs: &dyn Fs, path: &Path) -> Result<(), FsError> {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => fs.sync_dir(Path::new(".")),
        Some(parent) => fs.sync_dir(parent),
        None => fs.sync_dir(path), // the root
    }
}

/// Makes a directory and its name durable; one that exists is fine.
pub fn ensure_dir(fs: &dyn Fs, path: &Path) -> Result<(), FsError> {
    if !fs.exists(path)? {
        fs.create_dir(path)?;
    }
    sync_parent(fs, path)
}

/// Copies a file, by bytes and not by links, so that a crash leaves the whole copy or none: as
/// [`write_durably`], but the directory is the caller's to sync.
pub fn copy_file(fs: &dyn Fs, from: &Path, to: &Path) -> Result<u64, FsError> {
    let mut temporary = to.as_os_str().to_owned();
    temporary.push(".tmp");
    let temporary = PathBuf::from(temporary);
    if fs.exists(&temporary)? {
        fs.remove_file(&temporary)?;
    }
    let source = fs.open(from, OpenMode::Read)?;
    let target = fs.open(&temporary, OpenMode::CreateNew)?;
    let mut buffer = vec![0; 1 << 20];
    let mut done = 0;
    loop {
        let read = read_up_to(&*source, &mut buffer, done)?;
        if read == 0 {
            break;
        }
        write_all_at(&*target, &buffer[..read], done)?;
        done += read as u64;
    }
    target.sync_all()?;
    fs.rename(&temporary, to)?;
    Ok(done)
}

/// Copies the files of a directory, made if it is absent, whose names `wanted` picks; directories
/// in it are left out. Everything is durable when it returns. Answers how many bytes were copied.
pub fn copy_files(
    fs: &dyn Fs,
    from: &Path,
    to: &Path,
    wanted: &dyn Fn(&std::ffi::OsStr) -> bool,
) -> Result<u64, FsError> {
    ensure_dir(fs, to)?;
    let mut bytes = 0;
    for entry in fs.list(from)? {
        if !entry.is_dir && wanted(&entry.name) {
            bytes += copy_file(fs, &from.join(&entry.name), &to.join(&entry.name))?;
        }
    }
    fs.sync_dir(to)?;
    Ok(bytes)
}
