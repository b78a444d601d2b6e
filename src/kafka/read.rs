//! `readState`, and pending acks as KIP-1289's draft shows them: batches of delivery state 5.

use super::plain::told;
use super::request::{PartitionAnswer, PartitionRequest};
use super::{PartitionError, TopicData};
use crate::model::{
    AckType, Answer, Command, DeliveryState, Partition, PendingAck, SharePartitionKey, StateBatch,
};

/// A request of `readState`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadRequest {
    /// Share group.
    pub group_id: String,
    /// The reader understands pending acks: delivery state 5 with [`StagedFields`]. Without it a
    /// share partition that has any is answered with `UNSUPPORTED_VERSION` (35), since hidden ones
    /// would look like gaps and be delivered again (semantics section 2). The read counts all the
    /// same: its leader epoch is durable and fences older leaders, for the reader does lead.
    pub accepts_pending: bool,
    /// Topics.
    pub topics: Vec<TopicData<ReadPartition>>,
}

/// One partition of `readState`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadPartition {
    /// Partition index.
    pub partition: i32,
    /// Leader epoch.
    pub leader_epoch: i32,
}

/// The answer of `readState` about one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadResult {
    /// Partition index.
    pub partition: i32,
    /// State epoch; 0 with an error.
    pub state_epoch: i32,
    /// Start offset, -1 = not known yet; 0 with an error.
    pub start_offset: i64,
    /// Batches: sorted, disjoint, maximal; all at or above the start offset.
    pub state_batches: Vec<PersisterBatch>,
    /// Kafka's error code, 0 = success.
    pub error_code: i16,
    /// What is wrong; none on success.
    pub error_message: Option<String>,
}

/// A batch as Kafka's persister shows it: `PersisterStateBatch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PersisterBatch {
    /// First offset, inclusive.
    pub first_offset: i64,
    /// Last offset, inclusive.
    pub last_offset: i64,
    /// 0, 2, 3 or 4; 5 (`TX_PENDING`) for staged acks.
    pub delivery_state: DeliveryState,
    /// Delivery count.
    pub delivery_count: i16,
    /// Present exactly when the state is 5. On the wire of the draft an absent one is -1 in each
    /// field.
    pub staged: Option<StagedFields>,
}

/// What the draft of KIP-1289 adds to a batch of state 5, and the abort target, which it does not
/// carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StagedFields {
    /// `StagedProducerId`.
    pub producer_id: i64,
    /// `StagedProducerEpoch`: that of the stage, not that of the marker.
    pub producer_epoch: i16,
    /// `StagedAckType`.
    pub ack_type: AckType,
    /// `StagedDeliveryState`: the state after a commit.
    pub delivery_state: DeliveryState,
    /// The state after an abort.
    pub abort_state: DeliveryState,
}

/// `readState` for readers that do not understand pending acks.
pub(super) struct PlainRead(pub(super) ReadResult);

impl PartitionRequest for ReadPartition {
    fn index(&self) -> i32 {
        self.partition
    }

    fn command(self, key: SharePartitionKey, (): &()) -> Result<Command, PartitionError> {
        Ok(Command::Read { key, leader_epoch: self.leader_epoch })
    }
}

impl PartitionAnswer for ReadResult {
    fn new(partition: i32, answer: Result<Answer, PartitionError>) -> Self {
        match row(answer) {
            Ok(row) => Self::of(partition, &row),
            Err(error) => Self::failed(partition, error),
        }
    }
}

impl PartitionAnswer for PlainRead {
    fn new(partition: i32, answer: Result<Answer, PartitionError>) -> Self {
        Self(match row(answer) {
            Ok(row) if row.pending.is_empty() => ReadResult::of(partition, &row),
            Ok(row) => {
                ReadResult::failed(partition, PartitionError::hidden_pending(row.pending.len()))
            }
            Err(error) => ReadResult::failed(partition, error),
        })
    }
}

fn row(answer: Result<Answer, PartitionError>) -> Result<Partition, PartitionError> {
    match answer? {
        Answer::Read(read) => Ok(read.partition),
        other => Err(crate::store::unexpected(&other).into()),
    }
}

impl ReadResult {
    fn of(partition: i32, row: &Partition) -> Self {
        Self {
            partition,
            state_epoch: row.state_epoch,
            start_offset: row.start_offset,
            state_batches: with_pending(&row.batches, &row.pending),
            error_code: super::codes::NONE,
            error_message: None,
        }
    }

    fn failed(partition: i32, error: PartitionError) -> Self {
        let (error_code, error_message) = told(Some(error));
        Self {
            partition,
            state_epoch: 0,
            start_offset: 0,
            state_batches: Vec::new(),
            error_code,
            error_message,
        }
    }
}

/// The batches with the pending acks painted over them: a pending ack stands above whatever its
/// offsets were before. Both are sorted and disjoint, and so is what comes out.
fn with_pending(batches: &[StateBatch], pending: &[PendingAck]) -> Vec<PersisterBatch> {
    let mut shown = Vec::with_capacity(batches.len() + pending.len());
    let mut batches = batches.iter().map(PersisterBatch::from).peekable();
    for ack in pending {
        while let Some(batch) = batches.next_if(|batch| batch.last_offset < ack.first_offset) {
            push(&mut shown, batch);
        }
        // What a batch holds in front of the ack is shown; what it holds behind it comes next.
        while let Some(batch) = batches.peek_mut() {
            if batch.first_offset < ack.first_offset {
                push(&mut shown, PersisterBatch { last_offset: ack.first_offset - 1, ..*batch });
            }
            if batch.last_offset > ack.last_offset {
                batch.first_offset = batch.first_offset.max(ack.last_offset + 1);
                break;
            }
            batches.next();
        }
        push(&mut shown, ack.into());
    }
    batches.for_each(|batch| push(&mut shown, batch));
    shown
}

/// Adds a batch, joined to the one before it where nothing tells them apart.
fn push(shown: &mut Vec<PersisterBatch>, batch: PersisterBatch) {
    match shown.last_mut() {
        Some(last)
            if last.last_offset + 1 == batch.first_offset
                && last.delivery_state == batch.delivery_state
                && last.delivery_count == batch.delivery_count
                && last.staged == batch.staged =>
        {
            last.last_offset = batch.last_offset;
        }
        _ => shown.push(batch),
    }
}

impl From<&StateBatch> for PersisterBatch {
    fn from(batch: &StateBatch) -> Self {
        Self {
            first_offset: batch.first_offset,
            last_offset: batch.last_offset,
            delivery_state: batch.delivery_state,
            delivery_count: batch.delivery_count,
            staged: None,
        }
    }
}

impl From<&PendingAck> for PersisterBatch {
    fn from(ack: &PendingAck) -> Self {
        let (producer_id, producer_epoch) = ack.owner();
        Self {
            first_offset: ack.first_offset,
            last_offset: ack.last_offset,
            delivery_state: DeliveryState::TX_PENDING,
            delivery_count: ack.delivery_count,
            staged: Some(StagedFields {
                producer_id,
                producer_epoch,
                ack_type: ack.ack_type,
                delivery_state: ack.commit_target,
                abort_state: ack.abort_target,
            }),
        }
    }
}
