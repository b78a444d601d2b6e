//! Rows in RocksDB. Owns RocksDB's settings and nothing else.

mod handle;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rocksdb::checkpoint::Checkpoint;
use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamily, ColumnFamilyDescriptor, DB, DBCompressionType,
    DBRecoveryMode, Direction, ErrorKind, IteratorMode, Options, ReadOptions, WriteBatch,
    WriteOptions, properties,
};

use self::handle::{Access, Handle};
use super::manifest::{self, Note};
use super::table::{Row, RowsVisitor};
use super::{Family, META_APPLIED, RowOp, RowReader, RowStore, SnapshotError, SnapshotStats};

/// How to open the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RocksMode {
    /// Make a new one; the directory must not hold one.
    Create,
    /// Open an existing one for writing. RocksDB changes files at that, and deletes those that it
    /// has no use for: whether all is well is to be found out [before](Self::ReadOnly).
    ReadWrite,
    /// Look at an existing one without changing anything, while nobody writes it.
    ReadOnly,
    /// Open beside a live writer, reading what is durable now. RocksDB keeps its own log file in
    /// `scratch`.
    Secondary {
        /// A directory of the reader's own.
        scratch: PathBuf,
    },
}

/// A RocksDB database with the store's column families.
pub struct RocksRows {
    handle: Handle,
    path: PathBuf,
    cache: Cache,
    lost: Option<String>,
    manifest: Mutex<manifest::Progress>,
    /// Nobody writes through this handle, nor does it catch up with who does.
    still: bool,
}

impl std::fmt::Debug for RocksRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RocksRows").field("path", &self.path).finish_non_exhaustive()
    }
}

impl RocksRows {
    /// Opens the database at `path`. `cache_bytes` bounds RocksDB's block cache.
    ///
    /// # Errors
    /// [`SnapshotError::Storage`] with RocksDB's words.
    pub fn open(path: &Path, mode: &RocksMode, cache_bytes: usize) -> Result<Self, SnapshotError> {
        let cache = Cache::new_lru_cache(cache_bytes);
        if *mode != RocksMode::Create {
            manifest::exists(path)?;
        }
        let tolerant = DBRecoveryMode::TolerateCorruptedTailRecords;
        let healable = matches!(mode, RocksMode::ReadWrite | RocksMode::ReadOnly);
        let (db, lost) = match open_files(path, mode, tolerant, &cache)? {
            Ok(db) => (db, None),
            Err(error) if healable && is_corruption(&error) => {
                open_what_is_whole(path, mode, &cache, &error)?
            }
            Err(error) => return Err(storage_error(path, "open", &error)),
        };
        if *mode == RocksMode::ReadOnly {
            check_manifest(&db, path)?;
        }
        let still = matches!(mode, RocksMode::Secondary { .. } | RocksMode::ReadOnly);
        let (handle, path, manifest) = (Handle::new(db), path.to_owned(), Mutex::default());
        let rows = Self { handle, path, cache, lost, manifest, still };
        if *mode == RocksMode::ReadWrite {
            rows.write(Vec::new())?; // notes the new manifest
        }
        Ok(rows)
    }

    /// Opens the same files once more. What is damaged now was not when they were opened first:
    /// only a fresh start of the store may decide to go back to an older state.
    fn open_again(&self, access: Access) -> Result<DB, SnapshotError> {
        let mode = match access {
            Access::Read => RocksMode::ReadOnly,
            Access::Write => RocksMode::ReadWrite,
        };
        let tolerant = DBRecoveryMode::TolerateCorruptedTailRecords;
        let db = open_files(&self.path, &mode, tolerant, &self.cache)?
            .map_err(|error| storage_error(&self.path, "reopen", &error))?;
        if access == Access::Read {
            check_manifest(&db, &self.path)?;
        }
        Ok(db)
    }

    /// Drops a database that a creation left unfinished; none is fine.
    ///
    /// # Errors
    /// [`SnapshotError::Storage`] with RocksDB's words.
    pub fn destroy(path: &Path) -> Result<(), SnapshotError> {
        DB::destroy(&Options::default(), path).map_err(|error| storage_error(path, "drop", &error))
    }

