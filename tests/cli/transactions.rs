//! A store in which several transactions are open, for days and for minutes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use sharestate::blocking::BlockingShareStore;
use sharestate::{
    AckRange, AckType, Clock, DeliveryState, Marker, Options, Outcome, SharePartitionKey,
    ShareStore, Stage, SystemClock,
};
use tempfile::TempDir;
use uuid::Uuid;

use super::store::options;

pub const SECOND: i64 = 1_000;
pub const DAY: i64 = 86_400 * SECOND;

/// A clock that tests move.
#[derive(Debug)]
struct Hand(AtomicI64);

impl Clock for Hand {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Hand {
    fn set(&self, ago_ms: i64) {
        self.0.store(SystemClock.now_ms() - ago_ms, Ordering::Relaxed);
    }
}

fn clocked() -> (Arc<Hand>, Options) {
    let clock = Arc::new(Hand(AtomicI64::new(0)));
    clock.set(2 * DAY);
    let mut options = options();
    options.clock = Arc::<Hand>::clone(&clock);
    (clock, options)
}

pub fn key(group: &str, topic: u128, partition: i32) -> SharePartitionKey {
    SharePartitionKey::new(group, Uuid::from_u128(topic), partition).unwrap()
}

fn stage(
    store: &BlockingShareStore,
    key: &SharePartitionKey,
    (producer_id, producer_epoch): (i64, i16),
    name: &str,
    ranges: &[(i64, i64)],
) {
    let ack = |(first_offset, last_offset): &(i64, i64)| AckRange {
        first_offset: *first_offset,
        last_offset: *last_offset,
        ack_type: AckType::Accept,
        commit_target: DeliveryState::ACKNOWLEDGED,
        abort_target: DeliveryState::AVAILABLE,
        delivery_count: 1,
    };
    let stage = Stage {
        key: key.clone(),
        state_epoch: 1,
        leader_epoch: 1,
        producer_id,
        producer_epoch,
        two_phase: name.starts_with("2pc"),
        transaction_version: 2,
        transactional_id: name.into(),
        member_id: format!("member of {name}"),
        member_epoch: 3,
        acks: ranges.iter().map(ack).collect(),
    };
    store.stage(stage).unwrap();
}

pub fn marker(
    producer_id: i64,
    producer_epoch: i16,
    coordinator_epoch: i32,
    outcome: Outcome,
) -> Marker {
    Marker { producer_id, producer_epoch, coordinator_epoch, outcome, transaction_version: 2 }
}

/// Four entries of three producers, staged two days to ten minutes ago:
/// * producer 9 "2pc-audit" epoch 0, in `orders` topic 1: holds the start offset;
/// * producer 5 "till-5" epoch 3, in `orders` topic 2: orphaned, as epoch 4 staged;
/// * producer 5 "till-5" epoch 4, in `orders` topic 1;
/// * producer 7 "till-7" epoch 2, in `stock` topic 1: many ranges.
pub fn fill(path: &Path) -> ShareStore {
    let (clock, options) = clocked();
    let store = ShareStore::open(path, &options).unwrap();
    let blocking = store.blocking();
    let (a, b, c) = (key("orders", 1, 0), key("orders", 2, 0), key("stock", 1, 3));
    for key in [&a, &b, &c] {
        blocking.initialize(key, 1, 10).unwrap();
    }
    blocking.marker(marker(5, 2, 8, Outcome::Commit)).unwrap();
    stage(&blocking, &a, (9, 0), "2pc-audit", &[(10, 19), (30, 30)]);
    clock.set(DAY);
    stage(&blocking, &b, (5, 3), "till-5", &[(20, 21)]);
    clock.set(3_600 * SECOND);
    stage(&blocking, &c, (7, 2), "till-7", &[(11, 11), (13, 13), (15, 15), (17, 17), (19, 19)]);
    clock.set(600 * SECOND);
    stage(&blocking, &a, (5, 4), "till-5", &[(40, 44)]);
    blocking.marker(marker(77, 6, 2, Outcome::Abort)).unwrap();
    store
}

pub fn filled() -> (TempDir, std::path::PathBuf) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("store");
    fill(&path).blocking().close().unwrap();
    (dir, path)
}
