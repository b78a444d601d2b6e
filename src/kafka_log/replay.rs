//! From records to states, by the replay rules of Kafka's share coordinator.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::error::{KafkaLogError, KafkaLogErrorKind};
use super::segment::LogRecord;
use super::share::{ShareRecord, ShareSnapshot, ShareUpdate};
use crate::model::{Partition, SharePartitionKey, StateBatch, combine};

/// Folds the records of one or more state partitions into the states of their share partitions.
///
/// A share partition lives in exactly one state partition, so state partitions may come in any
/// order; the segments of one state partition must come by ascending offset.
///
/// What the answer holds beyond what Kafka stores:
///
/// * `leader_fence` is the highest leader epoch replayed for the key since its last tombstone, as
///   the coordinator's;
/// * `init_start_offset` is not in Kafka's records. It is set to the start offset, so that a
///   repeated initialize of the present state is a retry, and every other one a reset.
/// * `batches` are put into normal form by [`combine`]; `pending` is empty and `last_lsn` 0.
///
/// Records of a transactional batch are replayed like others: share coordinators up to Kafka 4.4
/// write none, and would replay them so.
#[derive(Debug, Clone, Default)]
pub struct Replay {
    partitions: BTreeMap<SharePartitionKey, Partition>,
    headless: BTreeSet<SharePartitionKey>,
}

impl Replay {
    /// No state.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Replays one record; `file` is used in errors only.
    ///
    /// * A snapshot replaces the state; a leader epoch of -1 (none, in older Kafkas) becomes 0.
    /// * An update merges its batches, clipped at the new start offset, into the state and takes
    ///   its delivery-complete count; its start offset and leader epoch are taken unless -1.
    ///   Without a state it becomes the state, with state epoch and timestamps 0.
    /// * A tombstone removes the state and the fence.
    /// * A record of unknown type is skipped.
    ///
    /// # Errors
    /// When the record holds what no share coordinator stores: a snapshot or state epoch below 0, a
    /// leader epoch, start offset or delivery-complete count below -1, or a batch that is not
    /// `0 <= first <= last < 2^63-1` in delivery state 0, 2, 3 or 4 with a delivery count of at
    /// least 0. Nothing is replayed then.
    pub fn apply(&mut self, file: &str, record: &LogRecord) -> Result<(), KafkaLogError> {
        let fail = |key: &SharePartitionKey, kind| KafkaLogError {
            file: file.into(),
            position: record.position,
            offset: Some(record.offset),
            key: Some(Box::new(key.clone())),
            kind,
        };
        match &record.record {
            ShareRecord::Snapshot { key, value } => {
                check_snapshot(value).map_err(|kind| fail(key, kind))?;
                self.snapshot(key, value);
            }
            ShareRecord::Update { key, value } => {
                check_update(value).map_err(|kind| fail(key, kind))?;
                self.update(key, value);
            }
            ShareRecord::Tombstone { key } => {
                self.partitions.remove(key);
                self.headless.remove(key);
            }
            ShareRecord::Unknown { .. } => {}
        }
        Ok(())
    }

    /// The share partitions whose state rests on updates only: no snapshot was replayed.
    ///
    /// Kafka prunes no share partition's last snapshot, so after a complete log there are none. Any
    /// that are left have lost their state epoch and older batches with the log's beginning.
    #[must_use]
    pub fn headless(&self) -> &BTreeSet<SharePartitionKey> {
        &self.headless
    }

    /// The states after all records.
    #[must_use]
    pub fn finish(mut self) -> BTreeMap<SharePartitionKey, Partition> {
        for partition in self.partitions.values_mut() {
            partition.init_start_offset = partition.start_offset;
        }
        self.partitions
    }