    fn estimate(&self, family: Family, property: &properties::PropName) -> u64 {
        let db = self.handle.db();
        let value = column(&db, family, &self.path)
            .ok()
            .and_then(|cf| db.property_int_value_cf(cf, property).ok().flatten());
        value.unwrap_or(0)
    }
}

fn column<'a>(db: &'a DB, family: Family, path: &Path) -> Result<&'a ColumnFamily, SnapshotError> {
    db.cf_handle(family.name()).ok_or_else(|| SnapshotError::Storage {
        path: path.to_owned(),
        operation: "read",
        reason: format!("column family `{family}` is missing"),
        corrupt: true,
    })
}

/// Opens the database; the inner error is RocksDB's.
fn open_files(
    path: &Path,
    mode: &RocksMode,
    recovery: DBRecoveryMode,
    cache: &Cache,
) -> Result<Result<DB, rocksdb::Error>, SnapshotError> {
    let mut options = db_options(*mode == RocksMode::Create);
    let families = Family::ALL
        .map(|family| ColumnFamilyDescriptor::new(family.name(), family_options(family, cache)));
    Ok(match mode {
        RocksMode::Secondary { scratch } => {
            probe(path)?;
            options.set_max_open_files(-1); // RocksDB asks this of a secondary
            DB::open_cf_descriptors_as_secondary(&options, path, scratch, families)
        }
        RocksMode::ReadOnly => {
            options.set_wal_recovery_mode(recovery);
            DB::open_cf_descriptors_read_only(&options, path, families, false)
        }
        RocksMode::Create | RocksMode::ReadWrite => {
            options.set_wal_recovery_mode(recovery);
            DB::open_cf_descriptors(&options, path, families)
        }
    })
}

/// RocksDB's own log is damaged in the middle, as no crash leaves it. What stands before the
/// damage is an older state of the snapshot, and the store's log reaches back one checkpoint
/// further than needed: if that is enough, the store heals by replay, and says so.
fn open_what_is_whole(
    path: &Path,
    mode: &RocksMode,
    cache: &Cache,
    damage: &rocksdb::Error,
) -> Result<(DB, Option<String>), SnapshotError> {
    match open_files(path, mode, DBRecoveryMode::PointInTime, cache)? {
        Ok(db) => Ok((db, Some(damage.to_string()))),
        // The first error names the damage.
        Err(_) => Err(storage_error(path, "open", damage)),
    }
}

fn db_options(create: bool) -> Options {
    let mut options = Options::default();
    options.create_if_missing(create);
    options.set_error_if_exists(create);
    options.create_missing_column_families(create);
    options.set_paranoid_checks(true);
    // Opening must not cost in proportion to the number of rows.
    options.set_skip_stats_update_on_db_open(true);
    options.set_max_background_jobs(2);
    options.set_keep_log_file_num(4);
    options.set_stats_dump_period_sec(0);
    options.set_max_total_wal_size(256 << 20);
    options
}

fn family_options(family: Family, cache: &Cache) -> Options {
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(cache);
    blocks.set_bloom_filter(10.0, false);
    blocks.set_cache_index_and_filter_blocks(true);
    let mut options = Options::default();
    options.set_block_based_table_factory(&blocks);
    options.set_compression_type(DBCompressionType::Lz4);
    if family != Family::Partition {
        options.set_write_buffer_size(8 << 20);
    }
    options
}

/// Opens the database read-only once.
///
/// A secondary that cannot open one of its files silently shows the newest state that it can show
/// without it, which may be an empty one. A read-only database says what is wrong; but it is not
/// kept, as RocksDB does not promise that files which it needs later are still there.
fn probe(path: &Path) -> Result<(), SnapshotError> {
    let families = Family::ALL.map(Family::name);
    match DB::open_cf_for_read_only(&Options::default(), path, families, false) {
        Ok(db) => check_manifest(&db, path),
        Err(error) => Err(storage_error(path, "open", &error)),
    }
}

