//! The public handle. Owns the shapes of calls and answers; everything behind them is the engine's.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use crate::engine::recovery::{self, RecoveryReport};
use crate::engine::residency::ProducerPage;
use crate::engine::{Engine, Progress};
use crate::error::{CheckpointError, OpenError, Poison, StoreError};
use crate::model::{
    Answer, Command, Lsn, Marker, Outcome, Partition, PendingAck, Producer, ReadAnswer,
    SharePartitionKey, Stage, StateBatch, SummaryAnswer,
};
use crate::options::Options;
use crate::pending::{PendingFilter, PendingScan, PendingTotals};

/// Rows asked for at once when a group or topic is walked.
const PAGE: usize = 256;

/// An open store. Cheap to clone; all clones are one store, used from any number of tasks and
/// threads.
///
/// Answers are given when everything they reflect is durable (see [`SyncPolicy`](crate::SyncPolicy)
/// for the exceptions one can choose). Dropping a future does not take an accepted command back.
/// Dropping the last handle closes the store and waits for that; [`close`](Self::close) does the
/// same and reports.
///
/// No runtime is needed: the futures may be polled by any executor, and
/// [`blocking`](Self::blocking) serves threads.
#[derive(Debug, Clone)]
pub struct ShareStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    engine: Engine,
    report: RecoveryReport,
    path: PathBuf,
    uuid: Uuid,
}

/// The arguments of [`ShareStore::write`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// State epoch that the partition leader knows.
    pub state_epoch: i32,
    /// Leader epoch.
    pub leader_epoch: i32,
    /// Start offset, -1 = leave it.
    pub start_offset: i64,
    /// Delivery-complete count (KIP-1226), -1 = unknown.
    pub delivery_complete_count: i32,
    /// Changed batches, in any order.
    pub batches: Vec<StateBatch>,
}

/// How far a walk over a group or topic came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Deleted {
    /// Share partitions that this call deleted.
    pub partitions: u64,
    /// Ranges of pending acks that were dropped with them.
    pub dropped: u64,
}

/// What a marker or a forced resolution resolved. Advisory: a leader that still holds pending
/// records re-reads (M-16).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resolved {
    /// Per share partition, in key order, the resolved offset ranges, both ends inclusive.
    pub partitions: Vec<(SharePartitionKey, Vec<(i64, i64)>)>,
    /// The marker is a repeat whose outcome is not the one remembered.
    pub contradicts: bool,
    /// An open epoch below the marker's stays behind, orphaned.
    pub orphans: bool,
}

/// One page of [`ShareStore::list`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Share partitions in key order.
    pub partitions: Vec<(SharePartitionKey, Arc<Partition>)>,
    /// Where to continue, if there may be more.
    pub next: Option<SharePartitionKey>,
}

impl ShareStore {
    /// Opens the store in `path`, recovering what a crash left; makes one if the options allow it.
    ///
    /// Blocks on file work: call it outside an async runtime, or through its `spawn_blocking`.
    ///
    /// # Errors
    /// [`OpenError`]; on damage nothing is changed.
    #[cfg(feature = "rocksdb")]
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Self, OpenError> {
        let opener = recovery::RocksOpener { cache_bytes: options.block_cache_bytes };
        Self::open_with(Arc::new(crate::fsio::RealFs), &opener, path.as_ref(), options)
    }

