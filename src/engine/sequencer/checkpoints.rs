//! When a checkpoint is taken, handed over and done.

use std::time::{Duration, Instant};

use super::super::checkpoint::Done;
use super::{Checkpoint, Sequencer};
use crate::error::{CheckpointError, Poison};
use crate::seeded;
use crate::sync::atomic::Ordering;

/// How long a failed checkpoint waits before it is tried again.
const CHECKPOINT_RETRY: Duration = Duration::from_secs(1);

impl Sequencer {
    /// Takes a checkpoint when it is time for one.
    pub(super) fn start_checkpoint(&mut self) {
        if !matches!(self.checkpoint, Checkpoint::Idle) {
            return;
        }
        if let Some(poison) = self.shared.poison.get() {
            for reply in self.requested.drain(..) {
                let _ = reply.send(Err(CheckpointError::Poisoned(poison.clone())));
            }
            return;
        }
        let closing = self.closing.is_some() && self.close_result.is_none();
        if !(closing || !self.requested.is_empty() || self.checkpoint_is_due()) {
            return;
        }
        let applied_lsn = self.next_lsn - 1;
        self.running_for.append(&mut self.requested);
        self.retry_at = None;
        if !self.resident.has_changes() {
            let done = Done { applied_lsn: self.snapshot.applied_lsn() };
            self.finish_checkpoint(Ok(done));
            return;
        }
        self.log_bytes = 0;
        self.oldest_change = None;
        self.checkpoint = Checkpoint::Taken(self.resident.freeze(applied_lsn));
        self.hand_over_checkpoint();
    }

    pub(super) fn checkpoint_is_due(&self) -> bool {
        if self.retry_at.is_some_and(|at| at > Instant::now()) {
            return false;
        }
        let age = self.oldest_change.map(|since| since.elapsed());
        self.resident.has_changes()
            && (self.log_bytes >= self.checkpoint_log_bytes
                || self.resident.changed_bytes() > self.options.memory_bytes / 2
                || age.is_some_and(|age| age >= self.options.checkpoint_interval))
    }

    /// Starts writing a taken checkpoint once the log is durable up to it.
    pub(super) fn hand_over_checkpoint(&mut self) {
        match std::mem::replace(&mut self.checkpoint, Checkpoint::Running) {
            Checkpoint::Taken(batch)
                if batch.applied_lsn <= self.durable || seeded::bug("KAFKA-6683") =>
            {
                if !self.checkpoints.submit(batch) {
                    self.fail(Poison::Panic);
                }
            }
            other => self.checkpoint = other,
        }
    }

    pub(super) fn on_checkpointed(&mut self, result: Result<Done, CheckpointError>) {
        self.checkpoint = Checkpoint::Idle;
        self.resident.thaw(result.is_ok() || seeded::bug("nats-7594"));
        if let Err(error) = &result {
            tracing::warn!(%error, "a checkpoint failed; its rows stay in memory and in the log");
            metrics::counter!("sharestate_checkpoint_failures_total").increment(1);
            self.retry_at = Some(Instant::now() + CHECKPOINT_RETRY);
            self.oldest_change.get_or_insert_with(Instant::now);
            self.log_bytes = self.checkpoint_log_bytes; // due again as soon as a retry is allowed
        }
        self.finish_checkpoint(result);
    }

    pub(super) fn finish_checkpoint(&mut self, result: Result<Done, CheckpointError>) {
        let result = result.map(|done| done.applied_lsn);
        if let Ok(applied_lsn) = result {
            self.shared.applied_lsn.store(applied_lsn, Ordering::Release);
        }
        for reply in self.running_for.drain(..) {
            let _ = reply.send(result.clone());
        }
        // The last checkpoint of a closing store is the one that covers everything.
        if self.closing.is_some() && (result.is_err() || !self.resident.has_changes()) {
            self.close_result = Some(result.map(|_| ()));
        }
    }
}
