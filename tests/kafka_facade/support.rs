//! A store on the simulated disk, and requests in few words.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use sharestate::blocking::block_on;
use sharestate::fsio::sim::SimFs;
use sharestate::kafka::{
    AcknowledgePartition, AcknowledgementBatch, GroupRequest, InitializePartition, PartitionResult,
    Persister, ReadPartition, ReadRequest, ReadResult, TopicData, TxnMarker, TxnMarkerTopic,
    TxnShareAcknowledgeRequest, WritePartition,
};
use sharestate::snapshot::MemoryRows;
use sharestate::{DeliveryState, Options, ShareStore, StateBatch};
use uuid::Uuid;

pub const GROUP: &str = "billing:eu";
pub const TOPIC: Uuid = Uuid::from_u128(0x51);

pub fn options() -> Options {
    let mut options = Options::default();
    options.segment_bytes = 4 << 20;
    options.checkpoint_log_bytes = Some(u64::MAX);
    options.background_segments = false;
    options.reserve_bytes = 0;
    options
}

pub fn open(fs: &SimFs, rows: &MemoryRows, options: &Options) -> Persister {
    let store = ShareStore::open_with(Arc::new(fs.clone()), rows, Path::new("/s"), options);
    Persister::new(store.unwrap_or_else(|error| panic!("open: {error}")))
}

pub fn persister() -> Persister {
    open(&SimFs::new(1), &MemoryRows::default(), &options())
}

/// With these partitions of [`TOPIC`] initialised at state epoch 1 and start offset 0.
pub fn started(partitions: &[i32]) -> Persister {
    let persister = persister();
    start(&persister, partitions);
    persister
}

pub fn start(persister: &Persister, partitions: &[i32]) {
    let start = |partition: &i32| InitializePartition {
        partition: *partition,
        state_epoch: 1,
        start_offset: 0,
    };
    let request = group(partitions.iter().map(start).collect());
    assert_codes(&run(persister.initialize_state(request)), &vec![0; partitions.len()]);
}

pub fn run<F: Future>(future: F) -> F::Output {
    block_on(future)
}

/// A request about [`TOPIC`] alone.
pub fn group<P>(partitions: Vec<P>) -> GroupRequest<P> {
    GroupRequest { group_id: GROUP.to_owned(), topics: vec![topic(partitions)] }
}

pub fn topic<P>(partitions: Vec<P>) -> TopicData<P> {
    TopicData { topic_id: TOPIC, partitions }
}

pub fn batch(first: i64, last: i64, state: i8, count: i16) -> StateBatch {
    StateBatch {
        first_offset: first,
        last_offset: last,
        delivery_state: DeliveryState(state),
        delivery_count: count,
    }
}

pub fn write(partition: i32, state_batches: Vec<StateBatch>) -> WritePartition {
    WritePartition {
        partition,
        state_epoch: 1,
        leader_epoch: 0,
        start_offset: -1,
        delivery_complete_count: 0,
        state_batches,
    }
}

pub fn read_request(partitions: &[i32], accepts_pending: bool) -> ReadRequest {
    let read = |partition: &i32| ReadPartition { partition: *partition, leader_epoch: 0 };
    ReadRequest {
        group_id: GROUP.to_owned(),
        accepts_pending,
        topics: vec![topic(partitions.iter().map(read).collect())],
    }
}

/// Reads one partition of [`TOPIC`].
pub fn read(persister: &Persister, partition: i32, accepts_pending: bool) -> ReadResult {
    let mut topics = run(persister.read_state(read_request(&[partition], accepts_pending)));
    assert_eq!((topics.len(), topics[0].partitions.len()), (1, 1));
    topics.remove(0).partitions.remove(0)
}

/// What a reader sees of the batches, without staged fields.
pub fn shown(result: &ReadResult) -> Vec<(i64, i64, i8, i16)> {
    let shown = result.state_batches.iter();
    shown.map(|b| (b.first_offset, b.last_offset, b.delivery_state.0, b.delivery_count)).collect()
}

pub fn codes(topics: &[TopicData<PartitionResult>]) -> Vec<i16> {
    let results = topics.iter().flat_map(|topic| &topic.partitions);
    results
        .map(|result| {
            assert_eq!(result.error_code == 0, result.error_message.is_none(), "{result:?}");
            result.error_code
        })
        .collect()
}

pub fn assert_codes(topics: &[TopicData<PartitionResult>], expected: &[i16]) {
    assert_eq!(codes(topics), expected, "{topics:?}");
}

/// Acks of these types by producer 7, epoch 0; accepts commit to 2, rejects to 4.
pub fn acks(first: i64, last: i64, types: &[i8]) -> AcknowledgementBatch {
    AcknowledgementBatch {
        first_offset: first,
        last_offset: last,
        acknowledge_types: types.to_vec(),
        delivery_count: 1,
        reject_target: DeliveryState::ARCHIVED,
        abort_target: DeliveryState::AVAILABLE,
    }
}

pub fn stage(partitions: Vec<(i32, Vec<AcknowledgementBatch>)>) -> TxnShareAcknowledgeRequest {
    let partition = |(partition, batches)| AcknowledgePartition {
        partition,
        state_epoch: 1,
        leader_epoch: 0,
        batches,
    };
    TxnShareAcknowledgeRequest {
        group_id: GROUP.to_owned(),
        transactional_id: "payments".to_owned(),
        producer_id: 7,
        producer_epoch: 0,
        member_id: "consumer".to_owned(),
        member_epoch: 3,
        transaction_version: 2,
        two_phase: false,
        topics: vec![topic(partitions.into_iter().map(partition).collect())],
    }
}

/// A marker of transaction version 2 for these topics and partitions.
pub fn marker(
    producer_id: i64,
    producer_epoch: i16,
    commit: bool,
    topics: &[(&str, &[i32])],
) -> TxnMarker {
    let topic = |(name, partitions): &(&str, &[i32])| TxnMarkerTopic {
        name: (*name).to_owned(),
        partition_indexes: partitions.to_vec(),
    };
    TxnMarker {
        producer_id,
        producer_epoch,
        transaction_result: commit,
        topics: topics.iter().map(topic).collect(),
        coordinator_epoch: 1,
        transaction_version: 2,
    }
}
