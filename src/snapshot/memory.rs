//! Rows in memory that outlive the store: the snapshot of simulated disks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::table::Row;
use super::{Family, RowOp, RowReader, RowStore, RowsVisitor, SnapshotError, SnapshotStats};
use crate::fsio::FsOp;
use crate::fsio::sim::SimFs;

type Rows = BTreeMap<(Family, Vec<u8>), Vec<u8>>;

/// A row store in memory. Clones share their rows, so that a store can be dropped and opened again
/// over them.
#[derive(Debug, Clone, Default)]
pub struct MemoryRows {
    rows: Arc<Mutex<Rows>>,
    /// Counts the calls and makes them fail, if there is one.
    disk: Option<SimFs>,
}

impl MemoryRows {
    /// Empty rows on a simulated disk: every batch and every read is one of its calls
    /// ([`FsOp::WriteRows`], [`FsOp::ReadRows`]), at which the power can fail and which can fail
    /// itself.
    #[must_use]
    pub fn on(disk: &SimFs) -> Self {
        Self { rows: Arc::default(), disk: Some(disk.clone()) }
    }

    /// A copy that later changes do not touch: the rows at the moment of a power cut.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self { rows: Arc::new(Mutex::new(self.lock().clone())), disk: self.disk.clone() }
    }

    /// A [`fork`](Self::fork) on another disk: what a power cut leaves of this one.
    #[must_use]
    pub fn fork_on(&self, disk: &SimFs) -> Self {
        Self { disk: Some(disk.clone()), ..self.fork() }
    }

    /// Drops all rows.
    pub fn clear(&self) {
        self.lock().clear();
    }

    fn call<T>(
        &self,
        op: FsOp,
        operation: &'static str,
        run: impl FnOnce() -> T,
    ) -> Result<T, SnapshotError> {
        let Some(disk) = &self.disk else { return Ok(run()) };
        let path = self.path();
        disk.rows_call(op, &path, run).map_err(|error| SnapshotError::Storage {
            path: self.path(),
            operation,
            reason: error.to_string(),
            corrupt: false,
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RowReader for MemoryRows {
    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, SnapshotError> {
        let find = || self.lock().get(&(family, key.to_vec())).cloned();
        self.call(FsOp::ReadRows, "read", find)
    }

    fn scan(&self, family: Family, from: &[u8], limit: usize) -> Result<Vec<Row>, SnapshotError> {
        let find = || {
            self.lock()
                .range((family, from.to_vec())..)
                .take_while(|((found, _), _)| *found == family)
                .take(limit)
                .map(|((_, key), value)| (key.as_slice().into(), value.as_slice().into()))
                .collect()
        };
        self.call(FsOp::ReadRows, "read", find)
    }
}

impl RowStore for MemoryRows {
    fn path(&self) -> PathBuf {
        PathBuf::from("(memory)")
    }

    fn at_once(&self, read: RowsVisitor<'_>) -> Result<(), SnapshotError> {
        read(&self.fork())
    }

    fn write(&self, ops: Vec<RowOp>) -> Result<(), SnapshotError> {
        let apply = || {
            let mut rows = self.lock();
            for op in ops {
                match op.value {
                    Some(value) => rows.insert((op.family, op.key), value),
                    None => rows.remove(&(op.family, op.key)),
                };
            }
        };
        self.call(FsOp::WriteRows, "write", apply)
    }

    fn copy_to(&self, target: &Path) -> Result<(), SnapshotError> {
        Err(SnapshotError::Storage {
            path: target.to_owned(),
            operation: "copy",
            reason: "a snapshot in memory has no files".to_owned(),
            corrupt: false,
        })
    }

    fn verify(&self) -> Result<(), SnapshotError> {
        Ok(())
    }

    fn stats(&self) -> SnapshotStats {
        let rows = self.lock();
        let count = |family| rows.keys().filter(|(found, _)| *found == family).count() as u64;
        SnapshotStats {
            partitions: count(Family::Partition),
            producers: count(Family::Producer),
            producer_keys: count(Family::ProducerKey),
            bytes: rows.iter().map(|((_, key), value)| (key.len() + value.len()) as u64).sum(),
        }
    }
}
