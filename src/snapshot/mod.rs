//! The compacted snapshot: rows of share partitions and producers as of one LSN.
//!
//! Owns which rows exist and what a checkpoint writes; knows nothing of commands, frames or
//! segments. Rows live in a [`RowStore`]: RocksDB, or memory for the simulated disk.

mod checkpoint;
#[cfg(any(test, feature = "rocksdb"))]
mod manifest;
#[cfg(any(test, feature = "testing"))]
mod memory;
#[cfg(feature = "rocksdb")]
mod rocks;
mod table;

pub use checkpoint::CheckpointBatch;
#[cfg(any(test, feature = "testing"))]
pub use memory::MemoryRows;
#[cfg(feature = "rocksdb")]
pub use rocks::{RocksMode, RocksRows};
pub use table::{Family, RowOp, RowReader, RowStore, RowsVisitor, SnapshotError, SnapshotStats};

use uuid::Uuid;

use crate::codec::{self, CodecError};
use crate::model::{Lsn, Partition, Producer, SharePartitionKey};
use crate::seeded;
use crate::sync::atomic::{AtomicU64, Ordering};

const META_UUID: &[u8] = b"uuid";
const META_APPLIED: &[u8] = b"applied_lsn";
const META_PREVIOUS: &[u8] = b"previous_applied_lsn";

/// Rows read at once when a family is walked, at most.
const PAGE: usize = 1_024;

/// Rows read first where few are expected.
const FEW: usize = 16;

/// A snapshot that belongs to a store.
#[derive(Debug)]
pub struct Snapshot {
    rows: Box<dyn RowStore>,
    uuid: Uuid,
    applied: AtomicU64,
    previous: AtomicU64,
}

impl Snapshot {
    /// Makes the first snapshot of a new store: no rows, applied LSN 0.
    ///
    /// # Errors
    /// [`SnapshotError`] when it cannot be written.
    pub fn create(rows: Box<dyn RowStore>, uuid: Uuid) -> Result<Self, SnapshotError> {
        let meta = |key: &[u8], value: Vec<u8>| RowOp::put(Family::Meta, key.to_vec(), value);
        rows.write(vec![
            meta(META_UUID, uuid.as_bytes().to_vec()),
            meta(META_APPLIED, 0_u64.to_le_bytes().to_vec()),
            meta(META_PREVIOUS, 0_u64.to_le_bytes().to_vec()),
        ])?;
        Self::open(rows, uuid)
    }

    /// Takes up an existing snapshot.
    ///
    /// # Errors [`SnapshotError::Foreign`] when it belongs to another store,
    /// [`SnapshotError::NoIdentity`] when it has lost its identity, others when it cannot be read.
    pub fn open(rows: Box<dyn RowStore>, uuid: Uuid) -> Result<Self, SnapshotError> {
        let found = read_meta(&*rows, META_UUID)?;
        let found = Uuid::from_slice(&found)
            .map_err(|_| SnapshotError::NoIdentity { path: rows.path(), field: "uuid" })?;
        if found != uuid {
            return Err(SnapshotError::Foreign { path: rows.path(), expected: uuid, found });
        }
        let applied = read_lsn(&*rows, META_APPLIED, "applied_lsn")?;
        let previous = read_lsn(&*rows, META_PREVIOUS, "previous_applied_lsn")?;
        Ok(Self { rows, uuid, applied: applied.into(), previous: previous.into() })
    }

    /// The store that this snapshot belongs to.
    #[must_use]
    pub fn uuid(&self) -> Uuid {
        self.uuid
    }

    /// Every entry up to this LSN is in the rows, none above it.
    #[must_use]
    pub fn applied_lsn(&self) -> Lsn {
        self.applied.load(Ordering::Acquire)
    }

    /// Applied LSN of the checkpoint before the last one: the log may be purged up to here.
    #[must_use]
    pub fn previous_applied_lsn(&self) -> Lsn {
        self.previous.load(Ordering::Acquire)
    }

    /// Reads one share partition.
    ///
    /// # Errors
    /// [`SnapshotError`] when the row cannot be read or does not decode.
    pub fn partition(&self, key: &SharePartitionKey) -> Result<Option<Partition>, SnapshotError> {
        let row_key = codec::encode_partition_key(key);
        match self.rows.get(Family::Partition, &row_key)? {
            None => Ok(None),
            Some(row) => codec::decode_partition(&row)
                .map(Some)
                .map_err(|source| self.bad_row(Family::Partition, &key.to_string(), source)),
        }
    }

