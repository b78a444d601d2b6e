//! The calls.

use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

use super::read::PlainRead;
use super::request::{PartitionAnswer, PartitionRequest, flatten};
use super::stage::Transaction;
use super::{
    DeletePartition, GroupRequest, InitializePartition, PartitionError, PartitionResult,
    ReadRequest, ReadResult, SummaryPartition, SummaryResult, TopicData, TxnMarker,
    TxnMarkerResult, TxnShareAcknowledgeRequest, WritePartition,
};
use crate::engine::Submitted;
use crate::error::StoreError;
use crate::model::{self, Answer, Command, RowId, SharePartitionKey, State};
use crate::store::ShareStore;

/// Which topic partitions exist, as a broker's metadata image tells it.
pub trait TopicCatalogue: fmt::Debug + Send + Sync {
    /// Whether this partition exists. Asked once for each partition of a request, on the task that
    /// makes the call: answer from memory.
    fn contains(&self, topic_id: Uuid, partition: i32) -> bool;
}

/// A store behind Kafka's persister calls. Cheap to clone.
///
/// With a [`TopicCatalogue`] a partition that is not in it is answered with
/// `UNKNOWN_TOPIC_OR_PARTITION` (3), as Kafka does, after every other check and without any effect;
/// without one any topic will do. State of deleted topics is not asked for any more by anybody:
/// drop it with [`ShareStore::delete_topic`] when metadata tells of the deletion.
#[derive(Debug, Clone)]
pub struct Persister {
    store: ShareStore,
    catalogue: Option<Arc<dyn TopicCatalogue>>,
}

/// What became of one partition of a request.
enum Progress {
    Failed(PartitionError),
    Submitted(Submitted),
    /// Not in the catalogue: to be judged, not done.
    Unknown(SharePartitionKey, Command),
}

impl Persister {
    /// A persister over this store.
    #[must_use]
    pub fn new(store: ShareStore) -> Self {
        Self { store, catalogue: None }
    }

    /// The same with a catalogue of the topics that exist.
    #[must_use]
    pub fn with_catalogue(self, catalogue: Arc<dyn TopicCatalogue>) -> Self {
        Self { catalogue: Some(catalogue), ..self }
    }

    /// The store behind.
    #[must_use]
    pub fn store(&self) -> &ShareStore {
        &self.store
    }

    /// `initializeState`: the group coordinator starts share partitions anew.
    pub async fn initialize_state(
        &self,
        request: GroupRequest<InitializePartition>,
    ) -> Vec<TopicData<PartitionResult>> {
        self.each(&request.group_id, request.topics, ()).await
    }

    /// `readState`: a partition leader takes over. See [`ReadRequest::accepts_pending`].
    pub async fn read_state(&self, request: ReadRequest) -> Vec<TopicData<ReadResult>> {
        let ReadRequest { group_id, accepts_pending, topics } = request;
        if accepts_pending {
            return self.each(&group_id, topics, ()).await;
        }
        let plain: Vec<TopicData<PlainRead>> = self.each(&group_id, topics, ()).await;
        let unwrap = |topic: TopicData<PlainRead>| TopicData {
            topic_id: topic.topic_id,
            partitions: topic.partitions.into_iter().map(|PlainRead(read)| read).collect(),
        };
        plain.into_iter().map(unwrap).collect()
    }

    /// `writeState`: a partition leader persists acknowledgements.
    pub async fn write_state(
        &self,
        request: GroupRequest<WritePartition>,
    ) -> Vec<TopicData<PartitionResult>> {
        self.each(&request.group_id, request.topics, ()).await
    }

    /// `readSummary`: the group coordinator asks for offsets and lag.
    pub async fn read_summary(
        &self,
        request: GroupRequest<SummaryPartition>,
    ) -> Vec<TopicData<SummaryResult>> {
        self.each(&request.group_id, request.topics, ()).await
    }

    /// `deleteState`: the group coordinator drops share partitions.
    pub async fn delete_state(
        &self,
        request: GroupRequest<DeletePartition>,
    ) -> Vec<TopicData<PartitionResult>> {
        self.each(&request.group_id, request.topics, ()).await
    }

    /// `TxnShareAcknowledge`: stages acks inside a producer's transaction, all or nothing for each
    /// partition (S-6, S-7). After an error that is not a refusal the outcome is unknown: keep the
    /// records undeliverable and repeat the identical call (S-8).
    pub async fn txn_share_acknowledge(
        &self,
        request: TxnShareAcknowledgeRequest,
    ) -> Vec<TopicData<PartitionResult>> {
        let transaction = Transaction {
            transactional_id: request.transactional_id,
            producer_id: request.producer_id,
            producer_epoch: request.producer_epoch,
            member_id: request.member_id,
            member_epoch: request.member_epoch,
            transaction_version: request.transaction_version,
            two_phase: request.two_phase,
        };
        self.each(&request.group_id, request.topics, transaction).await
    }

