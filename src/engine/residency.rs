//! Which rows are in memory: loads them from the snapshot before they are needed, knows which have
//! changed since the last checkpoint, and gives back what a bounded cache need not keep. Knows
//! nothing of the log or of callers.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use crate::model::{
    self, ApplyError, Command, Decision, Effects, Lsn, Partition, Producer, RowId,
    SharePartitionKey, State, Transition,
};
use crate::seeded;
use crate::snapshot::{CheckpointBatch, Snapshot, SnapshotError};

/// What is known of a resident row. The row itself is in [`State`], or absent there: then it does
/// not exist.
#[derive(Debug, Default)]
struct Residency {
    /// LSN of its last change since it was loaded; 0 = as in the snapshot.
    lsn: Lsn,
    /// Changed since the last checkpoint was taken.
    dirty: bool,
    /// Part of the running checkpoint.
    frozen: bool,
    /// Approximate size in memory.
    bytes: usize,
    /// Used since the cache last looked at it.
    used: bool,
    /// Stands in the cache's queue.
    queued: bool,
}

/// Resident rows over a snapshot.
#[derive(Debug)]
pub struct Resident {
    snapshot: Arc<Snapshot>,
    state: State,
    rows: HashMap<RowId, Residency>,
    /// Dirty or frozen rows: what differs from the snapshot.
    changed: BTreeSet<RowId>,
    /// Clean rows in the order in which the cache gives them up (second chance).
    queue: VecDeque<RowId>,
    clean_bytes: usize,
    changed_bytes: usize,
    /// Bytes that the running checkpoint holds of rows that changed again since.
    frozen_bytes: usize,
}

/// Approximate memory of a row that does not exist.
const ABSENT_BYTES: usize = 128;

/// A page of share partitions and the key to continue behind, if there may be more.
pub type PartitionPage = (Vec<(SharePartitionKey, Arc<Partition>)>, Option<SharePartitionKey>);

/// Share partitions that exist, in the order asked for.
pub type Rows = Vec<(SharePartitionKey, Arc<Partition>)>;

/// A page of producers and the id to continue behind, if there may be more.
pub type ProducerPage = (Vec<(i64, Arc<Producer>)>, Option<i64>);

impl Resident {
    /// Nothing resident yet.
    #[must_use]
    pub fn new(snapshot: Arc<Snapshot>) -> Self {
        Self {
            snapshot,
            state: State::default(),
            rows: HashMap::new(),
            changed: BTreeSet::new(),
            queue: VecDeque::new(),
            clean_bytes: 0,
            changed_bytes: 0,
            frozen_bytes: 0,
        }
    }

    /// Goes on over another handle to the same snapshot.
    pub(super) fn rest_on_snapshot(&mut self, snapshot: Arc<Snapshot>) {
        self.snapshot = snapshot;
    }

    /// The resident state.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Judges a command; loads the rows that this takes.
    ///
    /// # Errors
    /// [`SnapshotError`] when a row cannot be read.
    pub fn decide(
        &mut self,
        command: &Command,
        now_ms: i64,
        options: &model::Options,
    ) -> Result<Decision, SnapshotError> {
        for id in model::reads(command) {
            self.load(&id)?;
        }
        Ok(model::decide(&self.state, command, now_ms, options))
    }

    /// Loads every row that applying `transition` reads or changes.
    ///
    /// # Errors
    /// [`SnapshotError`] when a row cannot be read.
    pub fn load_for(&mut self, transition: &Transition) -> Result<(), SnapshotError> {
        loop {
            let mut loaded = false;
            for id in model::touches(&self.state, transition) {
                loaded |= self.load(&id)?;
            }
            if !loaded {
                return Ok(());
            }
        }
    }

    /// Applies a transition whose rows are loaded.
    ///
    /// # Errors
    /// [`ApplyError`] when the transition is impossible; nothing has changed then.
    pub fn apply(&mut self, lsn: Lsn, transition: &Transition) -> Result<Effects, ApplyError> {
        let effects = model::apply(&mut self.state, lsn, transition)?;
        for id in &effects.touched {
            self.touch(id, lsn);
        }
        Ok(effects)
    }

    /// The newest entry that what is said about these rows rests on; 0 = the snapshot.
    #[must_use]
    pub fn rests_on(&self, ids: &[RowId]) -> Lsn {
        ids.iter().filter_map(|id| self.rows.get(id)).map(|row| row.lsn).max().unwrap_or(0)
    }

