//! What the child tells its parent, line by line, and the operations that both know.

use std::io::{PipeWriter, Write};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use sharestate::SharePartitionKey;
use uuid::Uuid;

/// `[first offset, last offset, state, delivery count]`.
pub type Run = (i64, i64, i8, i16);

/// One operation on a share partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    Initialize { state_epoch: i32, start: i64 },
    Read { leader_epoch: i32 },
    Write { state_epoch: i32, leader_epoch: i32, start: i64, complete: i32, runs: Vec<Run> },
    Summary,
    Delete,
}

/// `[first offset, last offset, ack type, state on commit, state on abort, delivery count]`.
pub type AckRun = (i64, i64, i8, i8, i8, i16);

/// Acks staged in one share partition, inside a transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageOp {
    pub state_epoch: i32,
    pub leader_epoch: i32,
    pub producer: i64,
    pub epoch: i16,
    pub two_phase: bool,
    pub acks: Vec<AckRun>,
}

/// A transaction marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkerOp {
    pub producer: i64,
    pub epoch: i16,
    pub coordinator: i32,
    pub commit: bool,
}

/// Anything that is asked of the store. Atomic: it is there or it is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    Plain {
        slot: usize,
        op: Op,
    },
    Stage {
        slot: usize,
        op: StageOp,
    },
    /// Touches every share partition in which the producer has acks prepared.
    Marker(MarkerOp),
}

/// What a summary says of a share partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    pub state_epoch: i32,
    pub leader_epoch: i32,
    pub start: i64,
    pub complete: i32,
}

/// An answer of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Done,
    Told(Told),
    /// So many offsets are newly staged.
    Staged(u64),
    Resolved(Sum),
    /// Refused with this error code of Kafka's.
    Refused(i16),
    /// Not answered: the store failed.
    Failed(Fate),
}

/// What is known of an operation that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It may be there after a recovery, or not.
    Unknown,
    /// It is not there.
    NotLogged,
}

/// What a marker came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Sum {
    pub slots: u64,
    pub offsets: u64,
    /// It repeats a marker of another outcome.
    pub contradicts: bool,
    /// An older epoch stays open.
    pub orphans: bool,
}

/// A line on the pipe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// A consumer is about to ask for this. `doomed`: no sync succeeds any more.
    Issue {
        lane: usize,
        deed: Deed,
        #[serde(default)]
        doomed: bool,
    },
    /// The oldest unanswered question of the consumer was answered.
    Ack { lane: usize, answer: Answer },
    /// The store could not be opened: class and text of the error.
    Unopened { class: String, error: String },
    /// After everything was done: whether the store had been poisoned.
    End { poisoned: bool },
}

/// A pipe takes this much in one piece (`PIPE_BUF`), so that no line is ever torn.
const LINE_BYTES_MAX: usize = 4096;

/// The child's end of the pipe.
pub struct Pipe(Mutex<PipeWriter>);

impl Pipe {
    pub fn stdout() -> std::io::Result<Self> {
        use std::os::fd::AsFd as _;
        // Not through `std::io::stdout()`, which may split a line.
        let fd = std::io::stdout().as_fd().try_clone_to_owned()?;
        Ok(Self(Mutex::new(fd.into())))
    }

    /// Writes a line with a single call.
    pub fn send(&self, line: &Line) -> std::io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        debug_assert!(bytes.len() <= LINE_BYTES_MAX, "a line of {} bytes", bytes.len());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(&bytes)
    }
}

/// High bits of the topic ids of these stores.
const TOPICS: u128 = 0xdead_beef_0000_0000_0000_0000_0000_0000;

/// Share partitions of a topic.
const PARTITIONS: usize = 16;

/// The key of a share partition.
pub fn key_of(slot: usize) -> SharePartitionKey {
    let group = format!("demo:{}", slot % 7);
    let topic = Uuid::from_u128(TOPICS | (slot as u128 / PARTITIONS as u128 + 1));
    let partition = i32::try_from(slot % PARTITIONS).unwrap_or(0);
    SharePartitionKey::new(group, topic, partition).expect("the parts are well formed")
}

/// The number of a share partition; a stranger gets a number above all others.
pub fn slot_of(key: &SharePartitionKey) -> usize {
    let topic = (key.topic_id().as_u128() ^ TOPICS).wrapping_sub(1);
    let slot = usize::try_from(topic).ok().and_then(|topic| topic.checked_mul(PARTITIONS));
    let partition = usize::try_from(key.partition()).unwrap_or(0);
    let slot = slot.and_then(|slot| slot.checked_add(partition)).unwrap_or(usize::MAX);
    if key_of(slot) == *key { slot } else { usize::MAX }
}

/// The transactional id of a producer.
pub fn transactional_id(producer: i64) -> String {
    format!("demo-{producer}")
}

/// The share consumer behind a producer.
pub fn member_id(producer: i64) -> String {
    format!("member-{producer}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_numbers_of_share_partitions_belong_together() {
        for slot in 0..5_000 {
            assert_eq!(slot_of(&key_of(slot)), slot);
        }
        let stranger = SharePartitionKey::new("other", Uuid::from_u128(TOPICS | 1), 0).unwrap();
        assert_eq!(slot_of(&stranger), usize::MAX);
        let stranger = SharePartitionKey::new("demo:0", Uuid::from_u128(7), i32::MAX).unwrap();
        assert_eq!(slot_of(&stranger), usize::MAX);
    }
}
