//! `initializeState`, `writeState`, `readSummary` and `deleteState`.

use super::request::{PartitionAnswer, PartitionRequest};
use super::{PartitionError, codes};
use crate::model::{Answer, Command, SharePartitionKey, StateBatch, SummaryAnswer};

/// One partition of `initializeState`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InitializePartition {
    /// Partition index.
    pub partition: i32,
    /// State epoch.
    pub state_epoch: i32,
    /// Start offset, -1 = not known yet.
    pub start_offset: i64,
}

/// One partition of `writeState`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WritePartition {
    /// Partition index.
    pub partition: i32,
    /// State epoch that the leader knows.
    pub state_epoch: i32,
    /// Leader epoch.
    pub leader_epoch: i32,
    /// Start offset, -1 = leave it.
    pub start_offset: i64,
    /// Delivery-complete count (KIP-1226), -1 = unknown.
    pub delivery_complete_count: i32,
    /// Changed batches. State 5 is refused: acks are staged with `TxnShareAcknowledge`.
    pub state_batches: Vec<StateBatch>,
}

/// One partition of `readSummary`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SummaryPartition {
    /// Partition index.
    pub partition: i32,
    /// Leader epoch; fences nothing, as in Kafka.
    pub leader_epoch: i32,
}

/// One partition of `deleteState`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeletePartition {
    /// Partition index.
    pub partition: i32,
}

/// The answer about one partition, where success has no data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionResult {
    /// Partition index.
    pub partition: i32,
    /// Kafka's error code, 0 = success.
    pub error_code: i16,
    /// What is wrong; none on success.
    pub error_message: Option<String>,
}

/// The answer of `readSummary` about one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryResult {
    /// Partition index.
    pub partition: i32,
    /// State epoch; 0 when not initialised and with an error.
    pub state_epoch: i32,
    /// Leader epoch; 0 when not initialised and with an error.
    pub leader_epoch: i32,
    /// Start offset; -1 when not known or not initialised, 0 with an error, as in Kafka.
    pub start_offset: i64,
    /// Delivery-complete count; -1 when not known.
    pub delivery_complete_count: i32,
    /// Kafka's error code, 0 = success.
    pub error_code: i16,
    /// What is wrong; none on success.
    pub error_message: Option<String>,
}

/// Code and message as results carry them.
pub(super) fn told(error: Option<PartitionError>) -> (i16, Option<String>) {
    error.map_or((codes::NONE, None), |error| (error.code, Some(error.message)))
}

impl PartitionRequest for InitializePartition {
    fn index(&self) -> i32 {
        self.partition
    }

    fn command(self, key: SharePartitionKey, (): &()) -> Result<Command, PartitionError> {
        let Self { state_epoch, start_offset, .. } = self;
        Ok(Command::Initialize { key, state_epoch, start_offset })
    }
}

impl PartitionRequest for WritePartition {
    fn index(&self) -> i32 {
        self.partition
    }

    fn command(self, key: SharePartitionKey, (): &()) -> Result<Command, PartitionError> {
        Ok(Command::Write {
            key,
            state_epoch: self.state_epoch,
            leader_epoch: self.leader_epoch,
            start_offset: self.start_offset,
            delivery_complete_count: self.delivery_complete_count,
            batches: self.state_batches,
        })
    }
}

impl PartitionRequest for SummaryPartition {
    fn index(&self) -> i32 {
        self.partition
    }

    fn command(self, key: SharePartitionKey, (): &()) -> Result<Command, PartitionError> {
        Ok(Command::Summary { key })
    }
}

impl PartitionRequest for DeletePartition {
    fn index(&self) -> i32 {
        self.partition
    }

    fn command(self, key: SharePartitionKey, (): &()) -> Result<Command, PartitionError> {
        Ok(Command::Delete { key })
    }
}

impl PartitionAnswer for PartitionResult {
    fn new(partition: i32, answer: Result<Answer, PartitionError>) -> Self {
        let (error_code, error_message) = told(answer.err());
        Self { partition, error_code, error_message }
    }
}

impl PartitionAnswer for SummaryResult {
    fn new(partition: i32, answer: Result<Answer, PartitionError>) -> Self {
        let (summary, error) = match answer {
            Ok(Answer::Summary(summary)) => (summary, None),
            Ok(other) => (NO_SUMMARY, Some(crate::store::unexpected(&other).into())),
            Err(error) => (NO_SUMMARY, Some(error)),
        };
        let (error_code, error_message) = told(error);
        let SummaryAnswer { state_epoch, leader_epoch, start_offset, delivery_complete_count } =
            summary;
        Self {
            partition,
            state_epoch,
            leader_epoch,
            start_offset,
            delivery_complete_count,
            error_code,
            error_message,
        }
    }
}

/// The defaults of Kafka's message, which stand beside an error.
const NO_SUMMARY: SummaryAnswer =
    SummaryAnswer { state_epoch: 0, leader_epoch: 0, start_offset: 0, delivery_complete_count: -1 };