    /// Reads one producer with the share partitions that hold its pending acks.
    ///
    /// # Errors
    /// [`SnapshotError`] when a row cannot be read, does not decode, or the rows do not add up.
    pub fn producer(&self, producer_id: i64) -> Result<Option<Producer>, SnapshotError> {
        let row_key = codec::encode_producer_id(producer_id);
        // A checkpoint may be written between the producer's row and its keys.
        let mut producer = None;
        self.rows.at_once(&mut |rows| {
            producer = match rows.get(Family::Producer, &row_key)? {
                None => None,
                Some(row) => Some(self.producer_of(rows, producer_id, &row)?),
            };
            Ok(())
        })?;
        Ok(producer)
    }

    fn producer_of(
        &self,
        rows: &dyn RowReader,
        producer_id: i64,
        row: &[u8],
    ) -> Result<Producer, SnapshotError> {
        let name = producer_id.to_string();
        let row = codec::decode_producer(row)
            .map_err(|source| self.bad_row(Family::Producer, &name, source))?;
        let (mut producer, expected) = (row.producer, row.keys);
        if !producer.open.is_empty() {
            for (epoch, key) in self.producer_keys(rows, producer_id)? {
                let open = producer.open.get_mut(&epoch).ok_or_else(|| {
                    let field = "producer_key.epoch";
                    let source = CodecError::Value { field, found: epoch.into() };
                    self.bad_row(Family::ProducerKey, &name, source)
                })?;
                open.keys.insert(key);
            }
        }
        for (epoch, keys) in expected {
            let found = producer.open.get(&epoch).map_or(0, |open| open.keys.len());
            if found == 0 || u32::try_from(found) != Ok(keys) {
                let found = i64::try_from(found).unwrap_or(i64::MAX);
                let source = CodecError::Value { field: "producer_key rows", found };
                return Err(self.bad_row(Family::Producer, &name, source));
            }
        }
        Ok(producer)
    }

    fn producer_keys(
        &self,
        rows: &dyn RowReader,
        producer_id: i64,
    ) -> Result<Vec<(i16, SharePartitionKey)>, SnapshotError> {
        let prefix = codec::encode_producer_id(producer_id);
        let mut keys = Vec::new();
        walk(rows, Family::ProducerKey, &prefix, &prefix, FEW, &mut |row_key, _| {
            let (_, epoch, key) = codec::decode_producer_key(row_key).map_err(|source| {
                self.bad_row(Family::ProducerKey, &producer_id.to_string(), source)
            })?;
            keys.push((epoch, key));
            Ok(true)
        })?;
        Ok(keys)
    }

    /// Up to `limit` share partitions in key order behind `after`, of one group or of all.
    ///
    /// # Errors
    /// [`SnapshotError`] when a row cannot be read or does not decode.
    pub fn partitions(
        &self,
        group_id: Option<&str>,
        after: Option<&SharePartitionKey>,
        limit: usize,
    ) -> Result<Vec<(SharePartitionKey, Partition)>, SnapshotError> {
        let prefix = group_id.map(codec::encode_group_prefix).unwrap_or_default();
        let from = match after {
            None => prefix.clone(),
            Some(key) => after_row(codec::encode_partition_key(key)),
        };
        let mut page = Vec::new();
        if limit == 0 {
            return Ok(page);
        }
        let from = from.max(prefix.clone());
        walk(&*self.rows, Family::Partition, &from, &prefix, limit, &mut |row_key, row| {
            let key = codec::decode_partition_key(row_key)
                .map_err(|source| self.bad_row(Family::Partition, &hex(row_key), source))?;
            let partition = codec::decode_partition(row)
                .map_err(|source| self.bad_row(Family::Partition, &key.to_string(), source))?;
            page.push((key, partition));
            Ok(page.len() < limit)
        })?;
        Ok(page)
    }

    /// Up to `limit` producers in id order behind `after`.
    ///
    /// # Errors
    /// [`SnapshotError`] when a row cannot be read or does not decode.
    pub fn producers(
        &self,
        after: Option<i64>,
        limit: usize,
    ) -> Result<Vec<(i64, Producer)>, SnapshotError> {
        let from =
            after.map(|id| after_row(codec::encode_producer_id(id).to_vec())).unwrap_or_default();
        let mut page = Vec::new();
        if limit == 0 {
            return Ok(page);
        }
        self.rows.at_once(&mut |rows| {
            walk(rows, Family::Producer, &from, &[], limit, &mut |row_key, row| {
                let id = row_key.try_into().map(i64::from_be_bytes).map_err(|_| {
                    let source = CodecError::Body("not a producer id".to_owned());
                    self.bad_row(Family::Producer, &hex(row_key), source)
                })?;
                page.push((id, self.producer_of(rows, id, row)?));
                Ok(page.len() < limit)
            })
        })?;
        Ok(page)
    }

