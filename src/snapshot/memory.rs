//! Rows in memory that outlive the store: the snapshot of simulated disks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::table::Row;
use super::{Family, RowOp, RowReader, RowStore, SnapshotError, SnapshotStats};

type Rows = BTreeMap<(Family, Vec<u8>), Vec<u8>>;

/// A row store in memory. Clones share their rows, so that a store can be dropped and opened again
/// over them.
#[derive(Debug, Clone, Default)]
pub struct MemoryRows {
    rows: Arc<Mutex<Rows>>,
}

impl MemoryRows {
    /// A copy that later changes do not touch: the rows at the moment of a power cut.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self { rows: Arc::new(Mutex::new(self.lock().clone())) }
    }

    /// Drops all rows.
    pub fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RowReader for MemoryRows {
    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, SnapshotError> {
        Ok(self.lock().get(&(family, key.to_vec())).cloned())
    }

    fn scan(&self, family: Family, from: &[u8], limit: usize) -> Result<Vec<Row>, SnapshotError> {
        Ok(self
            .lock()
            .range((family, from.to_vec())..)
            .take_while(|((found, _), _)| *found == family)
            .take(limit)
            .map(|((_, key), value)| (key.as_slice().into(), value.as_slice().into()))
            .collect())
    }
}

impl RowStore for MemoryRows {
    fn path(&self) -> PathBuf {
        PathBuf::from("(memory)")
    }

    fn at_once(&self) -> Box<dyn RowReader + '_> {
        Box::new(self.fork())
    }

    fn write(&self, ops: Vec<RowOp>) -> Result<(), SnapshotError> {
        let mut rows = self.lock();
        for op in ops {
            match op.value {
                Some(value) => rows.insert((op.family, op.key), value),
                None => rows.remove(&(op.family, op.key)),
            };
        }
        Ok(())
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
