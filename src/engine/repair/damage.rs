//! What a damaged store still proves, and what it has lost.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::rows::NoRows;
use crate::codec::{self, CodecError};
use crate::engine::directory::{Directory, Identity};
use crate::engine::recovery::Replay;
use crate::error::{EntryError, OpenError};
use crate::fsio::Fs;
use crate::log::Entry;
use crate::log::salvage::{Judge, Provable, provable};
use crate::model::{Lsn, SharePartitionKey};
use crate::snapshot::Snapshot;

const PAGE: usize = 1_024;

/// A damaged store: what a salvage would keep and what it would lose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// What an opening says: the first damage, with file and offset.
    pub cause: String,
    /// The snapshot's LSN; none when the snapshot itself is damaged. It is then made anew from the
    /// log, if that reaches back to LSN 1.
    pub snapshot_lsn: Option<Lsn>,
    /// What the log still proves on top of it.
    pub log: Provable,
    /// Share partitions that lost entries name, as far as these still read: their state will be
    /// older than what was acknowledged. Any other share partition may be named in what does not
    /// read.
    pub partitions: BTreeSet<SharePartitionKey>,
    /// Producers that lost entries name, as far as these still read: acks staged there are lost,
    /// markers are to be sent again.
    pub producers: BTreeSet<i64>,
    /// Transactions that are open in what is kept. Each may have ended in what is lost.
    pub open: Vec<OpenTransaction>,
}

/// A transaction that is open in what is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenTransaction {
    /// The producer.
    pub producer_id: i64,
    /// The epoch at which it staged.
    pub epoch: i16,
    /// Share partitions that hold its pending acks.
    pub partitions: usize,
}

impl Damage {
    /// Whether anything is lost, or may be.
    #[must_use]
    pub fn loses(&self) -> bool {
        self.log.lost > 0 || self.log.doubt.is_some()
    }

    /// Why nothing can be proved, if that is so.
    #[must_use]
    pub fn hopeless(&self) -> Option<String> {
        if self.snapshot_lsn.is_some() || self.log.first_lsn == Some(1) {
            return None;
        }
        let log = match self.log.first_lsn {
            Some(first_lsn) => format!("the log begins with LSN {first_lsn}"),
            None => "there is no log".to_owned(),
        };
        Some(format!("the snapshot is damaged and {log}, so nothing proves a state: use a backup"))
    }

    /// The first LSN that the store gives out after a salvage: one that was never given out before.
    #[must_use]
    pub fn next_lsn(&self) -> Lsn {
        super::salvage::next_stretch(self.log.highest_lsn)
    }
}

/// Finds out what is provable. `cause` says why one has to.
pub(super) fn assess(
    fs: &Arc<dyn Fs>,
    directory: &Directory,
    identity: &Identity,
    snapshot: Option<Arc<Snapshot>>,
    cause: String,
) -> Result<Damage, OpenError> {
    let snapshot_lsn = snapshot.as_ref().map(|snapshot| snapshot.applied_lsn());
    let base = match snapshot {
        Some(snapshot) => snapshot,
        None => Arc::new(Snapshot::open(Box::new(NoRows(identity.uuid)), identity.uuid)?),
    };
    let mut replay = Replay::new(base);
    let mut seen = Seen::new(&mut replay);
    let log = seen.read(&**fs, directory, identity, snapshot_lsn.unwrap_or(0))?;
    let Seen { partitions, producers, .. } = seen;
    let open = open_transactions(&mut replay)?;
    Ok(Damage { cause, snapshot_lsn, log, partitions, producers, open })
}

/// Replays what is provable and notes what is not.
pub(super) struct Seen<'a> {
    replay: &'a mut Replay,
    partitions: BTreeSet<SharePartitionKey>,
    producers: BTreeSet<i64>,
    /// What is no damage and ends everything.
    refusal: Option<OpenError>,
}

impl<'a> Seen<'a> {
    pub(super) fn new(replay: &'a mut Replay) -> Self {
        Self { replay, partitions: BTreeSet::new(), producers: BTreeSet::new(), refusal: None }
    }

    pub(super) fn read(
        &mut self,
        fs: &dyn Fs,
        directory: &Directory,
        identity: &Identity,
        applied_lsn: Lsn,
    ) -> Result<Provable, OpenError> {
        let log = provable(fs, &directory.wal(), identity.uuid, applied_lsn, self)?;
        match self.refusal.take() {
            Some(refusal) => Err(refusal),
            None => Ok(log),
        }
    }

    fn refuse(&mut self, entry: &Entry<'_>, source: EntryError) {
        let path = crate::log::segment_file_name(entry.segment).into();
        let (offset, lsn) = (entry.offset, entry.lsn);
        self.refusal.get_or_insert(OpenError::Entry { path, offset, lsn, source });
    }
}

impl Judge for Seen<'_> {
    fn keep(&mut self, entry: &Entry<'_>) -> Result<(), String> {
        let Err(error) = self.replay.apply(entry) else { return Ok(()) };
        let told = error.to_string();
        let is_damage = match &error {
            EntryError::Codec(error) => !matches!(error, CodecError::NewerEntry { .. }),
            EntryError::Apply(_) => true,
            EntryError::Snapshot(error) => error.is_corruption(),
        };
        if !is_damage {
            self.refuse(entry, error);
        }
        Err(told)
    }

    fn lose(&mut self, entry: &Entry<'_>) {
        match codec::decode_transition(entry.kind, entry.version, entry.body) {
            Ok(transition) => {
                self.partitions.extend(transition.key().cloned());
                self.producers.extend(transition.producer_id());
            }
            Err(error @ CodecError::NewerEntry { .. }) => self.refuse(entry, error.into()),
            Err(_) => {} // it cannot be told what it was
        }
    }
}

fn open_transactions(replay: &mut Replay) -> Result<Vec<OpenTransaction>, OpenError> {
    let mut open = Vec::new();
    let mut after = None;
    loop {
        let (page, next) = replay.resident().producers(after, PAGE)?;
        for (producer_id, producer) in &page {
            open.extend(producer.open.iter().map(|(epoch, open)| OpenTransaction {
                producer_id: *producer_id,
                epoch: *epoch,
                partitions: open.keys.len(),
            }));
        }
        match next {
            Some(next) => after = Some(next),
            None => return Ok(open),
        }
    }
}
