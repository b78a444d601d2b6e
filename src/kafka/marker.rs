//! `WriteTxnMarkers`, as far as it concerns share groups.

use super::{PartitionError, codes};
use crate::model::{Marker, Outcome};

/// The internal topic whose partitions a transaction coordinator lists as participants when acks of
/// share groups were staged.
pub const SHARE_GROUP_STATE_TOPIC: &str = "__share_group_state";

/// One marker of a `WriteTxnMarkers` request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TxnMarker {
    /// Producer id.
    pub producer_id: i64,
    /// Producer epoch; under transaction version 2 one above that of the acks.
    pub producer_epoch: i16,
    /// Outcome: true = commit.
    pub transaction_result: bool,
    /// Participants. Only partitions of [`SHARE_GROUP_STATE_TOPIC`] concern the store; a marker
    /// that lists none of them does nothing here (M-9).
    pub topics: Vec<TxnMarkerTopic>,
    /// Epoch of the transaction coordinator.
    pub coordinator_epoch: i32,
    /// Transaction version (KIP-1228); 0 where the request does not carry it.
    pub transaction_version: i8,
}

/// Participants of one topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TxnMarkerTopic {
    /// Topic.
    pub name: String,
    /// Partition indexes.
    pub partition_indexes: Vec<i32>,
}

/// The answer about one marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TxnMarkerResult {
    /// Producer id.
    pub producer_id: i64,
    /// Results of the request's share-state partitions, in its order. Other topics are the broker's
    /// own affair and are left out.
    pub topics: Vec<TxnMarkerTopicResult>,
}

/// The answers about one topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TxnMarkerTopicResult {
    /// Topic.
    pub name: String,
    /// Partitions, in the order of the request.
    pub partitions: Vec<TxnMarkerPartitionResult>,
}

/// The answer about one participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TxnMarkerPartitionResult {
    /// Partition index.
    pub partition_index: i32,
    /// Kafka's error code, 0 = success. Always one that a transaction coordinator reacts to sanely
    /// (semantics section 4.4); `INVALID_REQUEST` (42) only for a negative producer id or epoch,
    /// which a broker never forwards.
    pub error_code: i16,
}

impl TxnMarker {
    /// Whether it lists a participant that this store is.
    pub(super) fn concerns_share_state(&self) -> bool {
        self.topics
            .iter()
            .any(|topic| topic.is_share_state() && !topic.partition_indexes.is_empty())
    }

    pub(super) fn marker(&self) -> Marker {
        Marker {
            producer_id: self.producer_id,
            producer_epoch: self.producer_epoch,
            coordinator_epoch: self.coordinator_epoch,
            outcome: if self.transaction_result { Outcome::Commit } else { Outcome::Abort },
            transaction_version: self.transaction_version,
        }
    }

    /// One answer for all participants: a transaction has one outcome.
    pub(super) fn result(self, answer: &Result<(), PartitionError>) -> TxnMarkerResult {
        let error_code = answer.as_ref().err().map_or(codes::NONE, |error| error.code);
        let partition = |partition_index| TxnMarkerPartitionResult { partition_index, error_code };
        let topics = self.topics.into_iter().filter(TxnMarkerTopic::is_share_state);
        let topics =
            topics.map(|TxnMarkerTopic { name, partition_indexes }| TxnMarkerTopicResult {
                name,
                partitions: partition_indexes.into_iter().map(partition).collect(),
            });
        TxnMarkerResult { producer_id: self.producer_id, topics: topics.collect() }
    }
}

impl TxnMarkerTopic {
    fn is_share_state(&self) -> bool {
        self.name == SHARE_GROUP_STATE_TOPIC
    }
}