    fn snapshot(&mut self, key: &SharePartitionKey, value: &ShareSnapshot) {
        self.headless.remove(key);
        // -1 fences nobody, and nor does 0.
        let leader_epoch = value.leader_epoch.max(0);
        let mut partition = Partition {
            state_epoch: value.state_epoch,
            leader_epoch,
            leader_fence: leader_epoch,
            start_offset: value.start_offset,
            init_start_offset: value.start_offset,
            delivery_complete_count: value.delivery_complete_count,
            snapshot_epoch: value.snapshot_epoch,
            create_time_ms: value.create_timestamp,
            write_time_ms: value.write_timestamp,
            batches: combine(&[], &value.state_batches, value.start_offset),
            pending: Vec::new(),
            last_lsn: 0,
        };
        match self.partitions.entry(key.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(partition);
            }
            Entry::Occupied(mut entry) => {
                partition.leader_fence = partition.leader_fence.max(entry.get().leader_fence);
                entry.insert(partition);
            }
        }
    }

    fn update(&mut self, key: &SharePartitionKey, value: &ShareUpdate) {
        let Some(partition) = self.partitions.get_mut(key) else {
            self.snapshot(key, &update_alone(value));
            self.headless.insert(key.clone());
            return;
        };
        if value.start_offset != -1 {
            partition.start_offset = value.start_offset;
        }
        if value.leader_epoch != -1 {
            partition.leader_epoch = value.leader_epoch;
            partition.leader_fence = partition.leader_fence.max(value.leader_epoch);
        }
        partition.delivery_complete_count = value.delivery_complete_count;
        let (stored, start) = (&partition.batches, partition.start_offset);
        partition.batches = combine(stored, &value.state_batches, start);
    }
}

/// The state that an update is when it comes first: the log begins after the snapshot that it
/// builds on.
fn update_alone(value: &ShareUpdate) -> ShareSnapshot {
    ShareSnapshot {
        snapshot_epoch: value.snapshot_epoch,
        state_epoch: 0,
        leader_epoch: value.leader_epoch,
        start_offset: value.start_offset,
        delivery_complete_count: value.delivery_complete_count,
        create_timestamp: 0,
        write_timestamp: 0,
        state_batches: value.state_batches.clone(),
    }
}

/// Whether a share coordinator can have stored this.
pub(super) fn check_snapshot(value: &ShareSnapshot) -> Result<(), KafkaLogErrorKind> {
    at_least(0, "snapshot epoch", value.snapshot_epoch)?;
    at_least(0, "state epoch", value.state_epoch)?;
    at_least(-1, "leader epoch", value.leader_epoch)?;
    at_least(-1, "start offset", value.start_offset)?;
    at_least(-1, "delivery complete count", value.delivery_complete_count)?;
    value.state_batches.iter().try_for_each(check_batch)
}

fn check_update(value: &ShareUpdate) -> Result<(), KafkaLogErrorKind> {
    at_least(0, "snapshot epoch", value.snapshot_epoch)?;
    at_least(-1, "leader epoch", value.leader_epoch)?;
    at_least(-1, "start offset", value.start_offset)?;
    at_least(-1, "delivery complete count", value.delivery_complete_count)?;
    value.state_batches.iter().try_for_each(check_batch)
}

fn check_batch(batch: &StateBatch) -> Result<(), KafkaLogErrorKind> {
    let StateBatch { first_offset, last_offset, delivery_state, delivery_count } = *batch;
    at_least(0, "first offset of a batch", first_offset)?;
    if last_offset < first_offset || last_offset == i64::MAX {
        let (field, found) = ("last offset of a batch", last_offset);
        let allowed = "its first offset to 2^63-2";
        return Err(KafkaLogErrorKind::Content { field, found, allowed });
    }
    if !delivery_state.is_storable() {
        let (field, found) = ("delivery state", delivery_state.0.into());
        return Err(KafkaLogErrorKind::Content { field, found, allowed: "0, 2, 3 or 4" });
    }
    at_least(0, "delivery count", delivery_count)
}

/// `least` is 0 or -1.
fn at_least(
    least: i64,
    field: &'static str,
    found: impl Into<i64>,
) -> Result<(), KafkaLogErrorKind> {
    let found = found.into();
    if found >= least {
        return Ok(());
    }
    let allowed = if least == 0 { "at least 0" } else { "at least -1" };
    Err(KafkaLogErrorKind::Content { field, found, allowed })
}
