//! What the child of the demo tells its parent, line by line, and the operations that both know.

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
    /// Refused with this error code of Kafka's.
    Refused(i16),
}

/// A line on the pipe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// An operation is about to be submitted.
    Issue { slot: usize, op: Op },
    /// The operation issued last for the share partition was answered.
    Ack { slot: usize, answer: Answer },
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

/// The key of a share partition of the demo.
pub fn key_of(slot: usize) -> SharePartitionKey {
    let group = format!("demo:{}", slot % 7);
    let topic =
        Uuid::from_u128(0xdead_beef_0000_0000_0000_0000_0000_0000 | (slot as u128 / 16 + 1));
    let partition = i32::try_from(slot % 16).unwrap_or(0);
    SharePartitionKey::new(group, topic, partition).expect("the parts are well formed")
}
