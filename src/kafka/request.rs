//! What all requests and results have in common: partitions by topic, of one group.

use std::sync::Arc;

use uuid::Uuid;

use super::PartitionError;
use crate::model::{Answer, Command, SharePartitionKey};

/// A request about share partitions of one group. Kafka's `GroupTopicPartitionData`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupRequest<P> {
    /// Share group.
    pub group_id: String,
    /// Topics; a topic may occur more than once.
    pub topics: Vec<TopicData<P>>,
}

/// Partitions of one topic, in requests and in results. Kafka's `TopicData`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicData<P> {
    /// Topic id.
    pub topic_id: Uuid,
    /// Partitions; one may occur more than once.
    pub partitions: Vec<P>,
}

/// One partition of a request. `C` is what the whole request says of each.
pub(super) trait PartitionRequest<C = ()> {
    /// Partition index.
    fn index(&self) -> i32;

    /// What is asked of the store.
    fn command(self, key: SharePartitionKey, common: &C) -> Result<Command, PartitionError>;
}

/// One partition of a result.
pub(super) trait PartitionAnswer {
    /// What the store's answer is to Kafka.
    fn new(partition: i32, answer: Result<Answer, PartitionError>) -> Self;
}

/// Topics of a request without their partitions: what gives results the same shape.
pub(super) struct Outline(Vec<(Uuid, usize)>);

/// Takes a request apart. Commands are made one by one, as they are taken: each may hold long ids
/// of its own.
pub(super) fn flatten<C, P: PartitionRequest<C>>(
    group_id: &str,
    topics: Vec<TopicData<P>>,
    common: C,
) -> (Outline, impl Iterator<Item = (i32, Result<Command, PartitionError>)>) {
    let group_id: Arc<str> = group_id.into();
    let outline = topics.iter().map(|topic| (topic.topic_id, topic.partitions.len())).collect();
    let partitions = topics.into_iter().flat_map(|TopicData { topic_id, partitions }| {
        partitions.into_iter().map(move |partition| (topic_id, partition))
    });
    let commands = partitions.map(move |(topic_id, request)| {
        let partition = request.index();
        let key = SharePartitionKey::new(Arc::clone(&group_id), topic_id, partition);
        let command = key.map_err(PartitionError::from);
        (partition, command.and_then(|key| request.command(key, &common)))
    });
    (Outline(outline), commands)
}

impl Outline {
    /// Puts results, one for each partition of the request, under their topics again.
    pub(super) fn fill<R>(self, results: impl IntoIterator<Item = R>) -> Vec<TopicData<R>> {
        let mut results = results.into_iter();
        let mut topics = Vec::with_capacity(self.0.len());
        for (topic_id, count) in self.0 {
            let partitions = results.by_ref().take(count).collect();
            topics.push(TopicData { topic_id, partitions });
        }
        topics
    }
}
