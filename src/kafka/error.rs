//! Errors as Kafka tells them: a code and a text for each partition.

use crate::error::StoreError;
use crate::model::{KeyError, Rejection};

/// The codes of Kafka's protocol that the facade answers with.
pub mod codes {
    /// `UNKNOWN_SERVER_ERROR`: what is too large for the store.
    pub const UNKNOWN_SERVER_ERROR: i16 = -1;
    /// `NONE`.
    pub const NONE: i16 = 0;
    /// `UNKNOWN_TOPIC_OR_PARTITION`: not in the caller's topic catalogue.
    pub const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
    /// `NOT_LEADER_OR_FOLLOWER`: the store is closed.
    pub const NOT_LEADER_OR_FOLLOWER: i16 = 6;
    /// `UNSUPPORTED_VERSION`: a transaction version below 2, or a reader that does not understand
    /// the pending acks that are there.
    pub const UNSUPPORTED_VERSION: i16 = 35;
    /// `INVALID_REQUEST`.
    pub const INVALID_REQUEST: i16 = 42;
    /// `INVALID_PRODUCER_EPOCH`.
    pub const INVALID_PRODUCER_EPOCH: i16 = 47;
    /// `TRANSACTION_COORDINATOR_FENCED`.
    pub const TRANSACTION_COORDINATOR_FENCED: i16 = 52;
    /// `KAFKA_STORAGE_ERROR`: the store has failed, or a row cannot be read.
    pub const KAFKA_STORAGE_ERROR: i16 = 56;
    /// `FENCED_LEADER_EPOCH`.
    pub const FENCED_LEADER_EPOCH: i16 = 74;
    /// `INVALID_RECORD_STATE`.
    pub const INVALID_RECORD_STATE: i16 = 121;
    /// `FENCED_STATE_EPOCH`.
    pub const FENCED_STATE_EPOCH: i16 = 124;
}

/// Why a partition, or a marker, was not answered with success.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (Kafka error {code})")]
pub struct PartitionError {
    /// Kafka's error code, see [`codes`].
    pub code: i16,
    /// What is wrong, in Kafka's own words where it has any.
    pub message: String,
}

impl PartitionError {
    pub(super) fn new(code: i16, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// In Kafka's words.
    pub(super) fn unknown_partition() -> Self {
        let message = "This server does not host this topic-partition.";
        Self::new(codes::UNKNOWN_TOPIC_OR_PARTITION, message)
    }

    /// A reader that does not say that it understands pending acks would take them for gaps and
    /// deliver their records again.
    pub(super) fn hidden_pending(ranges: usize) -> Self {
        let message = format!(
            "the share partition has {ranges} ranges of pending transactional acknowledgements, \
             which this reader does not say that it understands: upgrade the broker, or resolve \
             their transactions"
        );
        Self::new(codes::UNSUPPORTED_VERSION, message)
    }
}

impl From<KeyError> for PartitionError {
    fn from(error: KeyError) -> Self {
        Self::from(StoreError::from(error))
    }
}

impl From<StoreError> for PartitionError {
    fn from(error: StoreError) -> Self {
        let code = error.kafka_code().unwrap_or(codes::UNKNOWN_SERVER_ERROR);
        let message = match &error {
            StoreError::Key(KeyError::NegativePartition(_)) => {
                "The partition id cannot be a negative number.".to_owned()
            }
            StoreError::Rejected(Rejection::InvalidRequest(text)) => (*text).to_owned(),
            StoreError::Rejected(Rejection::FencedLeaderEpoch { .. }) => format!(
                "The leader epoch in the request is older than the epoch on the broker. ({error})"
            ),
            StoreError::Rejected(Rejection::FencedStateEpoch { .. }) => format!(
                "The coordinator rejected the request because the state epoch did not match. \
                 ({error})"
            ),
            _ => error.to_string(),
        };
        Self { code, message }
    }
}
