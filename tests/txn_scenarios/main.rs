//! The scenarios of transactional acknowledgements that concern a store, each a test with the
//! scenario's id in its name, through a real store that is closed, killed and cut from power. What
//! each is about, and which are the broker's affair, stands in `docs/scenarios.md`.
#![cfg(all(feature = "rocksdb", feature = "testing"))]

mod crash;
mod cross;
mod disk;
mod fencing;
mod markers;
mod operations;
#[path = "../txn_support/real.rs"]
mod real;
mod recovery;
mod staging;
#[path = "../support/mod.rs"]
mod support;
mod table;

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use real::Real;
use sharestate::Outcome::{Abort, Commit};
use sharestate::{
    AckRange, AckType, Command, DeliveryState, Marker, Outcome, Partition, PendingEntry,
    PendingFilter, Producer, Resolved, SharePartitionKey, Stage, StateBatch, Write,
};
use uuid::Uuid;

pub const UNSUPPORTED_VERSION: i16 = 35;
pub const INVALID_REQUEST: i16 = 42;
pub const INVALID_PRODUCER_EPOCH: i16 = 47;
pub const COORDINATOR_FENCED: i16 = 52;
pub const FENCED_LEADER_EPOCH: i16 = 74;
pub const INVALID_RECORD_STATE: i16 = 121;
pub const FENCED_STATE_EPOCH: i16 = 124;

/// The producer of [`stage`] and [`commit`].
pub const PID: i64 = 100;

pub fn key(partition: i32) -> SharePartitionKey {
    SharePartitionKey::new("group", Uuid::from_u128(1), partition).expect("valid")
}

/// REJECT of records in their first delivery, in a group without a dead-letter queue.
pub fn reject(first_offset: i64, last_offset: i64) -> AckRange {
    AckRange {
        ack_type: AckType::Reject,
        commit_target: DeliveryState::ARCHIVED,
        ..accept(first_offset, last_offset)
    }
}

/// A later delivery.
pub fn delivered(delivery_count: i16, ack: AckRange) -> AckRange {
    AckRange { delivery_count, ..ack }
}

pub use support::{accept, batch};

/// A stage of [`PID`] at epoch 0 into `key(0)`, to be varied.
pub fn stage(acks: impl Into<Vec<AckRange>>) -> Stage {
    Stage {
        key: key(0),
        state_epoch: 1,
        leader_epoch: 0,
        producer_id: PID,
        producer_epoch: 0,
        two_phase: false,
        transaction_version: 2,
        transactional_id: "orders".to_owned(),
        member_id: "member".to_owned(),
        member_epoch: 7,
        acks: acks.into(),
    }
}

pub fn on(partition: i32, stage: Stage) -> Stage {
    Stage { key: key(partition), ..stage }
}

pub fn at(producer_epoch: i16, stage: Stage) -> Stage {
    Stage { producer_epoch, ..stage }
}

pub fn of(producer_id: i64, stage: Stage) -> Stage {
    Stage { producer_id, ..stage }
}

pub fn two_phase(stage: Stage) -> Stage {
    Stage { two_phase: true, ..stage }
}

/// The marker that ends a transaction of [`PID`] at `epoch`: it carries the next one.
pub fn commit(epoch: i16) -> Marker {
    marker(epoch + 1, Commit)
}

/// As [`commit`].
pub fn abort(epoch: i16) -> Marker {
    marker(epoch + 1, Abort)
}

pub fn marker(producer_epoch: i16, outcome: Outcome) -> Marker {
    let (coordinator_epoch, transaction_version) = (3, 2);
    Marker { producer_id: PID, producer_epoch, coordinator_epoch, outcome, transaction_version }
}

/// A plain write of the share partition's leader that leaves start offset and count alone.
pub fn plain(batches: impl Into<Vec<StateBatch>>) -> Write {
    support::write(&batches.into())
}

/// The leader moves the start offset.
pub fn start_at(start_offset: i64) -> Write {
    Write { start_offset, ..plain([]) }
}

/// A store with three share partitions, `key(0)` to `key(2)`: state epoch 1, start offset 0.
pub struct Store(Real);

impl Deref for Store {
    type Target = Real;
    fn deref(&self) -> &Real {
        &self.0
    }
}

impl DerefMut for Store {
    fn deref_mut(&mut self) -> &mut Real {
        &mut self.0
    }
}

impl Store {
    pub fn started() -> Self {
        Self::with_segments(16 << 10)
    }

    pub fn with_segments(bytes: u64) -> Self {
        let store = Self(Real::open(real::options(bytes)));
        (0..3).for_each(|partition| store.initialize(&key(partition), 1));
        store
    }

    pub fn initialize(&self, key: &SharePartitionKey, state_epoch: i32) {
        self.blocking().initialize(key, state_epoch, 0).expect("initialize");
    }

    /// Is accepted; answers what was newly staged.
    pub fn stages(&self, stage: Stage) -> Vec<(i64, i64)> {
        self.blocking().stage(stage).expect("staged")
    }

    /// Is accepted.
    pub fn writes(&self, partition: i32, write: Write) -> Vec<(i64, i64)> {
        let dropped = self.blocking().write(&key(partition), write).expect("written");
        dropped.iter().map(|ack| (ack.first_offset, ack.last_offset)).collect()
    }

    pub fn takes(&self, marker: Marker) -> Resolved {
        self.blocking().marker(marker).expect("taken")
    }

    /// Is accepted and resolves these ranges of these share partitions, and no others.
    pub fn resolves(&self, marker: Marker, expected: &[(i32, &[(i64, i64)])]) {
        let found = self.takes(marker).partitions;
        let expected: Vec<_> =
            expected.iter().map(|(partition, ranges)| (key(*partition), ranges.to_vec())).collect();
        assert_eq!(found, expected);
    }

    /// Succeeds without any effect on share partitions.
    pub fn resolves_nothing(&self, marker: Marker) -> Resolved {
        let before = self.state().partitions;
        let resolved = self.takes(marker);
        assert_eq!(resolved.partitions, []);
        assert_eq!(self.state().partitions, before);
        resolved
    }

    /// Is refused with this code; nothing is logged and nothing changes.
    pub fn refuses(&self, command: impl Into<Command>, code: i16) {
        self.0.refuses(command, Some(code));
    }

    pub fn row(&self, partition: i32) -> Arc<Partition> {
        Arc::clone(&self.state().partitions[&key(partition)])
    }

    pub fn records(&self, partition: i32) -> Vec<StateBatch> {
        self.row(partition).batches.clone()
    }

    pub fn pending(&self, partition: i32) -> Vec<(i64, i64)> {
        let row = self.row(partition);
        row.pending.iter().map(|ack| (ack.first_offset, ack.last_offset)).collect()
    }

    pub fn complete(&self, partition: i32) -> i32 {
        self.row(partition).delivery_complete_count
    }

    pub fn producer(&self) -> Arc<Producer> {
        self.blocking().producer(PID).expect("read").expect("remembered")
    }

    /// What an operator sees of prepared acks.
    pub fn listed(&self) -> Vec<PendingEntry> {
        self.blocking().pending(PendingFilter::default()).expect("listed")
    }
}

/// A plain write as a command, for [`Store::refuses`].
pub fn write_command(partition: i32, write: Write) -> Command {
    Command::Write {
        key: key(partition),
        state_epoch: write.state_epoch,
        leader_epoch: write.leader_epoch,
        start_offset: write.start_offset,
        delivery_complete_count: write.delivery_complete_count,
        batches: write.batches,
    }
}
