//! Prepared acks and producers as JSON.

use serde::Serialize;

use crate::inspect::text::{ack_name, outcome_name};
use crate::model::{Lsn, Outcome, PendingAck, Producer, SharePartitionKey};
use crate::pending::{PendingEntry, PendingTotals};

/// The prepared acks of one producer epoch in one share partition as a JSON object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs)] // the fields of `PendingEntry`
pub struct PendingEntryJson {
    pub age_ms: i64,
    pub stage_time_ms: i64,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub two_phase: bool,
    pub orphaned: bool,
    pub transactional_id: String,
    pub member_id: String,
    pub member_epoch: i32,
    pub coordinator_epoch: Option<i32>,
    pub key: String,
    pub start_offset: i64,
    pub holds_start_offset: bool,
    pub lsn: Lsn,
    pub offsets: u64,
    pub ranges: Vec<RangeJson>,
}

/// One range of a [`PendingEntryJson`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs)] // the fields of `PendingAck`
pub struct RangeJson {
    pub first_offset: i64,
    pub last_offset: i64,
    pub ack_type: &'static str,
    pub commit_target: i8,
    pub abort_target: i8,
    pub delivery_count: i16,
    pub lsn: Lsn,
    pub stage_time_ms: i64,
}

impl PendingEntryJson {
    /// An entry as of `now_ms`.
    #[must_use]
    pub fn new(entry: &PendingEntry, now_ms: i64) -> Self {
        Self {
            age_ms: entry.age_ms(now_ms),
            stage_time_ms: entry.oldest.stage_time_ms,
            producer_id: entry.producer_id,
            producer_epoch: entry.producer_epoch,
            two_phase: entry.two_phase,
            orphaned: entry.orphaned,
            transactional_id: entry.oldest.transactional_id.clone(),
            member_id: entry.oldest.member_id.clone(),
            member_epoch: entry.oldest.member_epoch,
            coordinator_epoch: entry.coordinator_epoch,
            key: entry.key.to_string(),
            start_offset: entry.start_offset,
            holds_start_offset: entry.holds_start_offset,
            lsn: entry.lsn(),
            offsets: entry.offsets(),
            ranges: entry.acks.iter().map(range).collect(),
        }
    }
}

fn range(ack: &PendingAck) -> RangeJson {
    RangeJson {
        first_offset: ack.first_offset,
        last_offset: ack.last_offset,
        ack_type: ack_name(ack.ack_type),
        commit_target: ack.commit_target.0,
        abort_target: ack.abort_target.0,
        delivery_count: ack.delivery_count,
        lsn: ack.call.lsn,
        stage_time_ms: ack.call.stage_time_ms,
    }
}

/// [`PendingTotals`] as a JSON object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs)] // the fields of `PendingTotals`
pub struct PendingTotalsJson {
    pub producers: u64,
    pub orphaned_epochs: u64,
    /// One per line.
    pub entries: u64,
    pub ranges: u64,
    pub offsets: u64,
    pub held_start_offsets: u64,
    pub oldest_ms: Option<i64>,
}

impl From<PendingTotals> for PendingTotalsJson {
    fn from(totals: PendingTotals) -> Self {
        Self {
            producers: totals.producers,
            orphaned_epochs: totals.orphaned_epochs,
            entries: totals.partitions,
            ranges: totals.ranges,
            offsets: totals.offsets,
            held_start_offsets: totals.held_start_offsets,
            oldest_ms: totals.oldest_ms,
        }
    }
}

/// What is remembered of a producer id as a JSON object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs)] // the fields of `Producer`
pub struct ProducerJson {
    pub producer_id: i64,
    pub highest_stage_epoch: Option<i16>,
    pub last_completed: Option<CompletedJson>,
    pub coordinator_epoch: Option<i32>,
    pub open: Vec<OpenEpochJson>,
    pub last_used_ms: i64,
    pub last_lsn: Lsn,
}

/// The last completed marker of a [`ProducerJson`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs)] // the fields of `Completed`
pub struct CompletedJson {
    pub epoch: i16,
    pub outcome: &'static str,
    pub operator: bool,
}

/// An open epoch of a [`ProducerJson`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs)] // the fields of `OpenEpoch`
pub struct OpenEpochJson {
    pub epoch: i16,
    pub two_phase: bool,
    pub superseded_by: Option<i16>,
    pub orphaned: bool,
    pub partitions: Vec<String>,
}

impl ProducerJson {
    /// What is remembered of a producer.
    #[must_use]
    pub fn new(producer_id: i64, row: &Producer) -> Self {
        let completed = row.last_completed.map(|last| CompletedJson {
            epoch: last.epoch,
            outcome: outcome_name(last.outcome),
            operator: last.operator,
        });
        let open = row.open.iter().map(|(epoch, open)| OpenEpochJson {
            epoch: *epoch,
            two_phase: open.two_phase,
            superseded_by: open.superseded_by,
            orphaned: row.orphaned(*epoch),
            partitions: open.keys.iter().map(ToString::to_string).collect(),
        });
        Self {
            producer_id,
            highest_stage_epoch: row.highest_stage_epoch,
            last_completed: completed,
            coordinator_epoch: row.coordinator_epoch,
            open: open.collect(),
            last_used_ms: row.last_used_ms,
            last_lsn: row.last_lsn,
        }
    }
}

/// What an operator resolved, as a JSON object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs)] // said by the names
pub struct ResolvedJson {
    pub producer_id: i64,
    pub epoch: i16,
    pub outcome: &'static str,
    pub offsets: u64,
    /// An epoch below it stays open, orphaned.
    pub orphans: bool,
    pub partitions: Vec<ResolvedPartitionJson>,
}

/// One share partition of a [`ResolvedJson`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs)] // said by the names
pub struct ResolvedPartitionJson {
    pub key: String,
    /// `[first offset, last offset]`.
    pub ranges: Vec<(i64, i64)>,
}

impl ResolvedJson {
    /// The answer to a forced resolution.
    #[must_use]
    pub fn new(
        producer_id: i64,
        epoch: i16,
        outcome: Outcome,
        resolved: &crate::store::Resolved,
    ) -> Self {
        let partition = |(key, ranges): &(SharePartitionKey, Vec<(i64, i64)>)| {
            ResolvedPartitionJson { key: key.to_string(), ranges: ranges.clone() }
        };
        let ranges = resolved.partitions.iter().flat_map(|(_, ranges)| ranges);
        let offsets = ranges.map(|(first, last)| last.abs_diff(*first).saturating_add(1));
        Self {
            producer_id,
            epoch,
            outcome: outcome_name(outcome),
            offsets: offsets.fold(0, u64::saturating_add),
            orphans: resolved.orphans,
            partitions: resolved.partitions.iter().map(partition).collect(),
        }
    }
}
