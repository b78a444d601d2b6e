//! The open database, and how it is exchanged for a fresh one while it is read.
//!
//! A flush or compaction that fails in the background leaves RocksDB refusing every later write,
//! also when what was short is there again: the binding offers no `DB::Resume`. What helps is to
//! open it anew. Two writers of one directory cannot be, so a read-only handle serves meanwhile,
//! and goes on to serve when the database does not open for writing.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rocksdb::DB;

use super::{SnapshotError, applied_lsn};
use crate::fsio::{self, Fs, FsError, OpenMode, RealFs};

/// How long to wait for those who still read the old handle.
const PATIENCE: Duration =
    if cfg!(test) { Duration::from_millis(50) } else { Duration::from_secs(5) };
const PAUSE: Duration = Duration::from_millis(2);

/// Room that opening for writing wants at least: a manifest, options, a log file.
const ROOM_BYTES: u64 = 64 << 10;

/// RocksDB deletes a temporary file when it opens, so a kill leaves nothing behind; but none with
/// the number 0, which stands for "no manifest is being written".
const ROOM_FILE: &str = "000001.dbtmp";

/// The handle in use.
pub(super) struct Handle {
    db: RwLock<Arc<DB>>,
    /// A write has failed, and so may every later one.
    failed: AtomicBool,
}

/// What a handle is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

type Open<'a> = &'a dyn Fn(Access) -> Result<DB, SnapshotError>;

impl Handle {
    pub fn new(db: DB) -> Self {
        Self { db: RwLock::new(Arc::new(db)), failed: AtomicBool::new(false) }
    }

