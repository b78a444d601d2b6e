//! The sequencer: one thread that takes everything that waits, judges and applies each command in
//! order, and answers when the log has it.
//!
//! Owns the order of entries, the state in memory, and when an answer may go out. Knows nothing of
//! files.

mod checkpoints;
mod commands;
mod logging;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::oneshot;

use super::checkpoint::{CheckpointThread, Worker};
use super::directory::Directory;
use super::queue::Queue;
use super::recovery::Recovered;
use super::residency::Resident;
use super::waiters::Waiters;
use super::writer::WriterThread;
use super::{Event, Shared};
use crate::error::{CheckpointError, OpenError, Poison};
use crate::log::{Batch, LogWriter};
use crate::model::{self, Command, Lsn};
use crate::options::{Options, SyncPolicy};
use crate::snapshot::{CheckpointBatch, Snapshot};
use crate::sync::atomic::Ordering;

/// Producers looked at in one step of the search for expired ones.
const EXPIRY_PAGE: usize = 256;

type CheckpointReply = oneshot::Sender<Result<Lsn, CheckpointError>>;

/// Where the checkpoint machinery stands.
enum Checkpoint {
    Idle,
    /// Taken, and waiting until the log is durable up to its LSN.
    Taken(CheckpointBatch),
    /// Being written by the checkpoint thread.
    Running,
}

pub(super) struct Sequencer {
    options: Options,
    model_options: model::Options,
    shared: Arc<Shared>,
    inbox: Arc<Queue<Event>>,
    /// Events that wait here while writers are held back.
    backlog: VecDeque<Event>,
    resident: Resident,
    snapshot: Arc<Snapshot>,

    /// The log, unless a frame is in flight or the store has failed.
    log: Option<LogWriter>,
    in_flight: bool,
    writer: WriterThread,
    max_entry: usize,
    max_payload: usize,
    /// The frame being filled.
    open: Batch,
    /// Full frames before it.
    ready: VecDeque<Batch>,
    spare: Vec<Batch>,
    body: Vec<u8>,
    next_lsn: Lsn,
    /// Last LSN handed to the log.
    attempted: Lsn,
    written: Lsn,
    durable: Lsn,
    last_sync: Instant,
    mark_due: Option<Instant>,
    waiters: Waiters,

    checkpoints: CheckpointThread,
    checkpoint: Checkpoint,
    /// Bytes of log since the last checkpoint was taken.
    log_bytes: u64,
    checkpoint_log_bytes: u64,
    oldest_change: Option<Instant>,
    retry_at: Option<Instant>,
    /// Who asked for the next checkpoint, and who for the running one.
    requested: Vec<CheckpointReply>,
    running_for: Vec<CheckpointReply>,

    expiry_due: Instant,
    expiry_after: Option<i64>,

    closing: Option<oneshot::Sender<Result<(), CheckpointError>>>,
    close_result: Option<Result<(), CheckpointError>>,
    /// Holds the lock on the directory for as long as this thread works.
    directory: Directory,
}

