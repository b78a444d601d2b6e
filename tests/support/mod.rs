//! What the store's integration tests share.
#![allow(dead_code)] // each test file uses its own part

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sharestate::{
    AckRange, AckType, DeliveryState, Options, SharePartitionKey, ShareStore, Stage, StateBatch,
    StoreError, Write,
};
use uuid::Uuid;

/// Small segments and frequent checkpoints, so that a short test sees rollovers and purges.
pub fn small() -> Options {
    let mut options = Options::default();
    options.segment_bytes = 16 << 10;
    options.checkpoint_log_bytes = Some(24 << 10);
    options.reserve_bytes = 64 << 10;
    options
}

/// No checkpoint but those asked for: the log keeps everything.
pub fn log_only() -> Options {
    let mut options = Options::default();
    options.segment_bytes = 64 << 10;
    options.checkpoint_log_bytes = Some(u64::MAX);
    options.reserve_bytes = 64 << 10;
    options
}

#[cfg(feature = "rocksdb")]
pub fn open(path: &Path, options: &Options) -> ShareStore {
    ShareStore::open(path, options).unwrap_or_else(|error| panic!("open: {error}"))
}

pub fn key(group: &str, partition: i32) -> SharePartitionKey {
    SharePartitionKey::new(group, Uuid::from_u128(0x51), partition).expect("valid key")
}

pub fn batch(first: i64, last: i64, state: i8, count: i16) -> StateBatch {
    StateBatch {
        first_offset: first,
        last_offset: last,
        delivery_state: DeliveryState(state),
        delivery_count: count,
    }
}

/// A write of these batches at state epoch 1 that leaves start offset and count alone.
pub fn write(batches: &[StateBatch]) -> Write {
    Write {
        state_epoch: 1,
        leader_epoch: 0,
        start_offset: -1,
        delivery_complete_count: 0,
        batches: batches.to_vec(),
    }
}

/// An accepted range in its first delivery: acknowledged by a commit, free after an abort.
pub fn accept(first_offset: i64, last_offset: i64) -> AckRange {
    AckRange {
        first_offset,
        last_offset,
        ack_type: AckType::Accept,
        commit_target: DeliveryState::ACKNOWLEDGED,
        abort_target: DeliveryState::AVAILABLE,
        delivery_count: 1,
    }
}

/// A call that stages one range at state epoch 1 and leader epoch 0.
pub fn stage(
    key: SharePartitionKey,
    producer_id: i64,
    producer_epoch: i16,
    ack: AckRange,
) -> Stage {
    Stage {
        key,
        state_epoch: 1,
        leader_epoch: 0,
        producer_id,
        producer_epoch,
        two_phase: false,
        transaction_version: 2,
        transactional_id: "t".to_owned(),
        member_id: "m".to_owned(),
        member_epoch: 1,
        acks: vec![ack],
    }
}

/// Acknowledges one offset after the other in `partitions` share partitions until `writes` are
/// done.
pub fn fill(store: &ShareStore, group: &str, partitions: i32, writes: i64) {
    let store = store.blocking();
    for partition in 0..partitions {
        store.initialize(&key(group, partition), 1, 0).expect("initialize");
    }
    for n in 0..writes {
        let partition = i32::try_from(n % i64::from(partitions)).expect("small");
        let state = if n % 5 == 0 { 0 } else { 2 };
        let batches = [batch(n, n, state, 1)];
        store.write(&key(group, partition), write(&batches)).expect("write");
    }
}

/// Everything the store holds, in comparable form.
pub fn contents(store: &ShareStore) -> Vec<String> {
    let mut rows = Vec::new();
    let mut after = None;
    loop {
        let page = store.blocking().list(None, after.as_ref(), 100).expect("list");
        rows.extend(page.partitions.iter().map(|(key, row)| format!("{key} {row:?}")));
        match page.next {
            Some(next) => after = Some(next),
            None => return rows,
        }
    }
}

/// Copies a store as a kill at one moment would leave it. RocksDB compacts in the background, so a
/// copy counts only if no file came, went or grew meanwhile.
pub fn crash_image(store: &Path, to: &Path) {
    for _ in 0..1_000 {
        if is_copied_at_rest(store, to).unwrap_or(false) {
            return;
        }
        if to.exists() {
            std::fs::remove_dir_all(to).expect("remove");
        }
    }
    panic!("the store never rests");
}

fn is_copied_at_rest(store: &Path, to: &Path) -> std::io::Result<bool> {
    let before = sizes(store)?;
    try_copy_dir(store, to)?;
    Ok(sizes(store)? == before)
}

fn try_copy_dir(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            try_copy_dir(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn sizes(dir: &Path) -> std::io::Result<BTreeMap<PathBuf, u64>> {
    let mut sizes = BTreeMap::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sizes.append(&mut self::sizes(&entry.path())?);
        } else {
            sizes.insert(entry.path(), entry.metadata()?.len());
        }
    }
    Ok(sizes)
}

pub fn copy_dir(from: &Path, to: &Path) {
    try_copy_dir(from, to).expect("copy");
}

/// Every file below `path` with its bytes, to show that nothing was touched.
pub fn tree(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    let mut dirs = vec![path.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).expect("list") {
            let path = entry.expect("entry").path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                let bytes = std::fs::read(&path).expect("read");
                files.push((path, bytes));
            }
        }
    }
    files.sort();
    files
}

/// The log segments of a store, oldest first.
pub fn segments(store: &Path) -> Vec<PathBuf> {
    let mut segments: Vec<_> = std::fs::read_dir(store.join("wal"))
        .expect("list")
        .map(|entry| entry.expect("entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "wal"))
        .collect();
    segments.sort();
    segments
}

/// The Kafka code of a refusal.
pub fn code<T: std::fmt::Debug>(result: Result<T, StoreError>) -> i16 {
    result.expect_err("refused").kafka_code().expect("a Kafka code")
}
