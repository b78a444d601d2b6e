//! A file system in memory that forgets what was not synced, for crash tests.
//!
//! Every file has a live image, which calls see, and a durable one, which survives a
//! [`power_cut`](SimFs::power_cut). Content becomes durable with [`FsFile::sync_data`] or
//! [`FsFile::sync_all`]; a created, renamed or removed name with [`Fs::sync_dir`] of its directory.
//! Calls are counted and traced, so that a test can stop the world at every single one of them.
//!
//! Deterministic: the same calls after the same [`SimFs::new`] give the same answers.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{DirEntry, Fs, FsError, FsFile, FsOp, LockError, LockGuard, OpenMode};

mod cut;
mod disk;
mod images;
mod plan;
mod story;

pub use cut::{Content, Keep, Page, PageModel, Survivors};
use disk::{Disk, FileId};
pub use plan::{EACCES, EINTR, EIO, EMFILE, ENOSPC, EROFS, Fault, Repeat, Transfer, When};
use plan::{Fate, Plan};

/// The simulated file system. Clones share it.
#[derive(Debug, Clone)]
pub struct SimFs {
    world: Arc<Mutex<World>>,
}

/// One call, as the trace records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Its number, from 1.
    pub number: u64,
    /// What was called.
    pub op: FsOp,
    /// On which path; for a rename, the old one.
    pub path: PathBuf,
    /// At which byte offset, or with which length, where the call has one.
    pub offset: u64,
    /// Bytes to transfer, for reads and writes.
    pub bytes: usize,
}

impl Call {
    /// Whether it changes what a reboot would find, if it is not the last one before the crash.
    pub fn mutates(&self) -> bool {
        !matches!(
            self.op,
            FsOp::Open
                | FsOp::List
                | FsOp::Exists
                | FsOp::Lock
                | FsOp::Map
                | FsOp::Read
                | FsOp::ReadRows
                | FsOp::Len
        )
    }
}

#[derive(Debug)]
struct World {
    disk: Disk,
    plan: Plan,
    trace: Vec<Call>,
    locks: BTreeSet<PathBuf>,
}

impl World {
    fn traced(&self, number: u64) -> Option<Call> {
        self.trace.get(usize::try_from(number.checked_sub(1)?).ok()?).cloned()
    }
}

impl SimFs {
    /// An empty file system with the directory `/`. The seed decides the lengths of
    /// [`Transfer::UpTo`].
    pub fn new(seed: u64) -> SimFs {
        SimFs::with(Disk::new(), seed)
    }

    fn with(disk: Disk, seed: u64) -> SimFs {
        let world =
            World { disk, plan: Plan::new(seed), trace: Vec::new(), locks: BTreeSet::new() };
        SimFs { world: Arc::new(Mutex::new(world)) }
    }

    /// The file system after the machine lost power and came back: no faults, no locks, and of
    /// un-synced changes what `model` says.
    pub fn power_cut(&self, model: PageModel) -> SimFs {
        let world = self.world();
        SimFs::with(world.disk.after_power_cut(model), world.plan.seed())
    }

    /// The file system after the machine lost power and came back: no faults, no locks, and of
    /// un-synced changes exactly what `survivors` names.
    #[must_use]
    pub fn power_cut_leaving(&self, survivors: &Survivors) -> SimFs {
        let world = self.world();
        SimFs::with(world.disk.after_choice(survivors), world.plan.seed())
    }

    /// The calls that changed names which no sync of their directory has covered, in order.
    #[must_use]
    pub fn unsynced_names(&self) -> Vec<Call> {
        let world = self.world();
        let calls = world.disk.unsynced.iter().map(|change| change.call);
        calls.filter_map(|number| world.traced(number)).collect()
    }

    /// The writes and changes of length that no sync of their file has covered, in order.
    #[must_use]
    pub fn unsynced_writes(&self) -> Vec<Call> {
        let world = self.world();
        let calls = world.disk.unsynced_writes();
        calls.into_iter().filter_map(|number| world.traced(number)).collect()
    }

    /// The pages of this size, in bytes, that the un-synced writes touch.
    #[must_use]
    pub fn unsynced_pages(&self, granularity: usize) -> Vec<Page> {
        self.world().disk.unsynced_pages(granularity)
    }

