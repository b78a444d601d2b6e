//! What operators ask about open transactions: which acks are prepared, by whom, since when, and
//! what they hold up.
//!
//! Owns the shape of the answers and the filters. Reads rows through the engine a page at a time,
//! so that a walk over any number of producers holds nobody up; a walk beside a busy store sees
//! each share partition at one moment, not all of them at the same.

use std::collections::VecDeque;
use std::sync::Arc;

use uuid::Uuid;

use crate::engine::Engine;
use crate::error::StoreError;
use crate::model::{Lsn, Partition, PendingAck, Producer, SharePartitionKey, StageCall};

/// Producers read at once.
const PAGE: usize = 128;

/// The prepared acks of one producer epoch in one share partition (semantics section 4.5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingEntry {
    /// Share partition.
    pub key: SharePartitionKey,
    /// Producer id.
    pub producer_id: i64,
    /// Producer epoch.
    pub producer_epoch: i16,
    /// Part of an external two-phase commit: may legitimately stay prepared for days.
    pub two_phase: bool,
    /// The producer went on without it: a later epoch staged or a later marker completed. Only its
    /// own marker or an operator ends it.
    pub orphaned: bool,
    /// Highest coordinator epoch seen in a marker of this producer.
    pub coordinator_epoch: Option<i32>,
    /// The oldest stage call of the entry: transactional id, member, stage time.
    pub oldest: Arc<StageCall>,
    /// The ranges, ascending.
    pub acks: Vec<PendingAck>,
    /// One of the ranges holds the start offset: nothing before the marker moves it.
    pub holds_start_offset: bool,
    /// Start offset of the share partition.
    pub start_offset: i64,
}

impl PendingEntry {
    /// How long ago the oldest of these acks was staged, in ms; 0 when the clock went back.
    #[must_use]
    pub fn age_ms(&self, now_ms: i64) -> i64 {
        now_ms.saturating_sub(self.oldest.stage_time_ms).max(0)
    }

    /// Number of offsets.
    #[must_use]
    pub fn offsets(&self) -> u64 {
        let sizes = self.acks.iter().map(|ack| ack.last_offset.abs_diff(ack.first_offset));
        sizes.fold(0, |sum: u64, size| sum.saturating_add(size).saturating_add(1))
    }

    /// LSN of the oldest stage entry.
    #[must_use]
    pub fn lsn(&self) -> Lsn {
        self.oldest.lsn
    }
}

/// Which prepared acks to list. Every field that is set must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PendingFilter {
    /// Staged at or before this time, in ms since the Unix epoch.
    pub staged_until_ms: Option<i64>,
    /// This producer.
    pub producer_id: Option<i64>,
    /// Transactional ids that begin so.
    pub transactional_id_prefix: Option<String>,
    /// This group.
    pub group_id: Option<String>,
    /// This topic.
    pub topic_id: Option<Uuid>,
    /// Orphaned epochs only, or all but these.
    pub orphaned: Option<bool>,
}

impl PendingFilter {
    /// Whether open epochs of this producer, orphaned or not, can match.
    pub(crate) fn wants_epoch(&self, producer_id: i64, orphaned: bool) -> bool {
        self.producer_id.is_none_or(|wanted| wanted == producer_id)
            && self.orphaned.is_none_or(|wanted| wanted == orphaned)
    }

    /// Whether entries of this share partition can match.
    pub(crate) fn wants_key(&self, key: &SharePartitionKey) -> bool {
        self.group_id.as_deref().is_none_or(|group| group == key.group_id())
            && self.topic_id.is_none_or(|topic| topic == key.topic_id())
    }

    /// Whether an entry matches whose oldest stage call is this, and whose epoch and key match.
    pub(crate) fn wants_call(&self, call: &StageCall) -> bool {
        let prefix = self.transactional_id_prefix.as_deref().unwrap_or_default();
        call.transactional_id.starts_with(prefix)
            && self.staged_until_ms.is_none_or(|until| call.stage_time_ms <= until)
    }
}

/// Counts and ages of prepared acks, for metrics and alarms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PendingTotals {
    /// Producers with something pending.
    pub producers: u64,
    /// Open epochs that are orphaned.
    pub orphaned_epochs: u64,
    /// Share partitions with something pending, counted once per producer epoch.
    pub partitions: u64,
    /// Ranges.
    pub ranges: u64,
    /// Offsets.
    pub offsets: u64,
    /// Share partitions whose start offset is held.
    pub held_start_offsets: u64,
    /// Stage time of the oldest, in ms since the Unix epoch.
    pub oldest_ms: Option<i64>,
}