/// Where the manifest's length and checksum are noted, in the family `meta`.
const MANIFEST: &[u8] = b"manifest";

/// Compares the manifest with what was noted of it. Releases before that have noted nothing.
fn check_manifest(db: &DB, path: &Path) -> Result<(), SnapshotError> {
    let Some(meta) = db.cf_handle(Family::Meta.name()) else { return Ok(()) };
    let noted = db.get_cf(meta, MANIFEST).map_err(|error| storage_error(path, "read", &error))?;
    match noted {
        None => Ok(()),
        Some(noted) => {
            let field = "manifest";
            let malformed = SnapshotError::NoIdentity { path: path.to_owned(), field };
            Note::decode(&noted).ok_or(malformed)?.check(path)
        }
    }
}

fn is_corruption(error: &rocksdb::Error) -> bool {
    is_damage(&error.kind(), error.as_ref())
}

fn is_damage(kind: &ErrorKind, text: &str) -> bool {
    // What the system said of a file comes wrapped into other kinds, such as "Invalid argument:
    // Found options incompatible with filesystem: IO error: ...: Too many open files".
    if text.contains("IO error: ") && !text.contains("No such file or directory") {
        return false;
    }
    // It asks for direct I/O by opening a file, and says this of any failure of that.
    if text.contains("Direct I/O is not supported") {
        return false;
    }
    // A missing file of an existing database is damage too.
    matches!(kind, ErrorKind::Corruption | ErrorKind::NotFound | ErrorKind::InvalidArgument)
}

fn storage_error(path: &Path, operation: &'static str, error: &rocksdb::Error) -> SnapshotError {
    SnapshotError::Storage {
        path: path.to_owned(),
        operation,
        reason: error.to_string(),
        corrupt: is_corruption(error),
    }
}

/// Up to where the log is in the rows; 0 before the first checkpoint.
fn applied_lsn(db: &DB, path: &Path) -> Result<u64, SnapshotError> {
    let row = db
        .get_cf(column(db, Family::Meta, path)?, META_APPLIED)
        .map_err(|error| storage_error(path, "read", &error))?;
    let Some(row) = row else { return Ok(0) };
    row.as_slice()
        .try_into()
        .map(u64::from_le_bytes)
        .map_err(|_| SnapshotError::NoIdentity { path: path.to_owned(), field: "applied_lsn" })
}

impl RowReader for RocksRows {
    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, SnapshotError> {
        let db = self.handle.db();
        db.get_cf(column(&db, family, &self.path)?, key)
            .map_err(|error| storage_error(&self.path, "read", &error))
    }

    fn scan(&self, family: Family, from: &[u8], limit: usize) -> Result<Vec<Row>, SnapshotError> {
        let db = self.handle.db();
        let mode = IteratorMode::From(from, Direction::Forward);
        let rows = db.iterator_cf_opt(column(&db, family, &self.path)?, scan_options(), mode);
        rows.take(limit)
            .collect::<Result<_, _>>()
            .map_err(|error| storage_error(&self.path, "scan", &error))
    }
}

/// A long scan must not push what is read often out of the block cache.
fn scan_options() -> ReadOptions {
    let mut options = ReadOptions::default();
    options.fill_cache(false);
    options
}

/// The rows at one moment.
struct Moment<'a> {
    db: &'a DB,
    path: &'a Path,
    snapshot: rocksdb::Snapshot<'a>,
}

impl RowReader for Moment<'_> {
    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, SnapshotError> {
        self.snapshot
            .get_cf(column(self.db, family, self.path)?, key)
            .map_err(|error| storage_error(self.path, "read", &error))
    }

    fn scan(&self, family: Family, from: &[u8], limit: usize) -> Result<Vec<Row>, SnapshotError> {
        let mode = IteratorMode::From(from, Direction::Forward);
        let family = column(self.db, family, self.path)?;
        let rows = self.snapshot.iterator_cf_opt(family, scan_options(), mode);
        rows.take(limit)
            .collect::<Result<_, _>>()
            .map_err(|error| storage_error(self.path, "scan", &error))
    }
}

