//! One store at work: a sequencer that judges, logs, applies and answers; recovery; checkpoints;
//! purging.
//!
//! Owns the order of events and when an answer may go out. Knows neither files (the log and the
//! snapshot do) nor the shape of the public handle ([`crate::ShareStore`]).

pub mod backup;
mod checkpoint;
pub mod directory;
#[cfg(all(test, sharestate_shuttle))]
mod models;
mod queue;
pub mod recovery;
pub mod repair;
pub mod residency;
mod sequencer;
mod waiters;
mod writer;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use self::queue::Queue;
use self::residency::{PartitionPage, ProducerPage, Rows};
use self::sequencer::Sequencer;
use crate::error::{CheckpointError, OpenError, Poison, StoreError};
use crate::model::{Answer, Command, Lsn, SharePartitionKey};
use crate::options::Options;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Mutex, PoisonError};

/// Bytes per semaphore permit: permits are counted in `u32`.
const PERMIT_BYTES: usize = 64;

/// What the sequencer is told.
enum Event {
    Command(Submission),
    Partitions(PageRequest<Option<String>, SharePartitionKey, PartitionPage>),
    Producers(PageRequest<(), i64, ProducerPage>),
    Rows(Vec<SharePartitionKey>, oneshot::Sender<Result<Rows, StoreError>>),
    Checkpoint(oneshot::Sender<Result<Lsn, CheckpointError>>),
    Written(Box<writer::Written>),
    Checkpointed(Result<checkpoint::Done, CheckpointError>),
    Panicked,
    Close(oneshot::Sender<Result<(), CheckpointError>>),
}

/// A command on its way to the sequencer.
struct Submission {
    command: Command,
    reply: oneshot::Sender<Result<Answer, StoreError>>,
    /// Its share of the queue's bound; given back when it is answered.
    permit: OwnedSemaphorePermit,
}

/// A command that the sequencer has or will have: the way to its answer.
#[derive(Debug)]
pub(crate) struct Submitted(oneshot::Receiver<Result<Answer, StoreError>>);

impl Submitted {
    /// Waits for the answer of the engine that the command was submitted to.
    pub async fn answer(self, engine: &Engine) -> Result<Answer, StoreError> {
        self.0.await.unwrap_or_else(|_| Err(engine.gone()))
    }
}

/// Asks for one page of rows.
struct PageRequest<F, K, P> {
    filter: F,
    after: Option<K>,
    limit: usize,
    reply: oneshot::Sender<Result<P, StoreError>>,
}

/// What other threads may see of the sequencer.
#[derive(Debug, Default)]
struct Shared {
    poison: OnceLock<Poison>,
    durable_lsn: AtomicU64,
    applied_lsn: AtomicU64,
}

/// Where a running store stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Every entry up to this LSN survives any crash.
    pub durable_lsn: Lsn,
    /// Every entry up to this LSN is in the snapshot.
    pub applied_lsn: Lsn,
}

/// A running store.
pub struct Engine {
    inbox: Arc<Queue<Event>>,
    permits: Arc<Semaphore>,
    queue_bytes: usize,
    shared: Arc<Shared>,
    source: Arc<backup::Source>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("shared", &self.shared).finish_non_exhaustive()
    }
}

impl Engine {
    /// Starts the threads over what recovery found.
    ///
    /// # Errors
    /// [`OpenError::Thread`].
    pub fn start(recovered: recovery::Recovered, options: &Options) -> Result<Self, OpenError> {
        let inbox = Arc::new(Queue::new());
        let shared = Arc::new(Shared::default());
        let permits = (options.queue_bytes / PERMIT_BYTES).clamp(1, Semaphore::MAX_PERMITS);
        let source = Arc::new(backup::Source::new(&recovered));
        let sequencer =
            Sequencer::new(recovered, options, Arc::clone(&inbox), Arc::clone(&shared))?;
        let thread = thread::Builder::new()
            .name("sharestate-seq".to_owned())
            .spawn(move || sequencer.run())
            .map_err(OpenError::Thread)?;
        Ok(Self {
            inbox,
            permits: Arc::new(Semaphore::new(permits)),
            queue_bytes: permits.saturating_mul(PERMIT_BYTES),
            shared,
            source,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Submits a command and waits for its answer. Waits for room in the queue first; once
    /// submitted, dropping the future does not take the command back.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn execute(&self, command: Command) -> Result<Answer, StoreError> {
        self.submit_when_room(command).await?.answer(self).await
    }

    /// Waits for room in the queue and submits a command. The answer need not be waited for.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(crate) async fn submit_when_room(&self, command: Command) -> Result<Submitted, StoreError> {
        let permits = self.permits_for(&command)?;
        let permit = Arc::clone(&self.permits).acquire_many_owned(permits).await;
        self.submit(command, permit.map_err(|_| StoreError::Closed)?)
    }

    /// As [`execute`](Self::execute), but fails at once when the queue is full.
    ///
    /// # Errors
    /// [`StoreError::QueueFull`] and the others.
    pub async fn try_execute(&self, command: Command) -> Result<Answer, StoreError> {
        let permits = self.permits_for(&command)?;
        let permit = Arc::clone(&self.permits).try_acquire_many_owned(permits);
        let permit = permit.map_err(|error| match error {
            tokio::sync::TryAcquireError::Closed => StoreError::Closed,
            tokio::sync::TryAcquireError::NoPermits => StoreError::QueueFull,
        })?;
        self.submit(command, permit)?.answer(self).await
    }

    fn permits_for(&self, command: &Command) -> Result<u32, StoreError> {
        let bytes = approx_bytes(command);
        let permits = bytes.div_ceil(PERMIT_BYTES);
        match u32::try_from(permits) {
            Ok(permits) if bytes <= self.queue_bytes => Ok(permits),
            _ => Err(StoreError::LargerThanQueue { bytes, bound: self.queue_bytes }),
        }
    }

    fn submit(
        &self,
        command: Command,
        permit: OwnedSemaphorePermit,
    ) -> Result<Submitted, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.push(Event::Command(Submission { command, reply, permit }))?;
        Ok(Submitted(answer))
    }