    /// `WriteTxnMarkers`: each marker resolves, in one atomic step, whatever its producer staged
    /// anywhere in the store. Answers stand in the order of the markers.
    pub async fn write_txn_markers(&self, markers: Vec<TxnMarker>) -> Vec<TxnMarkerResult> {
        let mut submitted = Vec::with_capacity(markers.len());
        for marker in markers {
            let waiting = if marker.concerns_share_state() {
                Some(self.store.engine().submit_when_room(marker.marker().into()).await)
            } else {
                None
            };
            submitted.push((marker, waiting));
        }
        let mut results = Vec::with_capacity(submitted.len());
        for (marker, waiting) in submitted {
            let answer = match waiting {
                None => Ok(()),
                Some(submitted) => self.answer(submitted).await.map(drop),
            };
            results.push(marker.result(&answer));
        }
        results
    }

    /// Asks the store about each partition of a request and answers in its shape. Everything is
    /// submitted before any answer is waited for, so that one call costs about one sync.
    async fn each<C: Send, P: PartitionRequest<C> + Send, R: PartitionAnswer>(
        &self,
        group_id: &str,
        topics: Vec<TopicData<P>>,
        common: C,
    ) -> Vec<TopicData<R>> {
        let (outline, commands) = flatten(group_id, topics, common);
        let mut underway = Vec::new();
        for (partition, command) in commands {
            underway.push((partition, self.begin(command).await));
        }
        let rows = self.rows_of_unknown(&underway).await;
        let mut results = Vec::with_capacity(underway.len());
        for (partition, progress) in underway {
            let answer = match progress {
                Progress::Failed(error) => Err(error),
                Progress::Submitted(submitted) => self.answer(Ok(submitted)).await,
                Progress::Unknown(_, command) => Err(refusal_of_unknown(&rows, &command)),
            };
            results.push(R::new(partition, answer));
        }
        outline.fill(results)
    }

    async fn begin(&self, command: Result<Command, PartitionError>) -> Progress {
        let command = match command {
            Ok(command) => command,
            Err(error) => return Progress::Failed(error),
        };
        if let Some(key) = self.unknown(&command) {
            return Progress::Unknown(key, command);
        }
        match self.store.engine().submit_when_room(command).await {
            Ok(submitted) => Progress::Submitted(submitted),
            Err(error) => Progress::Failed(error.into()),
        }
    }

    /// The key of a command, if it is not in the catalogue.
    fn unknown(&self, command: &Command) -> Option<SharePartitionKey> {
        let catalogue = self.catalogue.as_ref()?;
        model::reads(command).into_iter().find_map(|row| match row {
            RowId::Partition(key) if !catalogue.contains(key.topic_id(), key.partition()) => {
                Some(key)
            }
            RowId::Partition(_) | RowId::Producer(_) => None,
        })
    }

    async fn answer(
        &self,
        submitted: Result<Submitted, StoreError>,
    ) -> Result<Answer, PartitionError> {
        Ok(submitted?.answer(self.store.engine()).await?)
    }

    /// The rows that tell what Kafka says of partitions which are not in the catalogue.
    async fn rows_of_unknown(&self, underway: &[(i32, Progress)]) -> Result<State, PartitionError> {
        let keys: Vec<_> = underway
            .iter()
            .filter_map(|(_, progress)| match progress {
                Progress::Unknown(key, _) => Some(key.clone()),
                Progress::Failed(_) | Progress::Submitted(_) => None,
            })
            .collect();
        if keys.is_empty() {
            return Ok(State::default());
        }
        let rows = self.store.engine().rows(keys).await?;
        Ok(State { partitions: rows.into_iter().collect(), ..State::default() })
    }
}

/// Kafka checks topic metadata last, so a refusal of the store's goes first. Nothing is done in any
/// case.
fn refusal_of_unknown(rows: &Result<State, PartitionError>, command: &Command) -> PartitionError {
    let rows = match rows {
        Ok(rows) => rows,
        Err(error) => return error.clone(),
    };
    match model::decide(rows, command, 0, &model::Options::default()).answer {
        Err(rejection) => StoreError::from(rejection).into(),
        Ok(_) => PartitionError::unknown_partition(),
    }
}