    /// The file system after the process was killed and started again: no faults, no locks, and
    /// un-synced changes are as visible, and as little durable, as before.
    pub fn restart(&self) -> SimFs {
        let world = self.world();
        SimFs::with(world.disk.clone(), world.plan.seed())
    }

    /// The call with this number, and every later one, fails without effect.
    pub fn crash_before(&self, call: u64) {
        self.world().plan.crash_before(call);
    }

    /// The call with this number takes effect, but it and every later one report failure.
    pub fn crash_after(&self, call: u64) {
        self.world().plan.crash_after(call);
    }

    /// Whether a planned crash has happened.
    pub fn is_crashed(&self) -> bool {
        self.world().plan.is_crashed()
    }

    /// Makes matching calls fail. A failed sync leaves its changes visible but never durable, as
    /// the kernel does that marks pages clean it could not write.
    pub fn fail(&self, fault: Fault) {
        self.world().plan.add(fault);
    }

    /// Takes back all faults, transfer lengths and the capacity; a crash stays.
    pub fn clear_faults(&self) {
        self.world().plan.clear();
    }

    /// Another seed for the lengths of [`Transfer::UpTo`] from here on.
    pub fn reseed(&self, seed: u64) {
        self.world().plan.reseed(seed);
    }

    /// How many bytes reads transfer.
    pub fn set_reads(&self, transfer: Transfer) {
        self.world().plan.reads = transfer;
    }

    /// How many bytes writes transfer.
    pub fn set_writes(&self, transfer: Transfer) {
        self.world().plan.writes = transfer;
    }

    /// Every `n`-th read or write is interrupted first; 0 for none.
    pub fn interrupt_every(&self, n: u64) {
        self.world().plan.interrupt_every = n;
    }

    /// The disk is full once all files together have this many bytes.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.world().plan.capacity = bytes;
    }

    /// Bytes of all files.
    pub fn used(&self) -> u64 {
        self.world().disk.used()
    }

    /// Number of calls so far.
    pub fn calls(&self) -> u64 {
        self.world().trace.len() as u64
    }

    /// All calls so far.
    pub fn trace(&self) -> Vec<Call> {
        self.world().trace.clone()
    }

    /// A file's live content, without counting as a call.
    pub fn content(&self, path: &Path) -> Option<Vec<u8>> {
        let world = self.world();
        world.disk.file(path).map(|id| world.disk.live(id).to_vec())
    }

    /// The paths of all files, without counting as a call.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        self.world().disk.paths()
    }

    /// Unlinks a file durably, without counting as a call: what somebody deleted.
    pub fn remove_content(&self, path: &Path) {
        self.world().disk.remove_content(path);
    }

    /// Replaces a file's content, live and durable, without counting as a call: damage, or what
    /// somebody restored. Creates the file if it is absent.
    pub fn set_content(&self, path: &Path, bytes: &[u8]) {
        self.world().disk.set_content(path, bytes);
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call of a database that lives on this disk beside the files: counted, traced, and struck
    /// by faults and crashes as any other. `run` must be atomic and durable.
    pub(crate) fn rows_call<T>(
        &self,
        op: FsOp,
        path: &Path,
        run: impl FnOnce() -> T,
    ) -> Result<T, FsError> {
        self.call(op, path, 0, 0, |_| Ok(run()))
    }

    /// Counts and traces a call, lets the plan interfere, and runs it.
    fn call<T>(
        &self,
        op: FsOp,
        path: &Path,
        offset: u64,
        bytes: usize,
        run: impl FnOnce(&mut World) -> io::Result<T>,
    ) -> Result<T, FsError> {
        crate::sync::step();
        let world = &mut *self.world();
        let number = world.trace.len() as u64 + 1;
        let call = Call { number, op, path: path.to_owned(), offset, bytes };
        let fate = world.plan.fate(&call);
        world.trace.push(call);
        world.disk.call = number;
        let answer = match fate {
            Fate::Run => run(world),
            Fate::RunThenFail(error) => run(world).and(Err(error)),
            Fate::Fail(error) => Err(error),
        };
        answer.map_err(|source| {
            let offset = matches!(op, FsOp::Read | FsOp::Write).then_some(offset);
            FsError { op, path: path.to_owned(), offset, source }
        })
    }
}