/// A walk over prepared acks: producers ascending, within them epochs, within them share
/// partitions.
#[derive(Debug)]
pub struct PendingScan<'a> {
    engine: &'a Engine,
    filter: PendingFilter,
    after: Option<i64>,
    finished: bool,
    ready: VecDeque<PendingEntry>,
}

impl<'a> PendingScan<'a> {
    pub(crate) fn new(engine: &'a Engine, filter: PendingFilter) -> Self {
        // A walk of one producer begins just before it.
        let after = filter.producer_id.and_then(|id| id.checked_sub(1));
        Self { engine, filter, after, finished: false, ready: VecDeque::new() }
    }

    /// The next entry, or none at the end.
    ///
    /// # Errors
    /// [`StoreError`]; the walk can be continued.
    pub async fn next(&mut self) -> Result<Option<PendingEntry>, StoreError> {
        while self.ready.is_empty() && !self.finished {
            let limit = if self.filter.producer_id.is_some() { 1 } else { PAGE };
            let (producers, next) = self.engine.producers(self.after, limit).await?;
            for (id, producer) in producers {
                let entries = self.read_producer(id, &producer).await?;
                self.ready.extend(entries);
                self.after = Some(id); // an error later on does not show these again
            }
            self.finished = next.is_none() || self.filter.producer_id.is_some();
            self.after = next;
        }
        Ok(self.ready.pop_front())
    }

    async fn read_producer(
        &self,
        id: i64,
        producer: &Producer,
    ) -> Result<Vec<PendingEntry>, StoreError> {
        let mut entries = Vec::new();
        for (epoch, open) in &producer.open {
            if !self.filter.wants_epoch(id, producer.orphaned(*epoch)) {
                continue;
            }
            let keys: Vec<_> =
                open.keys.iter().filter(|key| self.filter.wants_key(key)).cloned().collect();
            let rows = self.engine.rows(keys).await?;
            for (key, partition) in rows {
                let entry = entry(key, &partition, id, *epoch, producer);
                entries.extend(entry.filter(|entry| self.filter.wants_call(&entry.oldest)));
            }
        }
        Ok(entries)
    }
}

/// What `producer` holds pending at `epoch` in this row; none when a marker came in between.
pub(crate) fn entry(
    key: SharePartitionKey,
    partition: &Partition,
    producer_id: i64,
    producer_epoch: i16,
    producer: &Producer,
) -> Option<PendingEntry> {
    let open = producer.open.get(&producer_epoch)?;
    let acks: Vec<_> = partition
        .pending
        .iter()
        .filter(|ack| {
            (ack.call.producer_id, ack.call.producer_epoch) == (producer_id, producer_epoch)
        })
        .cloned()
        .collect();
    let oldest = acks.iter().map(|ack| &ack.call).min_by_key(|call| call.lsn).map(Arc::clone)?;
    let start_offset = partition.start_offset;
    Some(PendingEntry {
        holds_start_offset: acks
            .iter()
            .any(|ack| (ack.first_offset..=ack.last_offset).contains(&start_offset)),
        key,
        producer_id,
        producer_epoch,
        two_phase: open.two_phase,
        orphaned: producer.orphaned(producer_epoch),
        coordinator_epoch: producer.coordinator_epoch,
        oldest,
        acks,
        start_offset,
    })
}

impl PendingTotals {
    pub(crate) async fn collect(engine: &Engine) -> Result<Self, StoreError> {
        let mut totals = Self::default();
        let mut scan = PendingScan::new(engine, PendingFilter::default());
        let mut before = None;
        while let Some(entry) = scan.next().await? {
            totals.add(&entry, before);
            before = Some((entry.producer_id, entry.producer_epoch));
        }
        Ok(totals)
    }

    /// The sum of entries in the order in which a walk finds them.
    #[must_use]
    pub fn of(entries: &[PendingEntry]) -> Self {
        let mut totals = Self::default();
        let mut before = None;
        for entry in entries {
            totals.add(entry, before);
            before = Some((entry.producer_id, entry.producer_epoch));
        }
        totals
    }

    /// Adds an entry; `before` names the producer and epoch of the one before it.
    fn add(&mut self, entry: &PendingEntry, before: Option<(i64, i16)>) {
        self.producers += u64::from(before.is_none_or(|(id, _)| id != entry.producer_id));
        let is_new_epoch = before != Some((entry.producer_id, entry.producer_epoch));
        self.orphaned_epochs += u64::from(is_new_epoch && entry.orphaned);
        self.partitions += 1;
        self.ranges += entry.acks.len() as u64;
        self.offsets = self.offsets.saturating_add(entry.offsets());
        self.held_start_offsets += u64::from(entry.holds_start_offset);
        let staged = entry.acks.iter().map(|ack| ack.call.stage_time_ms).min();
        self.oldest_ms = self.oldest_ms.into_iter().chain(staged).min();
    }
}