impl RowStore for RocksRows {
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    fn at_once(&self, read: RowsVisitor<'_>) -> Result<(), SnapshotError> {
        // A read-only database stands still, and a secondary until it is told to catch up, which
        // nobody does.
        if self.still {
            return read(self);
        }
        let db = self.handle.db();
        read(&Moment { db: &db, path: &self.path, snapshot: db.snapshot() })
    }

    fn revive(&self) -> Result<(), SnapshotError> {
        if !self.handle.has_failed() {
            return Ok(());
        }
        self.handle.exchange(&self.path, &|access| self.open_again(access))?;
        tracing::info!(path = %self.path.display(), "RocksDB was opened anew after a failed write");
        Ok(())
    }

    fn write(&self, ops: Vec<RowOp>) -> Result<(), SnapshotError> {
        let db = self.handle.db();
        let mut batch = WriteBatch::default();
        let note = self.manifest.lock().unwrap_or_else(PoisonError::into_inner).note(&self.path)?;
        let manifest = RowOp::put(Family::Meta, MANIFEST.to_vec(), note.encode());
        for op in ops.into_iter().chain([manifest]) {
            let family = column(&db, op.family, &self.path)?;
            match op.value {
                Some(value) => batch.put_cf(family, op.key, value),
                None => batch.delete_cf(family, op.key),
            }
        }
        let mut options = WriteOptions::default();
        options.set_sync(true);
        db.write_opt(batch, &options).map_err(|error| {
            if !is_corruption(&error) {
                self.handle.note_failure();
            }
            storage_error(&self.path, "write", &error)
        })
    }

    fn damage(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    fn copy_to(&self, target: &Path) -> Result<(), SnapshotError> {
        let db = self.handle.db();
        Checkpoint::new(&db)
            .and_then(|checkpoint| checkpoint.create_checkpoint(target))
            .map_err(|error| storage_error(target, "copy", &error))
    }

    fn look_at(&self, copy: &Path) -> Result<Box<dyn RowStore>, SnapshotError> {
        const CACHE_BYTES: usize = 8 << 20;
        Ok(Box::new(Self::open(copy, &RocksMode::ReadOnly, CACHE_BYTES)?))
    }

    fn verify(&self) -> Result<(), SnapshotError> {
        let db = self.handle.db();
        for family in Family::ALL {
            let mut options = ReadOptions::default();
            options.set_verify_checksums(true);
            options.fill_cache(false);
            let column = column(&db, family, &self.path)?;
            let rows = db.iterator_cf_opt(column, options, IteratorMode::Start);
            for row in rows {
                row.map_err(|error| storage_error(&self.path, "verify", &error))?;
            }
        }
        Ok(())
    }

    fn stats(&self) -> SnapshotStats {
        let rows = |family| self.estimate(family, properties::ESTIMATE_NUM_KEYS);
        SnapshotStats {
            partitions: rows(Family::Partition),
            producers: rows(Family::Producer),
            producer_keys: rows(Family::ProducerKey),
            bytes: Family::ALL
                .into_iter()
                .map(|family| self.estimate(family, properties::TOTAL_SST_FILES_SIZE))
                .sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_refuses_is_no_damage_however_rocksdb_wraps_it() {
        let wrapped = "Found options incompatible with filesystem: IO error: While open a file for \
                       random read: /db/OPTIONS-000007";
        for (kind, text, damage) in [
            (ErrorKind::IOError, "While fdatasync: /db/000004.log: Input/output error", false),
            (ErrorKind::InvalidArgument, &format!("{wrapped}: Too many open files"), false),
            (ErrorKind::InvalidArgument, &format!("{wrapped}: No such file or directory"), true),
            (ErrorKind::InvalidArgument, "Direct I/O is not supported by the specified DB.", false),
            (ErrorKind::InvalidArgument, "Column family not found: producer", true),
            (ErrorKind::Corruption, "block checksum mismatch", true),
            (ErrorKind::NotFound, "/db/CURRENT", true),
        ] {
            assert_eq!(is_damage(&kind, text), damage, "{text}");
        }
    }
}
