//! The state of one share partition.
//!
//! Owns the shape of a row and what can be said of a row alone. Knows nothing of commands, and of
//! producers only their ids.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::batch::{NO_START, Span, is_canonical, is_offset_range, overlapping};
use super::{DeliveryState, Lsn, StateBatch};
/// Everything kept for one share partition (semantics section 1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Raised by the group coordinator when the partition is initialised anew.
    pub state_epoch: i32,
    /// As reported: set by a read, 0 after initialize.
    pub leader_epoch: i32,
    /// Highest leader epoch that has read the state. Survives initialize and, unlike Kafka's, a
    /// restart.
    pub leader_fence: i32,
    /// Share-partition start offset (SPSO); -1 = not known yet, and -1 never clips.
    pub start_offset: i64,
    /// The start offset that the last initialize carried; tells a retry from a reset.
    pub init_start_offset: i64,
    /// Terminal records at or after the start offset (KIP-1226); -1 = unknown.
    pub delivery_complete_count: i32,
    /// Kafka's snapshot epoch: one more at every initialize.
    pub snapshot_epoch: i32,
    /// When the state was first written, in ms since the Unix epoch.
    pub create_time_ms: i64,
    /// When the state was last written, in ms since the Unix epoch.
    pub write_time_ms: i64,
    /// Sorted, disjoint, maximal runs.
    pub batches: Vec<StateBatch>,
    /// Staged transactional acks, sorted and disjoint: an overlay, never mixed into `batches`.
    pub pending: Vec<PendingAck>,
    /// LSN of the entry that last changed this row.
    pub last_lsn: Lsn,
}

/// What kind of acknowledgement was staged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(i8)]
pub enum AckType {
    /// 0: the offset holds no user record.
    Gap = 0,
    /// 1: processed.
    Accept = 1,
    /// 2: give back. Cannot be staged.
    Release = 2,
    /// 3: never deliver again.
    Reject = 3,
    /// 4: prolong the lock (KIP-1222). Cannot be staged.
    Renew = 4,
}

/// One range of staged acks (semantics section 4.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingAck {
    /// First offset, inclusive.
    pub first_offset: i64,
    /// Last offset, inclusive.
    pub last_offset: i64,
    /// What was staged.
    pub ack_type: AckType,
    /// State after a commit.
    pub commit_target: DeliveryState,
    /// State after an abort.
    pub abort_target: DeliveryState,
    /// Delivery count of the records when they were staged; resolution keeps it.
    pub delivery_count: i16,
    /// The call that staged it, shared by all ranges of that call.
    pub call: Arc<StageCall>,
}

/// What is the same for all ranges of one stage call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageCall {
    /// LSN of the stage entry.
    pub lsn: Lsn,
    /// Producer whose transaction the acks belong to.
    pub producer_id: i64,
    /// Its epoch at stage.
    pub producer_epoch: i16,
    /// The transaction takes part in an external two-phase commit (KIP-939).
    pub two_phase: bool,
    /// Transactional id, for operators.
    pub transactional_id: String,
    /// Share consumer that acquired the records, for operators.
    pub member_id: String,
    /// Its member epoch at stage.
    pub member_epoch: i32,
    /// State epoch of the share partition at stage.
    pub state_epoch: i32,
    /// Leader epoch of the broker that staged.
    pub leader_epoch: i32,
    /// When it was staged, in ms since the Unix epoch.
    pub stage_time_ms: i64,
}

impl Partition {
    /// A share partition right after an initialize. What survives of `previous`: the leader fence,
    /// and the snapshot epoch, which counts on.
    #[must_use]
    pub fn new_initialized(
        state_epoch: i32,
        start_offset: i64,
        time_ms: i64,
        previous: Option<&Self>,
        lsn: Lsn,
    ) -> Self {
        Self {
            state_epoch,
            leader_epoch: 0,
            leader_fence: previous.map_or(0, |row| row.leader_fence),
            start_offset,
            init_start_offset: start_offset,
            delivery_complete_count: if start_offset == NO_START { -1 } else { 0 },
            snapshot_epoch: previous.map_or(0, |row| row.snapshot_epoch.saturating_add(1)),
            create_time_ms: time_ms,
            write_time_ms: time_ms,
            batches: Vec::new(),
            pending: Vec::new(),
            last_lsn: lsn,
        }
    }

    /// Whether an initialize with these values repeats the last one: it carries the start offset
    /// that that one carried, or the one that the share partition has reached.
    pub(super) fn is_initialize_retry(&self, state_epoch: i32, start_offset: i64) -> bool {
        let is_known = start_offset == self.start_offset || start_offset == self.init_start_offset;
        state_epoch == self.state_epoch && is_known
    }

    /// Drops and clips the pending acks below the start offset.
    pub(super) fn clip_pending(&mut self) {
        let gone = self.pending.partition_point(|ack| ack.last_offset < self.start_offset);
        drop(self.pending.drain(..gone));
        if let Some(head) = self.pending.first_mut() {
            head.first_offset = head.first_offset.max(self.start_offset);
        }
    }