    fn push(&self, event: Event) -> Result<(), StoreError> {
        self.inbox.push(event).map_err(|_| self.gone())
    }

    /// Why nobody answers.
    fn gone(&self) -> StoreError {
        match self.shared.poison.get() {
            Some(poison) => StoreError::Poisoned(poison.clone()),
            None => StoreError::Closed,
        }
    }

    /// One page of share partitions in key order.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn partitions(
        &self,
        group_id: Option<String>,
        after: Option<SharePartitionKey>,
        limit: usize,
    ) -> Result<PartitionPage, StoreError> {
        let (reply, page) = oneshot::channel();
        let limit = limit.max(1);
        self.push(Event::Partitions(PageRequest { filter: group_id, after, limit, reply }))?;
        page.await.unwrap_or_else(|_| Err(self.gone()))
    }

    /// One page of producers in id order.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn producers(
        &self,
        after: Option<i64>,
        limit: usize,
    ) -> Result<ProducerPage, StoreError> {
        let (reply, page) = oneshot::channel();
        let limit = limit.max(1);
        self.push(Event::Producers(PageRequest { filter: (), after, limit, reply }))?;
        page.await.unwrap_or_else(|_| Err(self.gone()))
    }

    /// The rows of those of `keys` that exist.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(crate) async fn rows(&self, keys: Vec<SharePartitionKey>) -> Result<Rows, StoreError> {
        let (reply, rows) = oneshot::channel();
        self.push(Event::Rows(keys, reply))?;
        rows.await.unwrap_or_else(|_| Err(self.gone()))
    }

    /// Takes a checkpoint of everything accepted so far; answers its LSN.
    ///
    /// # Errors
    /// [`CheckpointError`].
    pub async fn checkpoint(&self) -> Result<Lsn, CheckpointError> {
        let (reply, done) = oneshot::channel();
        self.push(Event::Checkpoint(reply)).map_err(|error| checkpoint_error(&error))?;
        done.await.unwrap_or_else(|_| Err(checkpoint_error(&self.gone())))
    }

    /// Writes a backup to `target`.
    ///
    /// # Errors
    /// [`BackupError`](backup::BackupError).
    pub async fn backup(
        &self,
        target: PathBuf,
    ) -> Result<backup::BackupReport, backup::BackupError> {
        self.checkpoint().await?;
        // Files are copied on a thread of their own: callers may be async tasks.
        let source = Arc::clone(&self.source);
        let (reply, done) = oneshot::channel();
        std::thread::Builder::new()
            .name("sharestate-backup".to_owned())
            .spawn(move || drop(reply.send(source.write(&target))))
            .map_err(OpenError::Thread)?;
        done.await.unwrap_or(Err(backup::BackupError::Checkpoint(CheckpointError::Closed)))
    }

    /// Where the store stands.
    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress {
            durable_lsn: self.shared.durable_lsn.load(Ordering::Acquire),
            applied_lsn: self.shared.applied_lsn.load(Ordering::Acquire),
        }
    }

    /// The failure that poisoned the store, if one did.
    #[must_use]
    pub fn poison(&self) -> Option<Poison> {
        self.shared.poison.get().cloned()
    }

    /// Answers what is queued, takes a last checkpoint and stops. Closing twice is harmless.
    ///
    /// # Errors [`CheckpointError`] when the last checkpoint failed; everything answered is in the
    /// log all the same.
    pub async fn close(&self) -> Result<(), CheckpointError> {
        self.permits.close();
        let (reply, closed) = oneshot::channel();
        let result = match self.inbox.push(Event::Close(reply)) {
            Ok(()) => closed.await.unwrap_or_else(|_| Err(checkpoint_error(&self.gone()))),
            Err(_) => Ok(()),
        };
        self.join();
        result
    }

    /// Waits for the sequencer to end. It has been told to, or has panicked.
    fn join(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the sequencer panicked");
        }
        // Whoever opens the store again finds its files closed.
        self.source.wait();
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let (reply, _) = oneshot::channel();
        if self.inbox.push(Event::Close(reply)).is_ok() {
            self.join();
        }
    }
}

fn checkpoint_error(error: &StoreError) -> CheckpointError {
    match error {
        StoreError::Poisoned(poison) | StoreError::OutcomeUnknown(poison) => {
            CheckpointError::Poisoned(poison.clone())
        }
        _ => CheckpointError::Closed,
    }
}

/// About what a waiting command takes in memory.
fn approx_bytes(command: &Command) -> usize {
    let variable = match command {
        Command::Write { batches, .. } => size_of_val(batches.as_slice()),
        Command::Stage(stage) => size_of_val(stage.acks.as_slice())
            .saturating_add(stage.transactional_id.len())
            .saturating_add(stage.member_id.len()),
        Command::Import { partition, .. } => partition.approx_bytes(),
        Command::ExpireProducers { producer_ids } => size_of_val(producer_ids.as_slice()),
        Command::Initialize { .. }
        | Command::Read { .. }
        | Command::Summary { .. }
        | Command::Delete { .. }
        | Command::Marker(_)
        | Command::ForceResolve { .. } => 0,
    };
    size_of::<Command>().saturating_add(variable)
}
