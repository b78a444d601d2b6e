//! `TxnShareAcknowledge` of KIP-1289's draft, as the store needs it: what the client sent and what
//! the broker knows of the acquired records.

use super::request::PartitionRequest;
use super::{PartitionError, TopicData, codes};
use crate::limits::BATCHES_PER_CALL_MAX;
use crate::model::{AckRange, AckType, Command, DeliveryState, SharePartitionKey, Stage};

/// A request to stage acks inside a producer's transaction.
///
/// The broker sends it on only after the transaction coordinator has verified the producer and
/// registered the state partition as a participant (semantics section 4.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TxnShareAcknowledgeRequest {
    /// Share group.
    pub group_id: String,
    /// Transactional id.
    pub transactional_id: String,
    /// Producer id.
    pub producer_id: i64,
    /// Producer epoch.
    pub producer_epoch: i16,
    /// Share consumer that acquired the records.
    pub member_id: String,
    /// Its epoch.
    pub member_epoch: i32,
    /// Transaction version; below 2 is refused.
    pub transaction_version: i8,
    /// Part of an external two-phase commit (KIP-939); false where the broker cannot tell.
    pub two_phase: bool,
    /// Topics.
    pub topics: Vec<TopicData<AcknowledgePartition>>,
}

/// One partition of [`TxnShareAcknowledgeRequest`]: all or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcknowledgePartition {
    /// Partition index.
    pub partition: i32,
    /// State epoch that the leader knows.
    pub state_epoch: i32,
    /// Leader epoch.
    pub leader_epoch: i32,
    /// What to stage.
    pub batches: Vec<AcknowledgementBatch>,
}

/// Acks of neighbouring records that were delivered equally often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcknowledgementBatch {
    /// First offset, inclusive.
    pub first_offset: i64,
    /// Last offset, inclusive.
    pub last_offset: i64,
    /// One for all offsets, or one for each: 1 (accept), 3 (reject) or 0 (gap).
    pub acknowledge_types: Vec<i8>,
    /// Delivery count of the acquired records.
    pub delivery_count: i16,
    /// What a commit makes of a reject: archived, or archiving where the group has a dead-letter
    /// queue (KIP-1191).
    pub reject_target: DeliveryState,
    /// What an abort makes of an accept or reject: available, or archived or archiving where the
    /// delivery limit is reached.
    pub abort_target: DeliveryState,
}

/// What a request says of all its partitions.
pub(super) struct Transaction {
    pub(super) transactional_id: String,
    pub(super) producer_id: i64,
    pub(super) producer_epoch: i16,
    pub(super) member_id: String,
    pub(super) member_epoch: i32,
    pub(super) transaction_version: i8,
    pub(super) two_phase: bool,
}

impl PartitionRequest<Transaction> for AcknowledgePartition {
    fn index(&self) -> i32 {
        self.partition
    }

    fn command(
        self,
        key: SharePartitionKey,
        transaction: &Transaction,
    ) -> Result<Command, PartitionError> {
        let mut acks = Vec::with_capacity(self.batches.len());
        for batch in &self.batches {
            batch.append_to(&mut acks)?;
        }
        Ok(Command::Stage(Stage {
            key,
            state_epoch: self.state_epoch,
            leader_epoch: self.leader_epoch,
            producer_id: transaction.producer_id,
            producer_epoch: transaction.producer_epoch,
            two_phase: transaction.two_phase,
            transaction_version: transaction.transaction_version,
            transactional_id: transaction.transactional_id.clone(),
            member_id: transaction.member_id.clone(),
            member_epoch: transaction.member_epoch,
            acks,
        }))
    }
}

impl AcknowledgementBatch {
    /// One range for each run of offsets of the same ack type.
    fn append_to(&self, acks: &mut Vec<AckRange>) -> Result<(), PartitionError> {
        let invalid = |text| PartitionError::new(codes::INVALID_REQUEST, text);
        let Self { first_offset, last_offset, .. } = *self;
        if let [raw] = *self.acknowledge_types {
            acks.push(self.range(first_offset, last_offset, raw)?);
            return Ok(());
        }
        let offsets = last_offset.checked_sub(first_offset).and_then(|n| n.checked_add(1));
        let is_one_each = offsets == i64::try_from(self.acknowledge_types.len()).ok();
        if self.acknowledge_types.is_empty() || !is_one_each {
            return Err(invalid("There must be one acknowledge type, or one for each offset."));
        }
        let mut first = first_offset;
        for run in self.acknowledge_types.chunk_by(|a, b| a == b) {
            // The lengths of the runs add up to the number of offsets, which is an i64.
            let last = first.saturating_add(run.len() as i64 - 1);
            acks.push(self.range(first, last, run[0])?);
            if acks.len() > BATCHES_PER_CALL_MAX {
                break; // The store refuses it; its memory is not needed for that.
            }
            first = last.saturating_add(1);
        }
        Ok(())
    }

    fn range(&self, first: i64, last: i64, raw: i8) -> Result<AckRange, PartitionError> {
        let ack_type = AckType::from_raw(raw).ok_or_else(|| {
            PartitionError::new(codes::INVALID_REQUEST, format!("Acknowledge type {raw}."))
        })?;
        let (commit_target, abort_target) = match ack_type {
            // An offset that holds no record has no dead letter and no delivery limit.
            AckType::Gap => (DeliveryState::ARCHIVED, DeliveryState::AVAILABLE),
            AckType::Reject => (self.reject_target, self.abort_target),
            // Release and renew are refused by the store, whatever the target.
            AckType::Accept | AckType::Release | AckType::Renew => {
                (DeliveryState::ACKNOWLEDGED, self.abort_target)
            }
        };
        Ok(AckRange {
            first_offset: first,
            last_offset: last,
            ack_type,
            commit_target,
            abort_target,
            delivery_count: self.delivery_count,
        })
    }
}