    /// What [`ROW_WEIGHT_MAX`](crate::limits::ROW_WEIGHT_MAX) bounds: stored batches plus twice the
    /// pending ranges.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.pending.len().saturating_mul(2).saturating_add(self.batches.len())
    }

    /// Roughly how much memory the row takes. Cheap, for it is asked after every change: a stage
    /// call is counted once per run of its ranges.
    #[must_use]
    pub fn approx_bytes(&self) -> usize {
        let runs = self.pending.chunk_by(|a, b| Arc::ptr_eq(&a.call, &b.call));
        let calls = runs.filter_map(<[_]>::first).map(|ack| ack.call.approx_bytes());
        size_of::<Self>()
            .saturating_add(self.batches.len().saturating_mul(size_of::<StateBatch>()))
            .saturating_add(self.pending.len().saturating_mul(size_of::<PendingAck>()))
            .saturating_add(calls.fold(0, usize::saturating_add))
    }

    /// What [`ROW_CALL_BYTES_MAX`](crate::limits::ROW_CALL_BYTES_MAX) bounds: the ids of the stage
    /// calls that the row refers to.
    pub(super) fn call_bytes(&self) -> usize {
        let calls: BTreeMap<Lsn, &StageCall> =
            self.pending.iter().map(|ack| (ack.call.lsn, &*ack.call)).collect();
        calls.values().map(|call| call.id_bytes()).fold(0, usize::saturating_add)
    }

    /// Checks what must hold of every row by itself.
    ///
    /// # Errors
    /// What does not hold.
    pub fn check_invariants(&self) -> Result<(), &'static str> {
        let rules = [
            (self.state_epoch >= 0, "negative state epoch"),
            (self.leader_epoch <= self.leader_fence, "leader epoch above the leader fence"),
            (self.start_offset >= NO_START, "start offset below -1"),
            (self.delivery_complete_count >= -1, "delivery-complete count below -1"),
            (
                is_canonical(&self.batches, self.start_offset),
                "batches are not sorted, disjoint, maximal runs of storable states above the start",
            ),
            (
                self.pending.is_sorted_by(|a, b| a.last_offset < b.first_offset),
                "pending acks are not sorted and disjoint",
            ),
            (self.pending.iter().all(|ack| self.admits(ack)), "a pending ack cannot be pending"),
        ];
        rules.iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, broken)| Err(broken))
    }

    /// Whether a pending ack is well formed and lies over nothing that it could not have been
    /// staged on.
    fn admits(&self, ack: &PendingAck) -> bool {
        is_offset_range(ack.first_offset, ack.last_offset)
            && ack.first_offset >= self.start_offset
            && ack.delivery_count >= 0
            && ack_fits(ack.ack_type, ack.commit_target, ack.abort_target)
            && ack.call.state_epoch == self.state_epoch
            && overlapping(&self.batches, ack.first_offset, ack.last_offset).iter().all(|batch| {
                batch.delivery_state == DeliveryState::AVAILABLE
                    && batch.delivery_count < ack.delivery_count
            })
    }
}

impl AckType {
    /// The ack type of a number on the wire or on disk.
    #[must_use]
    pub fn from_raw(raw: i8) -> Option<Self> {
        [Self::Gap, Self::Accept, Self::Release, Self::Reject, Self::Renew]
            .into_iter()
            .find(|ack_type| *ack_type as i8 == raw)
    }
}

/// Whether these targets fit the ack type (semantics section 4.1); false for types that cannot be
/// staged.
pub(super) fn ack_fits(ack_type: AckType, commit: DeliveryState, abort: DeliveryState) -> bool {
    use DeliveryState as S;
    let may_undo = matches!(abort, S::AVAILABLE | S::ARCHIVING | S::ARCHIVED);
    match ack_type {
        AckType::Accept => commit == S::ACKNOWLEDGED && may_undo,
        AckType::Reject => matches!(commit, S::ARCHIVING | S::ARCHIVED) && may_undo,
        AckType::Gap => commit == S::ARCHIVED && abort == S::AVAILABLE,
        AckType::Release | AckType::Renew => false,
    }
}

impl PendingAck {
    /// The transaction that it belongs to: producer id and epoch.
    #[must_use]
    pub fn owner(&self) -> (i64, i16) {
        (self.call.producer_id, self.call.producer_epoch)
    }
}

impl Span for PendingAck {
    fn first(&self) -> i64 {
        self.first_offset
    }
    fn last(&self) -> i64 {
        self.last_offset
    }
}

impl StageCall {
    fn approx_bytes(&self) -> usize {
        size_of::<Self>().saturating_add(self.id_bytes())
    }

    fn id_bytes(&self) -> usize {
        self.transactional_id.len().saturating_add(self.member_id.len())
    }
}