    /// Opens a store over the given file system and snapshot rows, for crash tests.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_with(
        fs: Arc<dyn crate::fsio::Fs>,
        rows: &dyn recovery::RowOpener,
        path: &Path,
        options: &Options,
    ) -> Result<Self, OpenError> {
        let recovered = recovery::open(fs, rows, path, options)?;
        let (report, uuid) = (recovered.report.clone(), recovered.identity.uuid);
        let engine = Engine::start(recovered, options)?;
        let path = path.to_owned();
        Ok(Self { inner: Arc::new(Inner { engine, report, path, uuid }) })
    }

    /// What opening found and did.
    #[must_use]
    pub fn recovery(&self) -> &RecoveryReport {
        &self.inner.report
    }

    /// The store's directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// The store's identity.
    #[must_use]
    pub fn uuid(&self) -> Uuid {
        self.inner.uuid
    }

    /// What is durable and what is in the snapshot.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.inner.engine.progress()
    }

    /// The failure after which nothing is written any more, if there was one.
    #[must_use]
    pub fn poison(&self) -> Option<Poison> {
        self.inner.engine.poison()
    }

    /// Starts a share partition anew; a repeated identical call changes nothing. Answers the
    /// pending acks that were dropped (semantics section 2).
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn initialize(
        &self,
        key: &SharePartitionKey,
        state_epoch: i32,
        start_offset: i64,
    ) -> Result<Vec<PendingAck>, StoreError> {
        let key = key.clone();
        self.done(Command::Initialize { key, state_epoch, start_offset }).await
    }

    /// Merges state batches, as a partition leader does after acknowledgements. Answers the pending
    /// acks that were dropped because the start offset passed them.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn write(
        &self,
        key: &SharePartitionKey,
        write: Write,
    ) -> Result<Vec<PendingAck>, StoreError> {
        let Write { state_epoch, leader_epoch, start_offset, delivery_complete_count, batches } =
            write;
        self.done(Command::Write {
            key: key.clone(),
            state_epoch,
            leader_epoch,
            start_offset,
            delivery_complete_count,
            batches,
        })
        .await
    }

    /// Reads the whole state as a partition leader; a leader epoch above the fence is durable
    /// before the answer and fences older leaders.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn read(
        &self,
        key: &SharePartitionKey,
        leader_epoch: i32,
    ) -> Result<ReadAnswer, StoreError> {
        match self.execute(Command::Read { key: key.clone(), leader_epoch }).await? {
            Answer::Read(answer) => Ok(*answer),
            other => Err(unexpected(&other)),
        }
    }

    /// Reads epochs, start offset and count; never changes anything. An unknown key answers -1, -1,
    /// 0, 0.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn summary(&self, key: &SharePartitionKey) -> Result<SummaryAnswer, StoreError> {
        match self.execute(Command::Summary { key: key.clone() }).await? {
            Answer::Summary(answer) => Ok(answer),
            other => Err(unexpected(&other)),
        }
    }

    /// Drops a share partition; dropping what is not there succeeds. Answers the pending acks that
    /// went with it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn delete(&self, key: &SharePartitionKey) -> Result<Vec<PendingAck>, StoreError> {
        self.done(Command::Delete { key: key.clone() }).await
    }

    /// Deletes all share partitions of a group, one by one: not one atomic act. After an error a
    /// repeated call continues.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn delete_group(&self, group_id: &str) -> Result<Deleted, StoreError> {
        self.delete_where(Some(group_id), |_| true).await
    }

    /// Deletes all share partitions of a topic in all groups, one by one, as
    /// [`delete_group`](Self::delete_group).
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn delete_topic(&self, topic_id: Uuid) -> Result<Deleted, StoreError> {
        self.delete_where(None, |key| key.topic_id() == topic_id).await
    }

    async fn delete_where(
        &self,
        group_id: Option<&str>,
        matches: impl Fn(&SharePartitionKey) -> bool,
    ) -> Result<Deleted, StoreError> {
        let mut deleted = Deleted::default();
        let mut after = None;
        loop {
            let page = self.list(group_id, after.as_ref(), PAGE).await?;
            for (key, _) in page.partitions.iter().filter(|(key, _)| matches(key)) {
                deleted.dropped += self.delete(key).await?.len() as u64;
                deleted.partitions += 1;
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(deleted),
            }
        }
    }

    /// A page of at most `limit` share partitions in key order behind `after`, of one group or of
    /// all.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list(
        &self,
        group_id: Option<&str>,
        after: Option<&SharePartitionKey>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let group_id = group_id.map(str::to_owned);
        let (partitions, next) =
            self.inner.engine.partitions(group_id, after.cloned(), limit).await?;
        Ok(Page { partitions, next })
    }

    /// Stages acks of acquired records inside a producer's transaction: from then on they are
    /// *prepared*, and only the transaction's marker, or an operator, ends that (semantics section
    /// 4.3). All or nothing. Answers the offset ranges that are newly staged; an identical repeated
    /// call succeeds with none.
    ///
    /// # Errors [`StoreError`]. After one that is not a refusal the outcome is unknown: repeat the
    /// identical call or read.
    pub async fn stage(&self, stage: Stage) -> Result<Vec<(i64, i64)>, StoreError> {
        match self.execute(Command::Stage(stage)).await? {
            Answer::Staged { staged } => Ok(staged),
            other => Err(unexpected(&other)),
        }
    }

    /// Stages in several share partitions at once, each on its own: the answers stand in the order
    /// of the calls (S-7).
    pub async fn stage_all(&self, stages: Vec<Stage>) -> Vec<Result<Vec<(i64, i64)>, StoreError>> {
        crate::blocking::join_all(stages.into_iter().map(|stage| self.stage(stage))).await
    }

    /// Takes a transaction marker: one atomic entry that resolves whatever the producer staged
    /// anywhere in the store (semantics section 4.4). Repeating it is harmless.
    ///
    /// # Errors
    /// [`StoreError`], with codes that a transaction coordinator understands.
    pub async fn marker(&self, marker: Marker) -> Result<Resolved, StoreError> {
        self.resolved(Command::Marker(marker)).await
    }

    /// Ends one open epoch of a producer by hand, as its own marker would; logged as an operator's
    /// act (semantics section 4.5).
    ///
    /// # Errors [`StoreError`]; [`Rejection::NothingPending`](crate::Rejection::NothingPending)
    /// when the epoch is not open.
    pub async fn force_resolve(
        &self,
        producer_id: i64,
        epoch: i16,
        outcome: Outcome,
    ) -> Result<Resolved, StoreError> {
        self.resolved(Command::ForceResolve { producer_id, epoch, outcome }).await
    }

    async fn resolved(&self, command: Command) -> Result<Resolved, StoreError> {
        match self.execute(command).await? {
            Answer::Resolved { resolved: partitions, contradicts, orphans } => {
                Ok(Resolved { partitions, contradicts, orphans })
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Walks the prepared acks that match `filter`.
    #[must_use]
    pub fn pending(&self, filter: PendingFilter) -> PendingScan<'_> {
        PendingScan::new(&self.inner.engine, filter)
    }

    /// Counts and ages of all prepared acks.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn pending_totals(&self) -> Result<PendingTotals, StoreError> {
        PendingTotals::collect(&self.inner.engine).await
    }

    /// What is remembered of a producer id.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn producer(&self, producer_id: i64) -> Result<Option<Arc<Producer>>, StoreError> {
        let Some(after) = producer_id.checked_sub(1) else { return Ok(None) };
        let (producers, _) = self.inner.engine.producers(Some(after), 1).await?;
        Ok(producers.into_iter().find(|(id, _)| *id == producer_id).map(|(_, row)| row))
    }

    /// A page of at most `limit` remembered producers in id order behind `after`, and where to
    /// continue.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn producers(
        &self,
        after: Option<i64>,
        limit: usize,
    ) -> Result<ProducerPage, StoreError> {
        self.inner.engine.producers(after, limit).await
    }

    /// Sets a share partition to a state brought from elsewhere. Unless `replace`, an existing one
    /// is refused.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn import(
        &self,
        key: &SharePartitionKey,
        partition: Partition,
        replace: bool,
    ) -> Result<Vec<PendingAck>, StoreError> {
        let (key, partition) = (key.clone(), Box::new(partition));
        self.done(Command::Import { key, partition, replace }).await
    }

    /// Submits any command and waits for its answer, and for room in the queue before that.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn execute(&self, command: Command) -> Result<Answer, StoreError> {
        self.inner.engine.execute(command).await
    }

    /// The engine behind, for what is built on the store within this crate.
    pub(crate) fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    /// As [`execute`](Self::execute), but fails with [`StoreError::QueueFull`] instead of waiting
    /// for room.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn try_execute(&self, command: Command) -> Result<Answer, StoreError> {
        self.inner.engine.try_execute(command).await
    }

    async fn done(&self, command: Command) -> Result<Vec<PendingAck>, StoreError> {
        match self.execute(command).await? {
            Answer::Done { dropped } => Ok(dropped),
            other => Err(unexpected(&other)),
        }
    }

    /// Folds everything accepted so far into the snapshot; answers the LSN that it then holds.
    ///
    /// # Errors
    /// [`CheckpointError`]; nothing is lost by it.
    pub async fn checkpoint(&self) -> Result<Lsn, CheckpointError> {
        self.inner.engine.checkpoint().await
    }

    /// Writes a backup to `target`, a directory that does not exist or is empty: everything that was
    /// answered before this call is in it, and nothing that is submitted after it has returned.
    /// The store goes on meanwhile. The backup is a store directory of its own, which shares no
    /// file with this one; [`restore`](crate::restore) makes a store of it.
    ///
    /// # Errors [`BackupError`](crate::BackupError). A target that was begun is marked as
    /// unfinished: nobody accepts it, and it can be removed.
    pub async fn backup(
        &self,
        target: impl AsRef<Path>,
    ) -> Result<crate::BackupReport, crate::BackupError> {
        self.inner.engine.backup(target.as_ref().to_owned()).await
    }

    /// Answers what is queued, takes a last checkpoint and stops. Calls on any handle fail from
    /// then on. Closing again is harmless.
    ///
    /// # Errors [`CheckpointError`] when the last checkpoint failed; everything answered is in the
    /// log all the same.
    pub async fn close(&self) -> Result<(), CheckpointError> {
        self.inner.engine.close().await
    }

    /// The same store for plain threads.
    #[must_use]
    pub fn blocking(&self) -> crate::blocking::BlockingShareStore {
        crate::blocking::BlockingShareStore::new(self.clone())
    }
}

/// The engine answered another command's question: a defect, reported instead of a panic.
pub(crate) fn unexpected(answer: &Answer) -> StoreError {
    tracing::error!(?answer, "an answer does not fit its command");
    StoreError::Closed
}