    /// Makes a row resident. Answers whether it had to be loaded.
    fn load(&mut self, id: &RowId) -> Result<bool, SnapshotError> {
        if let Some(row) = self.rows.get_mut(id) {
            row.used = true;
            return Ok(false);
        }
        match id {
            RowId::Partition(key) => {
                if let Some(partition) = self.snapshot.partition(key)? {
                    self.state.partitions.insert(key.clone(), Arc::new(partition));
                }
            }
            RowId::Producer(producer_id) => {
                if let Some(producer) = self.snapshot.producer(*producer_id)? {
                    self.state.producers.insert(*producer_id, Arc::new(producer));
                }
            }
        }
        let bytes = self.size_of(id);
        self.clean_bytes += bytes;
        let row = Residency { bytes, used: true, queued: true, ..Residency::default() };
        self.rows.insert(id.clone(), row);
        self.queue.push_back(id.clone());
        Ok(true)
    }

    /// Notes a change.
    fn touch(&mut self, id: &RowId, lsn: Lsn) {
        let bytes = self.size_of(id);
        let row = self.rows.entry(id.clone()).or_default();
        if row.dirty || row.frozen {
            self.changed_bytes -= row.bytes;
            if row.frozen && !row.dirty {
                self.frozen_bytes += row.bytes; // the checkpoint keeps its own copy from now on
            }
        } else {
            self.clean_bytes -= row.bytes;
            self.changed.insert(id.clone());
        }
        row.lsn = lsn;
        row.dirty = true;
        row.used = true;
        row.bytes = bytes;
        self.changed_bytes += bytes;
    }

    fn size_of(&self, id: &RowId) -> usize {
        let row = match id {
            RowId::Partition(key) => self.state.partitions.get(key).map(|row| row.approx_bytes()),
            RowId::Producer(id) => self.state.producers.get(id).map(|row| row.approx_bytes()),
        };
        ABSENT_BYTES + row.unwrap_or(0)
    }

    /// Bytes of changed rows, those held by a running checkpoint included.
    #[must_use]
    pub fn changed_bytes(&self) -> usize {
        self.changed_bytes + self.frozen_bytes
    }

    /// Whether any row has changed since the last checkpoint was taken.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Takes the changed rows for a checkpoint at `applied_lsn`. They stay resident until
    /// [`thaw`](Self::thaw).
    pub fn freeze(&mut self, applied_lsn: Lsn) -> CheckpointBatch {
        let mut batch = CheckpointBatch { applied_lsn, ..CheckpointBatch::default() };
        for (nth, id) in self.changed.iter().enumerate() {
            if let Some(row) = self.rows.get_mut(id) {
                row.dirty = false;
                row.frozen = true;
            }
            if nth == 0 && seeded::bug("pulsar-26251") {
                continue;
            }
            match id {
                RowId::Partition(key) => {
                    let row = self.state.partitions.get(key).cloned();
                    if row.is_none() && seeded::bug("raft-engine-180") {
                        continue;
                    }
                    batch.partitions.push((key.clone(), row));
                }
                RowId::Producer(producer_id) => {
                    let row = self.state.producers.get(producer_id).cloned();
                    let row = row.filter(|row| {
                        row.last_completed.is_some() || !seeded::bug("redpanda-30003")
                    });
                    batch.producers.push((*producer_id, row));
                }
            }
        }
        batch
    }

    /// Ends a checkpoint. When it was `written`, rows that did not change meanwhile are clean;
    /// otherwise all its rows count as changed again, with the newer values that memory holds.
    pub fn thaw(&mut self, written: bool) {
        self.frozen_bytes = 0;
        let mut clean = Vec::new();
        for id in &self.changed {
            let Some(row) = self.rows.get_mut(id).filter(|row| row.frozen) else { continue };
            row.frozen = false;
            if !written {
                row.dirty = true;
            } else if !row.dirty || seeded::bug("nats-8456") {
                row.lsn = 0;
                self.changed_bytes -= row.bytes;
                self.clean_bytes += row.bytes;
                if !row.queued {
                    row.queued = true;
                    self.queue.push_back(id.clone());
                }
                clean.push(id.clone());
            }
        }
        for id in clean {
            self.changed.remove(&id);
        }
    }

    /// Gives up clean rows until they take at most `budget` bytes.
    pub fn evict(&mut self, budget: usize) {
        while self.clean_bytes > budget {
            let Some(id) = self.queue.pop_front() else { return };
            let Some(row) = self.rows.get_mut(&id) else { continue };
            row.queued = false;
            if row.dirty || row.frozen {
                continue; // queued again when a checkpoint has written it
            }
            if row.used {
                row.used = false;
                row.queued = true;
                self.queue.push_back(id);
                continue;
            }
            self.clean_bytes -= row.bytes;
            self.rows.remove(&id);
            match &id {
                RowId::Partition(key) => {
                    self.state.partitions.remove(key);
                }
                RowId::Producer(producer_id) => {
                    self.state.producers.remove(producer_id);
                }
            }
        }
    }