impl Sequencer {
    pub fn new(
        recovered: Recovered,
        options: &Options,
        inbox: Arc<Queue<Event>>,
        shared: Arc<Shared>,
    ) -> Result<Self, OpenError> {
        let Recovered { fs, directory, snapshot, resident, log, identity, report } = recovered;
        let worker = Worker {
            snapshot: Arc::clone(&snapshot),
            fs,
            segments: log.segments(),
            shared: Arc::clone(&shared),
        };
        let next_lsn = log.next_lsn();
        shared.durable_lsn.store(log.durable_lsn(), Ordering::Release);
        shared.applied_lsn.store(snapshot.applied_lsn(), Ordering::Release);
        let expiration = options.producer_id_expiration.as_millis();
        let now = Instant::now();
        Ok(Self {
            model_options: model::Options {
                producer_id_expiration_ms: i64::try_from(expiration).unwrap_or(i64::MAX),
            },
            writer: WriterThread::start(Arc::clone(&inbox))?,
            checkpoints: CheckpointThread::start(worker, Arc::clone(&inbox))?,
            backlog: VecDeque::new(),
            max_entry: log.max_entry_bytes(),
            max_payload: log.max_frame_payload(),
            open: Batch::new(next_lsn),
            ready: VecDeque::new(),
            spare: Vec::new(),
            body: Vec::new(),
            next_lsn,
            attempted: next_lsn.saturating_sub(1),
            written: log.written_lsn(),
            durable: log.durable_lsn(),
            last_sync: now,
            mark_due: now.checked_add(options.mark_delay),
            waiters: Waiters::default(),
            checkpoint: Checkpoint::Idle,
            // What was replayed is folded in as soon as it is worth a checkpoint.
            log_bytes: report.tail.map_or(0, |tail| tail.frame_bytes),
            checkpoint_log_bytes: options
                .checkpoint_log_bytes
                .unwrap_or(identity.segment_bytes / 2),
            oldest_change: resident.has_changes().then_some(now),
            retry_at: None,
            requested: Vec::new(),
            running_for: Vec::new(),
            expiry_due: now + options.producer_expiry_interval,
            expiry_after: None,
            closing: None,
            close_result: None,
            log: Some(log),
            in_flight: false,
            resident,
            snapshot,
            inbox,
            shared,
            options: options.clone(),
            directory,
        })
    }

    /// Works until the store is closed.
    pub fn run(mut self) {
        let _guard = InboxGuard(Arc::clone(&self.inbox));
        let mut arrived = VecDeque::new();
        loop {
            let deadline = self.deadline();
            self.inbox.take(&mut arrived, deadline);
            loop {
                for event in arrived.drain(..) {
                    self.receive(event);
                }
                self.work();
                // What arrived while this thread itself wrote is the next batch.
                if !self.inbox.try_take(&mut arrived) {
                    break;
                }
            }
            self.keep_house();
            if self.finished() {
                self.stop();
                return;
            }
        }
    }

    /// Sorts an event: what frees resources is handled at once, the rest waits its turn.
    fn receive(&mut self, event: Event) {
        match event {
            Event::Written(written) => {
                self.in_flight = false;
                self.on_written(*written);
            }
            Event::Checkpointed(result) => self.on_checkpointed(result),
            Event::Panicked => self.fail(Poison::Panic),
            Event::Close(reply) => self.on_close(reply),
            other => self.backlog.push_back(other),
        }
    }

    /// Judges what waits and keeps the log busy.
    fn work(&mut self) {
        let now_ms = self.options.clock.now_ms();
        while !self.held_back() {
            let Some(event) = self.backlog.pop_front() else { break };
            match event {
                Event::Command(submission) => self.on_command(submission, now_ms),
                Event::Partitions(request) => self.on_partitions(request),
                Event::Producers(request) => self.on_producers(request),
                Event::Rows(keys, reply) => self.on_rows(&keys, reply),
                Event::Checkpoint(reply) => self.requested.push(reply),
                // Handled on arrival.
                Event::Written(_) | Event::Checkpointed(_) | Event::Panicked | Event::Close(_) => {}
            }
        }
        self.start_checkpoint();
        self.pump();
        self.resident.evict(self.options.cache_bytes);
    }

    /// Whether changed rows fill their budget, so that writers must wait for a checkpoint. A
    /// closing store takes what is queued all the same, and a failed one refuses it.
    fn held_back(&self) -> bool {
        self.resident.changed_bytes() > self.options.memory_bytes
            && self.closing.is_none()
            && !self.is_poisoned()
    }

    fn is_poisoned(&self) -> bool {
        self.shared.poison.get().is_some()
    }

    /// Every entry up to this LSN may be answered for.
    fn answerable(&self) -> Lsn {
        match self.options.sync {
            SyncPolicy::Always => self.durable,
            // After a failure only what is on disk counts.
            SyncPolicy::Every(_) | SyncPolicy::Never if self.is_poisoned() => self.durable,
            SyncPolicy::Every(_) | SyncPolicy::Never => self.written,
        }
    }

    // House-keeping.

