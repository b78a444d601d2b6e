//! Keeping the log busy, and what its outcome means for callers.

use std::sync::Arc;
use std::time::Instant;

use super::super::writer::{Job, Written};
use super::{Checkpoint, Sequencer};
use crate::error::{CheckpointError, Poison};
use crate::log::Batch;
use crate::options::SyncPolicy;
use crate::seeded;
use crate::sync::atomic::Ordering;

impl Sequencer {
    /// Writes what is ready while the log is at hand: here when nothing else waits, else on the
    /// writing thread.
    pub(super) fn pump(&mut self) {
        while let Some(log) = self.log.take() {
            let batch = self.next_batch();
            let sync = self.wants_sync(batch.is_some());
            if batch.is_none() && !sync {
                self.log = Some(log);
                return;
            }
            if let Some(batch) = &batch {
                self.attempted = batch.next_lsn() - 1;
            }
            self.mark_due = None;
            let job = Job { log, batch, sync };
            if self.inbox.is_empty() && self.backlog.is_empty() && self.open.is_empty() {
                self.on_written(job.run());
                continue;
            }
            self.in_flight = true;
            if !self.writer.submit(job) {
                self.in_flight = false;
                self.fail(Poison::Panic);
            }
            return;
        }
    }

    pub(super) fn next_batch(&mut self) -> Option<Batch> {
        if let Some(batch) = self.ready.pop_front() {
            return Some(batch);
        }
        if self.open.is_empty() {
            return None;
        }
        let mut next = self.spare.pop().unwrap_or_else(|| Batch::new(self.next_lsn));
        next.clear(self.next_lsn);
        Some(std::mem::replace(&mut self.open, next))
    }

    /// Whether to sync now, behind a frame if there is one.
    pub(super) fn wants_sync(&self, frame: bool) -> bool {
        let unsynced = frame || self.written > self.durable;
        // Checkpoints and close wait for a durable log under every policy.
        let asked = matches!(self.checkpoint, Checkpoint::Taken(_)) || self.closing.is_some();
        unsynced
            && match self.options.sync {
                SyncPolicy::Always => true,
                SyncPolicy::Every(interval) => asked || self.last_sync.elapsed() >= interval,
                SyncPolicy::Never => asked,
            }
    }

    pub(super) fn on_written(&mut self, written: Written) {
        let Written { log, batch, result } = written;
        match result {
            Ok(()) => {
                if log.durable_lsn() > self.durable {
                    self.last_sync = Instant::now();
                }
                self.written = log.written_lsn();
                self.durable = log.durable_lsn();
                self.shared.durable_lsn.store(self.durable, Ordering::Release);
                if self.is_poisoned() {
                    return; // something else failed meanwhile: the log is not written any more
                }
                self.log = Some(log);
                self.spare.extend(batch.filter(|_| self.spare.len() < 4));
                let inbox = seeded::bug("kafka-20153").then(|| Arc::clone(&self.inbox));
                let held = inbox.as_ref().map(|inbox| inbox.lock());
                self.waiters.release(self.answerable());
                drop(held);
                self.mark_due = Instant::now().checked_add(self.options.mark_delay);
                self.hand_over_checkpoint();
            }
            Err(error) => {
                // What the log itself knows to be durable stays answerable.
                self.durable = log.durable_lsn().max(self.durable);
                self.shared.durable_lsn.store(self.durable, Ordering::Release);
                self.fail(Poison::Log(Arc::new(error)));
            }
        }
    }

    /// The first failure: nothing is written, synced, retried or deleted from here on.
    pub(super) fn fail(&mut self, poison: Poison) {
        if self.shared.poison.set(poison.clone()).is_ok() {
            tracing::error!(%poison, "the store has failed; a fresh open decides what survived");
            metrics::counter!("sharestate_poisoned_total").increment(1);
        }
        self.log = None;
        self.ready.clear();
        self.waiters.release(self.answerable());
        self.waiters.fail(self.attempted, &poison);
        if let Checkpoint::Taken(_) = self.checkpoint {
            self.checkpoint = Checkpoint::Idle;
            self.resident.thaw(false);
        }
        for reply in self.running_for.drain(..).chain(self.requested.drain(..)) {
            let _ = reply.send(Err(CheckpointError::Poisoned(poison.clone())));
        }
    }
}
