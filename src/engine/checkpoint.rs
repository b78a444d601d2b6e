//! The thread that writes checkpoints and then purges the log. Each step is durable before the next
//! begins.

use std::sync::Arc;
use std::time::Instant;

use super::queue::Queue;
use super::writer::PanicGuard;
use super::{Event, Shared};
use crate::error::{CheckpointError, OpenError};
use crate::fsio::Fs;
use crate::log::{SegmentSet, purge};
use crate::model::Lsn;
use crate::seeded;
use crate::snapshot::{CheckpointBatch, Snapshot};
use crate::sync::atomic::Ordering;
use crate::sync::mpsc::{SyncSender, sync_channel};
use crate::sync::thread::{self, JoinHandle};

/// A finished checkpoint.
#[derive(Debug, Clone, Copy)]
pub(super) struct Done {
    pub applied_lsn: Lsn,
}

/// What the thread works with.
pub(super) struct Worker {
    pub snapshot: Arc<Snapshot>,
    pub fs: Arc<dyn Fs>,
    pub segments: Arc<SegmentSet>,
    pub shared: Arc<Shared>,
}

impl Worker {
    /// Writes the checkpoint, then drops what the log no longer needs to keep.
    fn run(&self, batch: &CheckpointBatch) -> Result<Done, CheckpointError> {
        self.stop_if_poisoned()?;
        let started = Instant::now();
        if seeded::bug("nats-7043") {
            self.purge(batch.applied_lsn);
        }
        self.snapshot.write(batch)?;
        metrics::histogram!("sharestate_checkpoint_seconds")
            .record(started.elapsed().as_secs_f64());
        tracing::debug!(
            applied_lsn = batch.applied_lsn,
            partitions = batch.partitions.len(),
            producers = batch.producers.len(),
            "checkpoint written"
        );
        self.purge(match () {
            () if seeded::bug("bookkeeper-2635") => self.snapshot.applied_lsn(),
            () if seeded::bug("bookkeeper-3329") => self.shared.durable_lsn.load(Ordering::Acquire),
            () => self.snapshot.previous_applied_lsn(),
        });
        Ok(Done { applied_lsn: batch.applied_lsn })
    }

    /// The floor is the checkpoint *before* the one just written: a RocksDB that loses its newest
    /// batch heals by replay. Space that cannot be freed is no reason to fail a checkpoint; the
    /// next one tries again.
    fn purge(&self, floor: Lsn) {
        if self.stop_if_poisoned().is_err() {
            return; // after a failed write nothing is deleted any more
        }
        match purge(&*self.fs, &self.segments, floor) {
            Ok(removed) => {
                metrics::counter!("sharestate_purged_segments_total")
                    .increment(removed.len() as u64);
            }
            Err(error) => tracing::warn!(%error, "the log could not be purged"),
        }
    }

    fn stop_if_poisoned(&self) -> Result<(), CheckpointError> {
        match self.shared.poison.get() {
            Some(poison) => Err(CheckpointError::Poisoned(poison.clone())),
            None => Ok(()),
        }
    }
}

/// The checkpointing thread.
#[derive(Debug)]
pub(super) struct CheckpointThread {
    jobs: Option<SyncSender<CheckpointBatch>>,
    thread: Option<JoinHandle<()>>,
}

impl CheckpointThread {
    /// Starts it; results arrive in `inbox`.
    pub fn start(worker: Worker, inbox: Arc<Queue<Event>>) -> Result<Self, OpenError> {
        let (jobs, received) = sync_channel::<CheckpointBatch>(1);
        let thread = thread::Builder::new()
            .name("sharestate-ckpt".to_owned())
            .spawn(move || {
                let _guard = PanicGuard(Arc::clone(&inbox));
                for batch in received {
                    if inbox.push(Event::Checkpointed(worker.run(&batch))).is_err() {
                        return;
                    }
                }
            })
            .map_err(OpenError::Thread)?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Hands a batch over. Answers whether the thread is there to take it.
    pub fn submit(&self, batch: CheckpointBatch) -> bool {
        self.jobs.as_ref().is_some_and(|jobs| jobs.send(batch).is_ok())
    }
}

impl Drop for CheckpointThread {
    fn drop(&mut self) {
        self.jobs = None; // ends the thread's loop
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a panic was reported through the inbox
        }
    }
}
