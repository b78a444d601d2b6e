//! A store with several segments, a few share partitions and an open transaction.

use std::path::{Path, PathBuf};

use sharestate::blocking::BlockingShareStore;
use sharestate::{
    AckRange, AckType, Command, DeliveryState, Options, SharePartitionKey, ShareStore, Stage,
    StateBatch, Write,
};
use tempfile::TempDir;
use uuid::Uuid;

use super::tree;

pub const SEGMENT_BYTES: u64 = 8 << 10;

pub fn options() -> Options {
    let mut options = Options::default();
    options.segment_bytes = SEGMENT_BYTES;
    options.checkpoint_log_bytes = Some(u64::MAX);
    options.reserve_bytes = 0;
    options
}

pub fn key(partition: i32) -> SharePartitionKey {
    SharePartitionKey::new("group:with:colons", Uuid::from_u128(0xabc), partition).unwrap()
}

pub fn write(store: &BlockingShareStore, partition: i32, first_offset: i64, count: i16) {
    let batch = StateBatch {
        first_offset,
        last_offset: first_offset + 1,
        delivery_state: DeliveryState::ACKNOWLEDGED,
        delivery_count: count,
    };
    let write = Write {
        state_epoch: 1,
        leader_epoch: 3,
        start_offset: -1,
        delivery_complete_count: -1,
        batches: vec![batch],
    };
    store.write(&key(partition), write).unwrap();
}

pub fn stage(store: &BlockingShareStore, partition: i32, first_offset: i64) {
    let stage = Stage {
        key: key(partition),
        state_epoch: 1,
        leader_epoch: 3,
        producer_id: 77,
        producer_epoch: 4,
        two_phase: true,
        transaction_version: 2,
        transactional_id: "till\nreceipt".into(),
        member_id: "member".into(),
        member_epoch: 2,
        acks: vec![AckRange {
            first_offset,
            last_offset: first_offset + 2,
            ack_type: AckType::Accept,
            commit_target: DeliveryState::ACKNOWLEDGED,
            abort_target: DeliveryState::AVAILABLE,
            delivery_count: 1,
        }],
    };
    store.execute(Command::Stage(stage)).unwrap();
}

pub const PARTITIONS: i32 = 5;
pub const WRITES: i64 = 60;

/// A closed store with several segments, a few share partitions, and an open transaction.
pub fn make(path: &Path) -> ShareStore {
    let store = ShareStore::open(path, &options()).unwrap();
    let blocking = store.blocking();
    for partition in 0..PARTITIONS {
        blocking.initialize(&key(partition), 1, 0).unwrap();
        blocking.read(&key(partition), 3).unwrap();
        for round in 0..WRITES {
            write(&blocking, partition, round * 3, 1);
        }
    }
    stage(&blocking, 0, 500);
    stage(&blocking, 1, 600);
    blocking.delete(&key(4)).unwrap();
    store
}

pub fn made() -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let store = dir.path().join("store");
    make(&store).blocking().close().unwrap();
    (dir, store)
}

/// As many entries as `make` logs.
pub const ENTRIES: usize = PARTITIONS as usize * (2 + WRITES as usize) + 3;

pub fn segments(store: &Path) -> Vec<PathBuf> {
    tree(&store.join("wal")).into_keys().filter(|path| path.extension().unwrap() == "wal").collect()
}
