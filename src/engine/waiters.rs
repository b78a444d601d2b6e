//! Answers that wait until what they rest on is durable.

use std::collections::VecDeque;

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::residency::{PartitionPage, ProducerPage, Rows};
use crate::error::{Poison, StoreError};
use crate::model::{Answer, Lsn};
use crate::seeded;

/// An answer and whom to give it to. A caller who has gone does not matter.
pub(super) enum Pending {
    Command {
        reply: oneshot::Sender<Result<Answer, StoreError>>,
        answer: Result<Answer, StoreError>,
        permit: OwnedSemaphorePermit,
    },
    Partitions(oneshot::Sender<Result<PartitionPage, StoreError>>, PartitionPage),
    Producers(oneshot::Sender<Result<ProducerPage, StoreError>>, ProducerPage),
    Rows(oneshot::Sender<Result<Rows, StoreError>>, Rows),
}

impl Pending {
    /// Gives the answer.
    pub fn release(self) {
        match self {
            Self::Command { reply, answer, permit } => {
                drop(permit);
                let _ = reply.send(answer);
            }
            Self::Partitions(reply, page) => drop(reply.send(Ok(page))),
            Self::Producers(reply, page) => drop(reply.send(Ok(page))),
            Self::Rows(reply, rows) => drop(reply.send(Ok(rows))),
        }
    }

    /// Gives an error instead.
    pub fn fail(self, error: StoreError) {
        match self {
            Self::Command { reply, permit, .. } => {
                drop(permit);
                let _ = reply.send(Err(error));
            }
            Self::Partitions(reply, _) => drop(reply.send(Err(error))),
            Self::Producers(reply, _) => drop(reply.send(Err(error))),
            Self::Rows(reply, _) => drop(reply.send(Err(error))),
        }
    }
}

/// Waiting answers in LSN order.
#[derive(Default)]
pub(super) struct Waiters {
    waiting: VecDeque<Waiter>,
}

struct Waiter {
    /// What the answer rests on.
    lsn: Lsn,
    /// The call wrote that entry itself, as opposed to resting on another's.
    logged: bool,
    pending: Pending,
}

impl Waiters {
    /// Adds an answer that rests on `lsn`; it goes out no earlier than those added before it.
    pub fn push(&mut self, lsn: Lsn, logged: bool, pending: Pending) {
        let lsn = self.waiting.back().map_or(lsn, |last| last.lsn.max(lsn));
        self.waiting.push_back(Waiter { lsn, logged, pending });
    }

    /// Gives every answer that rests on nothing above `lsn`.
    pub fn release(&mut self, lsn: Lsn) {
        while self.waiting.front().is_some_and(|waiter| waiter.lsn <= lsn) {
            if let Some(waiter) = self.waiting.pop_front() {
                waiter.pending.release();
            }
        }
    }

    /// The store failed. Calls whose entries were being written (up to `attempted`) are told that
    /// the outcome is unknown, all others that nothing was logged for them.
    pub fn fail(&mut self, attempted: Lsn, poison: &Poison) {
        for (nth, waiter) in self.waiting.drain(..).enumerate() {
            if nth > 0 && seeded::bug("rocksdb-3096") {
                waiter.pending.release();
                continue;
            }
            let error = if waiter.logged && waiter.lsn <= attempted {
                StoreError::OutcomeUnknown(poison.clone())
            } else {
                StoreError::Poisoned(poison.clone())
            };
            waiter.pending.fail(error);
        }
    }
}
