//! The store for plain threads: every call waits where it stands.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use uuid::Uuid;

use crate::engine::residency::ProducerPage;
use crate::error::{CheckpointError, StoreError};
use crate::model::{
    Answer, Command, Lsn, Marker, Outcome, Partition, PendingAck, Producer, ReadAnswer,
    SharePartitionKey, Stage, SummaryAnswer,
};
use crate::pending::{PendingEntry, PendingFilter, PendingTotals};
use crate::store::{Deleted, Page, Resolved, ShareStore, Write};

/// A [`ShareStore`] whose calls block. The futures of the store never need a runtime, so none is
/// started; do not call this from async code, where it would hold up the executor.
#[derive(Debug, Clone)]
pub struct BlockingShareStore {
    store: ShareStore,
}

macro_rules! blocking {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),*) -> $out:ty;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Errors
            /// As the call of the same name of [`ShareStore`].
            pub fn $name(&self $(, $arg: $type)*) -> $out {
                block_on(self.store.$name($($arg),*))
            }
        )*
    };
}

impl BlockingShareStore {
    pub(crate) fn new(store: ShareStore) -> Self {
        Self { store }
    }

    /// The same store for async code.
    #[must_use]
    pub fn store(&self) -> &ShareStore {
        &self.store
    }

    blocking! {
        /// See [`ShareStore::initialize`].
        initialize(key: &SharePartitionKey, state_epoch: i32, start_offset: i64)
            -> Result<Vec<PendingAck>, StoreError>;
        /// See [`ShareStore::write`].
        write(key: &SharePartitionKey, write: Write) -> Result<Vec<PendingAck>, StoreError>;
        /// See [`ShareStore::read`].
        read(key: &SharePartitionKey, leader_epoch: i32) -> Result<ReadAnswer, StoreError>;
        /// See [`ShareStore::summary`].
        summary(key: &SharePartitionKey) -> Result<SummaryAnswer, StoreError>;
        /// See [`ShareStore::delete`].
        delete(key: &SharePartitionKey) -> Result<Vec<PendingAck>, StoreError>;
        /// See [`ShareStore::delete_group`].
        delete_group(group_id: &str) -> Result<Deleted, StoreError>;
        /// See [`ShareStore::delete_topic`].
        delete_topic(topic_id: Uuid) -> Result<Deleted, StoreError>;
        /// See [`ShareStore::list`].
        list(group_id: Option<&str>, after: Option<&SharePartitionKey>, limit: usize)
            -> Result<Page, StoreError>;
        /// See [`ShareStore::stage`].
        stage(stage: Stage) -> Result<Vec<(i64, i64)>, StoreError>;
        /// See [`ShareStore::marker`].
        marker(marker: Marker) -> Result<Resolved, StoreError>;
        /// See [`ShareStore::force_resolve`].
        force_resolve(producer_id: i64, epoch: i16, outcome: Outcome)
            -> Result<Resolved, StoreError>;
        /// See [`ShareStore::pending_totals`].
        pending_totals() -> Result<PendingTotals, StoreError>;
        /// See [`ShareStore::backup`].
        backup(target: &std::path::Path) -> Result<crate::BackupReport, crate::BackupError>;
        /// See [`ShareStore::producer`].
        producer(producer_id: i64) -> Result<Option<Arc<Producer>>, StoreError>;
        /// See [`ShareStore::producers`].
        producers(after: Option<i64>, limit: usize)
            -> Result<ProducerPage, StoreError>;
        /// See [`ShareStore::import`].
        import(key: &SharePartitionKey, partition: Partition, replace: bool)
            -> Result<Vec<PendingAck>, StoreError>;
        /// See [`ShareStore::execute`].
        execute(command: Command) -> Result<Answer, StoreError>;
        /// See [`ShareStore::try_execute`].
        try_execute(command: Command) -> Result<Answer, StoreError>;
        /// See [`ShareStore::checkpoint`].
        checkpoint() -> Result<Lsn, CheckpointError>;
        /// See [`ShareStore::close`].
        close() -> Result<(), CheckpointError>;
    }
}

impl BlockingShareStore {
    /// As [`ShareStore::stage_all`].
    #[must_use]
    pub fn stage_all(&self, stages: Vec<Stage>) -> Vec<Result<Vec<(i64, i64)>, StoreError>> {
        block_on(self.store.stage_all(stages))
    }

    /// All that [`ShareStore::pending`] walks over.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn pending(&self, filter: PendingFilter) -> Result<Vec<PendingEntry>, StoreError> {
        let mut scan = self.store.pending(filter);
        let mut entries = Vec::new();
        while let Some(entry) = block_on(scan.next())? {
            entries.push(entry);
        }
        Ok(entries)
    }
}

/// Wakes the thread that waits.
struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls a future of the store on this thread until it is ready. Any future that needs no runtime
/// will do.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(ThreadWaker(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Runs futures side by side; answers their outputs in order.
pub(crate) async fn join_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|context| {
        let mut waiting = false;
        for (future, output) in running.iter_mut().filter(|(_, output)| output.is_none()) {
            match future.as_mut().poll(context) {
                Poll::Ready(done) => *output = Some(done),
                Poll::Pending => waiting = true,
            }
        }
        if waiting { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    running.into_iter().filter_map(|(_, output)| output).collect()
}