    /// The database, for one reading. It must not be kept: an exchange waits for it.
    pub fn db(&self) -> Arc<DB> {
        Arc::clone(&self.db.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    pub fn note_failure(&self) {
        self.failed.store(true, Ordering::Release);
    }

    /// Opens the database at `path` anew. There is a handle to read from throughout, whatever
    /// comes of it; after an error the next call begins again.
    ///
    /// # Errors
    /// [`SnapshotError::Storage`]: there is no room yet, it does not open, somebody does not stop
    /// reading, or, which is damage, it has lost what was written.
    pub fn exchange(&self, path: &Path, open: Open<'_>) -> Result<(), SnapshotError> {
        ask_for_room(path).map_err(|error| refusal(path, error.to_string()))?;
        let old = self.db();
        let applied = applied_lsn(&old, path)?;
        let reader = Arc::new(open(Access::Read)?);
        nothing_is_lost(applied, &reader, path)?;
        self.put(Arc::clone(&reader));
        if let Err(old) = close(old) {
            self.put(old);
            let reason = format!("the old handle is still read after {PATIENCE:?}");
            return Err(refusal(path, reason));
        }
        drop(reader);
        let writer = open(Access::Write)?;
        nothing_is_lost(applied, &writer, path)?;
        self.put(Arc::new(writer));
        self.failed.store(false, Ordering::Release);
        Ok(())
    }

    fn put(&self, db: Arc<DB>) {
        *self.db.write().unwrap_or_else(PoisonError::into_inner) = db;
    }
}

/// Closes the database once nobody else has it, or gives it back when that takes too long.
fn close(db: Arc<DB>) -> Result<(), Arc<DB>> {
    let since = Instant::now();
    let mut db = db;
    loop {
        match Arc::try_unwrap(db) {
            Ok(_closed) => return Ok(()),
            Err(shared) if since.elapsed() >= PATIENCE => return Err(shared),
            Err(shared) => db = shared,
        }
        std::thread::sleep(PAUSE);
    }
}

fn nothing_is_lost(applied: u64, db: &DB, path: &Path) -> Result<(), SnapshotError> {
    let found = applied_lsn(db, path)?;
    if found >= applied {
        return Ok(());
    }
    let reason = format!("applied LSN {found} was read back where {applied} had been written");
    Err(SnapshotError::Storage {
        path: path.to_owned(),
        operation: "reopen",
        reason,
        corrupt: true,
    })
}

/// A disk that is still full, or no longer writable, is no reason to give up a handle that reads.
fn ask_for_room(dir: &Path) -> Result<(), FsError> {
    let path = dir.join(ROOM_FILE);
    if RealFs.exists(&path)? {
        RealFs.remove_file(&path)?;
    }
    let file = RealFs.open(&path, OpenMode::CreateNew)?;
    let asked = fsio::write_zeros_at(&*file, 0, ROOM_BYTES).and_then(|()| file.sync_data());
    drop(file);
    RealFs.remove_file(&path)?;
    asked
}

fn refusal(path: &Path, reason: String) -> SnapshotError {
    let (path, operation) = (path.to_owned(), "reopen");
    SnapshotError::Storage { path, operation, reason, corrupt: false }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{META_APPLIED, RocksMode, RocksRows};
    use super::{Access, Fs as _, OpenMode, RealFs, SnapshotError};
    use crate::snapshot::{Family, RowOp, RowReader as _, RowStore as _};

    const CACHE_BYTES: usize = 1 << 20;

    /// Rows with applied LSN 7.
    fn rows(path: &Path) -> RocksRows {
        let rows = RocksRows::open(path, &RocksMode::Create, CACHE_BYTES).expect("create");
        applied(&rows, 7);
        rows
    }

    fn applied(rows: &RocksRows, lsn: u64) {
        let lsn = lsn.to_le_bytes().to_vec();
        rows.write(vec![RowOp::put(Family::Meta, META_APPLIED.to_vec(), lsn)]).expect("write");
    }

    fn is_read(rows: &RocksRows) -> bool {
        rows.get(Family::Meta, META_APPLIED).expect("read").is_some()
    }

    fn refused() -> SnapshotError {
        super::refusal(Path::new("/db"), "no".to_owned())
    }

    #[test]
    fn a_fresh_handle_takes_the_place_of_one_that_failed() {
        let dir = tempfile::tempdir().expect("directory");
        let rows = rows(&dir.path().join("db"));
        rows.handle.note_failure();
        rows.revive().expect("nothing is in the way");
        assert!(!rows.handle.has_failed() && is_read(&rows));
        applied(&rows, 8);
    }

    #[test]
    fn what_a_kill_leaves_of_asking_for_room_is_gone_after_the_next_opening() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("db");
        drop(rows(&path));
        let left = path.join(super::ROOM_FILE);
        RealFs.open(&left, OpenMode::CreateNew).expect("create");
        let rows = RocksRows::open(&path, &RocksMode::ReadWrite, CACHE_BYTES).expect("open");
        assert!(!RealFs.exists(&left).expect("look") && is_read(&rows));
    }

    #[test]
    fn rows_are_read_whatever_part_of_an_exchange_fails_and_the_next_one_succeeds() {
        let dir = tempfile::tempdir().expect("directory");
        let rows = rows(&dir.path().join("db"));
        rows.handle.note_failure();
        for failing in [Access::Read, Access::Write] {
            let open = |access| match access == failing {
                true => Err(refused()),
                false => rows.open_again(access),
            };
            let error = rows.handle.exchange(&rows.path, &open).expect_err("it does not open");
            assert_eq!(error.to_string(), refused().to_string());
            assert!(is_read(&rows) && rows.handle.has_failed(), "{failing:?}");
        }
        rows.revive().expect("nothing is in the way");
        applied(&rows, 8);
    }

    #[test]
    fn a_reader_that_does_not_end_is_waited_for_and_then_named() {
        let dir = tempfile::tempdir().expect("directory");
        let rows = rows(&dir.path().join("db"));
        rows.handle.note_failure();
        let reading = rows.handle.db();
        let error = rows.revive().expect_err("the old handle is held");
        assert!(error.to_string().contains("still read"), "{error}");
        assert!(is_read(&rows));
        drop(reading);
        rows.revive().expect("it is free now");
        applied(&rows, 8);
    }

    #[test]
    fn rows_that_went_back_are_damage() {
        let dir = tempfile::tempdir().expect("directory");
        let old = rows(&dir.path().join("old"));
        let rows = rows(&dir.path().join("new"));
        applied(&rows, 8);
        for stale in [Access::Read, Access::Write] {
            let open = |access| match access == stale {
                true => old.open_again(Access::Read),
                false => rows.open_again(access),
            };
            let error = rows.handle.exchange(&rows.path, &open).expect_err("7 is before 8");
            assert!(matches!(error, SnapshotError::Storage { corrupt: true, .. }), "{error}");
            assert!(is_read(&rows), "{stale:?}");
        }
    }
}