    /// Share partitions in key order behind `after`, of one group or of all: the snapshot's rows
    /// with the changed ones laid over them. Answers at most `limit` rows.
    ///
    /// # Errors
    /// [`SnapshotError`] when a row cannot be read.
    pub fn partitions(
        &self,
        group_id: Option<&str>,
        after: Option<&SharePartitionKey>,
        limit: usize,
    ) -> Result<PartitionPage, SnapshotError> {
        let stored = self.snapshot.partitions(group_id, after, limit)?;
        let complete = stored.len() < limit;
        let end = stored.last().map(|(key, _)| key.clone()).filter(|_| !complete);
        let from =
            after.map_or(Bound::Unbounded, |key| Bound::Excluded(RowId::Partition(key.clone())));
        // All share partitions sort before all producers.
        let to = end.map_or(Bound::Excluded(RowId::Producer(i64::MIN)), |key| {
            Bound::Included(RowId::Partition(key))
        });
        let changed = self.changed.range((from, to)).filter_map(|id| match id {
            RowId::Partition(key) if group_id.is_none_or(|group| key.group_id() == group) => {
                Some((key.clone(), self.state.partitions.get(key).cloned()))
            }
            _ => None,
        });
        let stored = stored.into_iter().map(|(key, row)| (key, Arc::new(row)));
        Ok(overlay(stored, changed, limit, complete))
    }

    /// Those of `keys` that exist, and the newest entry that they rest on.
    ///
    /// # Errors
    /// [`SnapshotError`] when a row cannot be read.
    pub fn rows(&mut self, keys: &[SharePartitionKey]) -> Result<(Rows, Lsn), SnapshotError> {
        let mut rows = Vec::with_capacity(keys.len());
        let mut rests_on = 0;
        for key in keys {
            let id = RowId::Partition(key.clone());
            self.load(&id)?;
            rests_on = rests_on.max(self.rests_on(&[id]));
            rows.extend(self.state.partitions.get(key).map(|row| (key.clone(), Arc::clone(row))));
        }
        Ok((rows, rests_on))
    }

    /// A producer, if it is remembered.
    ///
    /// # Errors
    /// [`SnapshotError`] when a row cannot be read.
    pub fn producer(&mut self, id: i64) -> Result<Option<Arc<Producer>>, SnapshotError> {
        self.load(&RowId::Producer(id))?;
        Ok(self.state.producers.get(&id).cloned())
    }

    /// Producers in id order behind `after`, as [`partitions`](Self::partitions).
    ///
    /// # Errors
    /// [`SnapshotError`] when a row cannot be read.
    pub fn producers(
        &self,
        after: Option<i64>,
        limit: usize,
    ) -> Result<ProducerPage, SnapshotError> {
        let stored = self.snapshot.producers(after, limit)?;
        let complete = stored.len() < limit;
        let end = stored.last().map(|(id, _)| *id).filter(|_| !complete);
        let from = RowId::Producer(after.unwrap_or(i64::MIN));
        let from = if after.is_some() { Bound::Excluded(from) } else { Bound::Included(from) };
        let to = end.map_or(Bound::Unbounded, |id| Bound::Included(RowId::Producer(id)));
        let changed = self.changed.range((from, to)).filter_map(|id| match id {
            RowId::Producer(id) => Some((*id, self.state.producers.get(id).cloned())),
            RowId::Partition(_) => None,
        });
        let stored = stored.into_iter().map(|(id, row)| (id, Arc::new(row)));
        Ok(overlay(stored, changed, limit, complete))
    }
}

/// Merges ascending `stored` rows with ascending `changed` ones, which win; a changed row of `None`
/// is deleted.
///
/// Answers up to `limit` rows and the key to continue behind. `complete` says that `stored` goes to
/// the end.
fn overlay<K: Ord + Clone, V>(
    stored: impl Iterator<Item = (K, V)>,
    changed: impl Iterator<Item = (K, Option<V>)>,
    limit: usize,
    complete: bool,
) -> (Vec<(K, V)>, Option<K>) {
    let mut stored = stored.peekable();
    let mut changed = changed.peekable();
    let mut page = Vec::new();
    let mut last = None;
    while page.len() < limit {
        let take_changed = match (stored.peek(), changed.peek()) {
            (None, None) => return (page, if complete { None } else { last }),
            (Some((key, _)), Some((changed_key, _))) => changed_key <= key,
            (None, Some(_)) => true,
            (Some(_), None) => false,
        };
        if take_changed {
            let Some((key, row)) = changed.next() else { continue };
            if stored.peek().is_some_and(|(stored_key, _)| *stored_key == key) {
                stored.next();
            }
            last = Some(key.clone());
            page.extend(row.map(|row| (key, row)));
        } else {
            let Some((key, row)) = stored.next() else { continue };
            last = Some(key.clone());
            page.push((key, row));
        }
    }
    (page, last)
}