    /// Writes a checkpoint: rows, identity and applied LSN in one atomic synced batch.
    ///
    /// # Errors
    /// [`SnapshotError`]; whether the batch is durable is then unknown until a fresh open, or until
    /// the next call, which looks afresh.
    pub fn write(&self, batch: &CheckpointBatch) -> Result<(), SnapshotError> {
        // Before the stored keys are read below: a batch that seemed to fail may be among the rows.
        self.rows.revive()?;
        let mut ops = Vec::with_capacity(batch.partitions.len().saturating_add(4));
        for (key, partition) in &batch.partitions {
            let row_key = codec::encode_partition_key(key);
            let row = match partition {
                None => None,
                Some(partition) => {
                    Some(codec::encode_partition(partition).map_err(|source| {
                        self.bad_row(Family::Partition, &key.to_string(), source)
                    })?)
                }
            };
            ops.push(RowOp { family: Family::Partition, key: row_key, value: row });
        }
        for (id, producer) in &batch.producers {
            let stored = self.producer_keys(&*self.rows, *id)?;
            checkpoint::producer_ops(*id, producer.as_deref(), &stored, &mut ops)
                .map_err(|source| self.bad_row(Family::Producer, &id.to_string(), source))?;
        }
        let previous = self.applied_lsn();
        let meta = |key: &[u8], value: Vec<u8>| RowOp::put(Family::Meta, key.to_vec(), value);
        ops.push(meta(META_UUID, self.uuid.as_bytes().to_vec()));
        ops.push(meta(META_PREVIOUS, previous.to_le_bytes().to_vec()));
        let applied = batch.applied_lsn.saturating_add(u64::from(seeded::bug("KAFKA-14618")));
        ops.push(meta(META_APPLIED, applied.to_le_bytes().to_vec()));
        if seeded::bug("etcd-13766") {
            self.rows.write(ops.split_off(ops.len().saturating_sub(1)))?;
        }
        self.rows.write(ops)?;
        self.previous.store(previous, Ordering::Release);
        self.applied.store(batch.applied_lsn, Ordering::Release);
        Ok(())
    }

    /// Damage because of which an older snapshot than the last one written was opened. Replay
    /// heals it when the log reaches back far enough.
    #[must_use]
    pub fn damage(&self) -> Option<&str> {
        self.rows.damage()
    }

    /// Copies the snapshot, as it is now, to a directory that does not exist yet, and opens the copy
    /// for reading. Its files may be links to those of the snapshot.
    ///
    /// # Errors
    /// [`SnapshotError`] when it cannot be copied, or the copy not be read.
    pub fn copy_to(&self, target: &std::path::Path) -> Result<Self, SnapshotError> {
        self.rows.copy_to(target)?;
        Self::open(self.rows.look_at(target)?, self.uuid)
    }

    /// Reads everything once with all checksums verified.
    ///
    /// # Errors
    /// [`SnapshotError`] naming the first damage.
    pub fn verify_files(&self) -> Result<(), SnapshotError> {
        self.rows.verify()
    }

    /// Sizes, for operators; row numbers are estimates.
    #[must_use]
    pub fn stats(&self) -> SnapshotStats {
        self.rows.stats()
    }

    fn bad_row(&self, family: Family, row: &str, source: CodecError) -> SnapshotError {
        SnapshotError::Row { path: self.rows.path(), family, row: row.to_owned(), source }
    }
}

/// Calls `visit` for the rows of a family from `from` on that start with `prefix`, until it
/// answers false. About `expected` rows are wanted.
fn walk(
    reader: &dyn RowReader,
    family: Family,
    from: &[u8],
    prefix: &[u8],
    expected: usize,
    visit: RowVisitor<'_>,
) -> Result<(), SnapshotError> {
    let mut from = from.to_vec();
    let mut page = expected.clamp(1, PAGE);
    loop {
        let rows = reader.scan(family, &from, page)?;
        for (key, row) in &rows {
            if !key.starts_with(prefix) || !visit(key, row)? {
                return Ok(());
            }
        }
        match rows.last() {
            Some((key, _)) if rows.len() == page => from = after_row(key.to_vec()),
            _ => return Ok(()),
        }
        page = PAGE;
    }
}

/// Sees a row; answers whether it wants more.
type RowVisitor<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> Result<bool, SnapshotError>;

/// The smallest row key above `row`.
fn after_row(mut row: Vec<u8>) -> Vec<u8> {
    row.push(0);
    row
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read_meta(rows: &dyn RowStore, key: &'static [u8]) -> Result<Vec<u8>, SnapshotError> {
    let field = std::str::from_utf8(key).unwrap_or("meta");
    rows.get(Family::Meta, key)?
        .ok_or_else(|| SnapshotError::NoIdentity { path: rows.path(), field })
}

fn read_lsn(
    rows: &dyn RowStore,
    key: &'static [u8],
    field: &'static str,
) -> Result<Lsn, SnapshotError> {
    let bytes = read_meta(rows, key)?;
    bytes
        .as_slice()
        .try_into()
        .map(u64::from_le_bytes)
        .map_err(|_| SnapshotError::NoIdentity { path: rows.path(), field })
}