impl Fs for SimFs {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Box<dyn FsFile>, FsError> {
        let op = if mode == OpenMode::CreateNew { FsOp::Create } else { FsOp::Open };
        let id = self.call(op, path, 0, 0, |world| {
            if mode == OpenMode::CreateNew {
                world.disk.create(path)
            } else {
                world.disk.open(path)
            }
        })?;
        Ok(Box::new(SimFile { fs: self.clone(), id, path: path.to_owned() }))
    }

    fn create_dir(&self, path: &Path) -> Result<(), FsError> {
        self.call(FsOp::CreateDir, path, 0, 0, |world| world.disk.create_dir(path))
    }

    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>, FsError> {
        self.call(FsOp::List, dir, 0, 0, |world| world.disk.list(dir))
    }

    fn exists(&self, path: &Path) -> Result<bool, FsError> {
        self.call(FsOp::Exists, path, 0, 0, |world| Ok(world.disk.exists(path)))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), FsError> {
        self.call(FsOp::Rename, from, 0, 0, |world| world.disk.rename(from, to))
    }

    fn remove_file(&self, path: &Path) -> Result<(), FsError> {
        self.call(FsOp::Remove, path, 0, 0, |world| world.disk.remove(path))
    }

    fn sync_dir(&self, dir: &Path) -> Result<(), FsError> {
        self.call(FsOp::SyncDir, dir, 0, 0, |world| world.disk.sync_dir(dir))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn LockGuard>, LockError> {
        let taken = self.call(FsOp::Lock, path, 0, 0, |world| {
            if !world.disk.exists(path) {
                world.disk.create(path)?;
            }
            Ok(world.locks.insert(path.to_owned()))
        })?;
        if !taken {
            return Err(LockError::Held { path: path.to_owned() });
        }
        Ok(Box::new(SimLock { fs: self.clone(), path: path.to_owned() }))
    }
}

#[derive(Debug)]
struct SimLock {
    fs: SimFs,
    path: PathBuf,
}

impl LockGuard for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.fs.world().locks.remove(&self.path);
    }
}

#[derive(Debug)]
struct SimFile {
    fs: SimFs,
    id: FileId,
    path: PathBuf,
}

impl SimFile {
    fn sync(&self, op: FsOp) -> Result<(), FsError> {
        let answer = self.fs.call(op, &self.path, 0, 0, |world| {
            world.disk.sync(self.id);
            Ok(())
        });
        let world = &mut *self.fs.world();
        if answer.is_err() && !world.plan.is_crashed() {
            world.disk.forget_unsynced(self.id);
        }
        answer
    }
}

impl FsFile for SimFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize, FsError> {
        self.fs.call(FsOp::Read, &self.path, offset, buf.len(), |world| {
            let bytes = world.plan.read_length(buf.len());
            Ok(world.disk.read(self.id, &mut buf[..bytes], offset))
        })
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize, FsError> {
        self.fs.call(FsOp::Write, &self.path, offset, buf.len(), |world| {
            let bytes = world.plan.write_length(buf.len());
            let end = world.disk.grow_to(self.id, offset, bytes, world.plan.capacity)?;
            let written = (end - offset) as usize;
            world.disk.write(self.id, &buf[..written], offset);
            Ok(written)
        })
    }

    fn sync_data(&self) -> Result<(), FsError> {
        self.sync(FsOp::SyncData)
    }

    fn sync_all(&self) -> Result<(), FsError> {
        self.sync(FsOp::SyncAll)
    }

    fn set_len(&self, len: u64) -> Result<(), FsError> {
        self.fs.call(FsOp::SetLen, &self.path, len, 0, |world| {
            world.disk.set_len(self.id, len);
            Ok(())
        })
    }

    fn allocate(&self, len: u64) -> Result<(), FsError> {
        self.fs.call(FsOp::Allocate, &self.path, len, 0, |world| {
            let have = world.disk.live(self.id).len() as u64;
            if len > have {
                world.disk.check_space(len - have, world.plan.capacity)?;
                world.disk.set_len(self.id, len);
            }
            Ok(())
        })
    }

    fn len(&self) -> Result<u64, FsError> {
        self.fs.call(FsOp::Len, &self.path, 0, 0, |world| Ok(world.disk.live(self.id).len() as u64))
    }

    fn path(&self) -> &Path {
        &self.path
    }
}
