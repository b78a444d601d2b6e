//! Rows as bytes: what a snapshot asks of whatever holds them.

use std::fmt;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::codec::CodecError;

/// A column family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// Share partitions.
    Partition,
    /// Producers.
    Producer,
    /// One row per producer epoch and share partition that holds its pending acks.
    ProducerKey,
    /// Identity and applied LSNs.
    Meta,
}

impl Family {
    /// All families.
    pub const ALL: [Self; 4] = [Self::Partition, Self::Producer, Self::ProducerKey, Self::Meta];

    /// Its name on disk.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Partition => "partition",
            Self::Producer => "producer",
            Self::ProducerKey => "producer_key",
            Self::Meta => "meta",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One change of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowOp {
    /// Column family.
    pub family: Family,
    /// Row key.
    pub key: Vec<u8>,
    /// New value, or none to delete the row.
    pub value: Option<Vec<u8>>,
}

impl RowOp {
    /// Sets a row.
    #[must_use]
    pub fn put(family: Family, key: Vec<u8>, value: Vec<u8>) -> Self {
        Self { family, key, value: Some(value) }
    }

    /// Removes a row.
    #[must_use]
    pub fn delete(family: Family, key: Vec<u8>) -> Self {
        Self { family, key, value: None }
    }
}

/// A row: key and value.
pub type Row = (Box<[u8]>, Box<[u8]>);

/// Reads byte rows.
pub trait RowReader {
    /// The value of a row.
    ///
    /// # Errors
    /// [`SnapshotError`] when it cannot be read.
    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, SnapshotError>;

    /// Up to `limit` rows with keys from `from` on, ascending.
    ///
    /// # Errors
    /// [`SnapshotError`] when they cannot be read.
    fn scan(&self, family: Family, from: &[u8], limit: usize) -> Result<Vec<Row>, SnapshotError>;
}

/// Reads rows that stand still meanwhile.
pub type RowsVisitor<'a> = &'a mut dyn FnMut(&dyn RowReader) -> Result<(), SnapshotError>;

/// An ordered map of byte rows per family with atomic synced batches.
pub trait RowStore: RowReader + fmt::Debug + Send + Sync {
    /// Where it lives, for error messages.
    fn path(&self) -> PathBuf;

    /// Shows the rows as they are now, whatever is written while they are read: for rows that only
    /// together mean something.
    ///
    /// # Errors
    /// What `read` answers.
    fn at_once(&self, read: RowsVisitor<'_>) -> Result<(), SnapshotError>;

    /// Makes the rows ready to be written again if a write has failed: what is there is then read
    /// afresh. To be called before anything is read that a write builds upon.
    ///
    /// # Errors
    /// [`SnapshotError`]; the rows can still be read, and the next call tries again.
    fn revive(&self) -> Result<(), SnapshotError> {
        Ok(())
    }

    /// Applies all changes, or none, and makes them durable before it returns.
    ///
    /// # Errors
    /// [`SnapshotError`]; the outcome is then unknown until a fresh open or [`revive`](Self::revive).
    fn write(&self, ops: Vec<RowOp>) -> Result<(), SnapshotError>;

    /// Damage because of which an older state than the last one written was opened.
    fn damage(&self) -> Option<&str> {
        None
    }

    /// Copies everything, as of now, to a directory that does not exist yet.
    ///
    /// # Errors
    /// [`SnapshotError`] when it cannot be copied.
    fn copy_to(&self, target: &Path) -> Result<(), SnapshotError>;

    /// Opens a copy for reading only.
    ///
    /// # Errors
    /// [`SnapshotError`] when it cannot be read.
    fn look_at(&self, copy: &Path) -> Result<Box<dyn RowStore>, SnapshotError> {
        Err(SnapshotError::Storage {
            path: copy.to_owned(),
            operation: "read",
            reason: "these rows are in no files".to_owned(),
            corrupt: false,
        })
    }

    /// Reads all bytes at rest and checks their checksums.
    ///
    /// # Errors
    /// [`SnapshotError`] naming the first damage.
    fn verify(&self) -> Result<(), SnapshotError>;

    /// Sizes.
    fn stats(&self) -> SnapshotStats;
}

/// Sizes of a snapshot. Row numbers are estimates, as RocksDB gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SnapshotStats {
    /// Share partitions.
    pub partitions: u64,
    /// Producers.
    pub producers: u64,
    /// Rows of open epochs.
    pub producer_keys: u64,
    /// Bytes at rest.
    pub bytes: u64,
}

/// Why the snapshot could not serve.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// RocksDB refused. `corrupt` tells damage from a failing system call.
    #[error("{operation} snapshot {}: {reason}", path.display())]
    Storage {
        /// Directory.
        path: PathBuf,
        /// What was tried.
        operation: &'static str,
        /// RocksDB's words.
        reason: String,
        /// RocksDB says that its files are damaged.
        corrupt: bool,
    },
    /// A row that does not decode or does not add up.
    #[error("snapshot {}: row `{row}` of `{family}`: {source}", path.display())]
    Row {
        /// Directory.
        path: PathBuf,
        /// Column family.
        family: Family,
        /// Row, as text.
        row: String,
        /// What is wrong.
        source: CodecError,
    },
    /// The snapshot belongs to another store.
    #[error("snapshot {} belongs to store {found}, not to {expected}", path.display())]
    Foreign {
        /// Directory.
        path: PathBuf,
        /// The store's uuid.
        expected: Uuid,
        /// The snapshot's.
        found: Uuid,
    },
    /// The snapshot has lost a field of its identity.
    #[error("snapshot {}: `{field}` is missing or malformed", path.display())]
    NoIdentity {
        /// Directory.
        path: PathBuf,
        /// The field.
        field: &'static str,
    },
}

impl SnapshotError {
    /// Whether it means damage, as opposed to a failing system call.
    #[must_use]
    pub fn is_corruption(&self) -> bool {
        match self {
            Self::Storage { corrupt, .. } => *corrupt,
            Self::Row { source, .. } => !matches!(source, CodecError::NewerRow { .. }),
            Self::Foreign { .. } | Self::NoIdentity { .. } => true,
        }
    }
}
