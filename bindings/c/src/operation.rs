//! The calls, once their arguments are the store's: what is asked and what comes back.

use sharestate::{Answer, Command, PendingAck, SharePartitionKey, ShareStore};
use uuid::Uuid;

use crate::error::Failure;
use crate::types::{Batch, Partition, Range};

/// What is asked of a store.
pub(crate) enum Operation {
    Command(Command),
    /// A read by someone who does not understand pending acks.
    PlainRead {
        key: SharePartitionKey,
        leader_epoch: i32,
    },
    DeleteGroup(String),
    DeleteTopic(Uuid),
    PendingTotals,
    Checkpoint,
    /// Panics, at once or when the store has answered, to show that it does not matter.
    #[cfg(test)]
    Panic {
        later: bool,
    },
}

/// What came back.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    pub partition: Option<Partition>,
    pub batches: Vec<Batch>,
    /// Pending acks of a read; dropped ones of initialize, write and delete.
    pub pending: Vec<PendingAck>,
    pub staged: Vec<Range>,
    pub resolved: Vec<(SharePartitionKey, Vec<Range>)>,
    pub contradicts: bool,
    pub orphans: bool,
    pub deleted: (u64, u64),
    pub totals: Option<crate::types::PendingTotals>,
    pub lsn: u64,
}

impl Operation {
    pub async fn perform(self, store: ShareStore) -> Result<Reply, Failure> {
        match self {
            Self::Command(command) => Ok(reply(store.execute(command).await?)),
            Self::PlainRead { key, leader_epoch } => {
                let reply = reply(store.execute(Command::Read { key, leader_epoch }).await?);
                if reply.pending.is_empty() {
                    return Ok(reply);
                }
                // Hidden ones would look like gaps and be delivered again (semantics section 2).
                let message = "the share partition has pending transactional acknowledgements, \
                               which this reader does not say that it understands";
                Err(Failure::rejected(sharestate::kafka::codes::UNSUPPORTED_VERSION, message))
            }
            Self::DeleteGroup(group_id) => {
                let deleted = store.delete_group(&group_id).await?;
                Ok(Reply { deleted: (deleted.partitions, deleted.dropped), ..Reply::default() })
            }
            Self::DeleteTopic(topic_id) => {
                let deleted = store.delete_topic(topic_id).await?;
                Ok(Reply { deleted: (deleted.partitions, deleted.dropped), ..Reply::default() })
            }
            Self::PendingTotals => {
                let totals = store.pending_totals().await?;
                let totals = crate::types::PendingTotals {
                    producers: totals.producers,
                    orphaned_epochs: totals.orphaned_epochs,
                    partitions: totals.partitions,
                    ranges: totals.ranges,
                    offsets: totals.offsets,
                };
                Ok(Reply { totals: Some(totals), ..Reply::default() })
            }
            Self::Checkpoint => Ok(Reply { lsn: store.checkpoint().await?, ..Reply::default() }),
            #[cfg(test)]
            Self::Panic { later } => {
                if later {
                    store.pending_totals().await?;
                }
                panic!("asked for")
            }
        }
    }
}

fn reply(answer: Answer) -> Reply {
    let none = Reply::default();
    match answer {
        Answer::Done { dropped } => Reply { pending: dropped, ..none },
        Answer::Read(read) => Reply {
            partition: Some(Partition {
                state_epoch: read.partition.state_epoch,
                leader_epoch: read.partition.leader_epoch,
                start_offset: read.partition.start_offset,
                delivery_complete_count: read.partition.delivery_complete_count,
            }),
            batches: read.partition.batches.iter().map(batch).collect(),
            pending: read.partition.pending,
            ..none
        },
        Answer::Summary(summary) => Reply {
            partition: Some(Partition {
                state_epoch: summary.state_epoch,
                leader_epoch: summary.leader_epoch,
                start_offset: summary.start_offset,
                delivery_complete_count: summary.delivery_complete_count,
            }),
            ..none
        },
        Answer::Staged { staged } => Reply { staged: ranges(staged), ..none },
        Answer::Resolved { resolved, contradicts, orphans } => Reply {
            resolved: resolved.into_iter().map(|(key, found)| (key, ranges(found))).collect(),
            contradicts,
            orphans,
            ..none
        },
        // Nobody can ask for it here.
        Answer::Expired { .. } => none,
    }
}

fn batch(batch: &sharestate::StateBatch) -> Batch {
    Batch {
        first_offset: batch.first_offset,
        last_offset: batch.last_offset,
        delivery_count: batch.delivery_count,
        delivery_state: batch.delivery_state.0,
    }
}

fn ranges(ranges: Vec<(i64, i64)>) -> Vec<Range> {
    let range = |(first_offset, last_offset)| Range { first_offset, last_offset };
    ranges.into_iter().map(range).collect()
}
