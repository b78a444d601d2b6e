//! Large stores for benchmarks.
#![allow(dead_code)] // each benchmark uses its own part

use std::path::Path;
use std::sync::Arc;

use sharestate::engine::recovery::{RocksOpener, RowOpener as _};
use sharestate::model::{Partition, StateBatch};
use sharestate::snapshot::{CheckpointBatch, Snapshot};
use sharestate::{DeliveryState, Options, SharePartitionKey, ShareStore};
use uuid::Uuid;

/// The n-th share partition.
pub fn key(n: u32) -> SharePartitionKey {
    let group = format!("group-{}", n % 1_000);
    let partition = i32::try_from(n / 1_000).expect("small");
    SharePartitionKey::new(group, Uuid::from_u128(1), partition).expect("valid key")
}

/// Ten acknowledged records.
pub fn batch(first_offset: i64) -> StateBatch {
    StateBatch {
        first_offset,
        last_offset: first_offset + 9,
        delivery_state: DeliveryState::ACKNOWLEDGED,
        delivery_count: 1,
    }
}

/// Fills the snapshot directly: writing a million entries first would measure the same.
pub fn fill_snapshot(dir: &Path, partitions: u32) {
    let store = ShareStore::open(dir, &Options::default()).expect("open");
    let uuid = store.uuid();
    store.blocking().close().expect("close");
    let rows = RocksOpener { cache_bytes: 8 << 20 }.open(&dir.join("snapshot")).expect("rows");
    let snapshot = Snapshot::open(rows, uuid).expect("snapshot");
    for chunk in (0..partitions).step_by(1_000) {
        let rows = (chunk..chunk + 1_000).map(|n| {
            let partition = Partition {
                state_epoch: 1,
                leader_epoch: 0,
                leader_fence: 0,
                start_offset: 0,
                init_start_offset: 0,
                delivery_complete_count: 0,
                snapshot_epoch: 0,
                create_time_ms: 0,
                write_time_ms: 0,
                batches: (0..4).map(|b| batch(b * 20)).collect(),
                pending: Vec::new(),
                last_lsn: 0,
            };
            (key(n), Some(Arc::new(partition)))
        });
        let applied_lsn = snapshot.applied_lsn();
        let batch = CheckpointBatch { applied_lsn, partitions: rows.collect(), producers: vec![] };
        snapshot.write(&batch).expect("write");
    }
}
