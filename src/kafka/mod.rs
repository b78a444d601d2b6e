//! The store as Kafka's brokers ask for it: many topics and partitions a call, and an error code
//! and message for each.
//!
//! Owns the shapes of Kafka's persister calls (KIP-932), of `TxnShareAcknowledge` (KIP-1289, draft)
//! and of `WriteTxnMarkers`, and how answers of the store become Kafka's. Decides nothing itself
//! and knows nothing of what is below [`ShareStore`](crate::ShareStore).
//!
//! Rules that hold for every call:
//!
//! * Results stand in the order of the request, topic by topic and partition by partition.
//! * Each partition is judged and answered by itself, in the order of the request, so one call may
//!   succeed in part. A partition that is listed twice is executed twice, as in Kafka, and answered
//!   twice, where Kafka shows the last answer only.
//! * Nothing is ever left out of an answer: no topics give no results, a malformed group id gives
//!   `INVALID_REQUEST` for each partition.
//! * A call never fails as a whole. A store that has failed or is closed answers each partition
//!   with the code of [`StoreError::kafka_code`](crate::StoreError::kafka_code).
//!
//! Dropping the future of a call takes nothing back that was submitted; what was not is not done.
//! The identical call may be repeated.

mod error;
mod marker;
mod persister;
mod plain;
mod read;
mod request;
mod stage;

pub use error::{PartitionError, codes};
pub use marker::{
    SHARE_GROUP_STATE_TOPIC, TxnMarker, TxnMarkerPartitionResult, TxnMarkerResult, TxnMarkerTopic,
    TxnMarkerTopicResult,
};
pub use persister::{Persister, TopicCatalogue};
pub use plain::{
    DeletePartition, InitializePartition, PartitionResult, SummaryPartition, SummaryResult,
    WritePartition,
};
pub use read::{PersisterBatch, ReadPartition, ReadRequest, ReadResult, StagedFields};
pub use request::{GroupRequest, TopicData};
pub use stage::{AcknowledgePartition, AcknowledgementBatch, TxnShareAcknowledgeRequest};