    /// When something is due even if nothing arrives.
    fn deadline(&self) -> Option<Instant> {
        let mut due = vec![self.expiry_due];
        if self.log.is_some() {
            due.extend(self.mark_due);
            if let SyncPolicy::Every(interval) = self.options.sync
                && self.written > self.durable
            {
                due.push(self.last_sync + interval);
            }
        }
        if matches!(self.checkpoint, Checkpoint::Idle) {
            due.extend(self.retry_at);
            due.extend(self.oldest_change.map(|since| since + self.options.checkpoint_interval));
        }
        due.into_iter().min()
    }

    /// What is done when nothing waits.
    fn keep_house(&mut self) {
        let now = Instant::now();
        if self.mark_due.is_some_and(|due| due <= now) {
            self.mark();
        }
        if self.expiry_due <= now && !self.is_poisoned() {
            self.expire_some(now);
        }
    }

    /// Vouches for the last frame, so that rot in it is not mistaken for a torn tail.
    fn mark(&mut self) {
        self.mark_due = None;
        if self.written > self.durable {
            return; // under a policy that leaves the sync for later
        }
        if let Some(mut log) = self.log.take() {
            match log.mark() {
                Ok(()) => self.log = Some(log),
                Err(error) => self.fail(Poison::Log(Arc::new(error))),
            }
        }
    }

    /// Looks at a page of producers and forgets those that are due, by an entry that names them.
    fn expire_some(&mut self, now: Instant) {
        let now_ms = self.options.clock.now_ms();
        let page = match self.resident.producers(self.expiry_after, EXPIRY_PAGE) {
            Ok(page) => page,
            Err(error) => {
                tracing::warn!(%error, "expired producers could not be looked for");
                (Vec::new(), None)
            }
        };
        let (producers, after) = page;
        let due = now_ms.saturating_sub(self.model_options.producer_id_expiration_ms);
        let idle = producers.iter().filter(|(_, p)| p.open.is_empty() && p.last_used_ms <= due);
        let producer_ids: Vec<i64> = idle.map(|(id, _)| *id).collect();
        if !producer_ids.is_empty() {
            if let Err(error) = self.execute(&Command::ExpireProducers { producer_ids }, now_ms) {
                tracing::warn!(%error, "idle producers could not be forgotten");
            }
            self.pump();
        }
        self.expiry_due = match after {
            Some(_) => now,
            None => now + self.options.producer_expiry_interval,
        };
        self.expiry_after = after;
    }

    // Closing.

    fn on_close(&mut self, reply: oneshot::Sender<Result<(), CheckpointError>>) {
        if self.closing.is_some() {
            let _ = reply.send(Ok(())); // the first one reports what came of it
            return;
        }
        self.closing = Some(reply);
    }

    fn finished(&self) -> bool {
        let finished = self.closing.is_some()
            && !self.in_flight
            && matches!(self.checkpoint, Checkpoint::Idle)
            && (self.is_poisoned() || self.close_result.is_some());
        // A closing store takes and writes all that waits before it looks here.
        debug_assert!(!finished || self.backlog.is_empty(), "commands wait");
        debug_assert!(!finished || self.is_poisoned() || self.is_durable(), "entries wait");
        finished
    }

    fn is_durable(&self) -> bool {
        self.open.is_empty() && self.ready.is_empty() && self.durable == self.written
    }

    fn stop(mut self) {
        self.mark();
        if !self.is_poisoned() {
            self.directory.keep_reserve(self.options.reserve_bytes);
        }
        let result = match self.shared.poison.get() {
            Some(poison) => Err(CheckpointError::Poisoned(poison.clone())),
            None => self.close_result.take().unwrap_or(Ok(())),
        };
        let reply = self.closing.take();
        // Files, snapshot and lock go before the answer: a caller may open the store again at once.
        drop(self);
        if let Some(reply) = reply {
            let _ = reply.send(result);
        }
    }
}

/// Whatever ends the sequencer, a panic included, nobody waits for an answer that will not come.
struct InboxGuard(Arc<Queue<Event>>);

impl Drop for InboxGuard {
    fn drop(&mut self) {
        drop(self.0.close());
    }
}
