//! A store on a simulated disk over snapshot rows in memory: checkpoints, purges and openings, with
//! writes of rows that a test can count, hold up or fail.
#![cfg(feature = "testing")]

mod checkpoint;
mod directory;
mod due;
mod limits;
mod open;
mod residency;
mod rows;
mod snapshot;
#[path = "../support/mod.rs"]
mod support;

use std::path::Path;
use std::sync::Arc;

use sharestate::fsio::sim::{PageModel, SimFs};
use sharestate::snapshot::MemoryRows;
use sharestate::{Marker, OpenError, Options, Outcome, ShareStore, Stage};
use support::{batch, key, write};

pub const ROOT: &str = "/store";

/// Small segments, no checkpoint but those asked for, and no thread that makes files.
pub fn options() -> Options {
    let mut options = Options::default();
    options.segment_bytes = 4 << 10;
    options.checkpoint_log_bytes = Some(u64::MAX);
    options.background_segments = false;
    options.reserve_bytes = 0;
    options
}

/// The disk, and what its snapshot holds.
#[derive(Debug)]
pub struct Disk {
    pub fs: SimFs,
    pub rows: MemoryRows,
    pub control: rows::Control,
    pub options: Options,
}

impl Disk {
    pub fn empty() -> Self {
        Self::with(SimFs::new(1), MemoryRows::default())
    }

    pub fn with(fs: SimFs, rows: MemoryRows) -> Self {
        Self { fs, rows, control: rows::Control::default(), options: options() }
    }

    /// What a reboot finds.
    pub fn power_cut(&self, model: PageModel) -> Self {
        Self::with(self.fs.power_cut(model), self.rows.fork())
    }

    pub fn try_open(&self) -> Result<ShareStore, OpenError> {
        let rows = rows::WatchedRows::new(self.rows.clone(), self.control.clone());
        ShareStore::open_with(Arc::new(self.fs.clone()), &rows, Path::new(ROOT), &self.options)
    }

    pub fn open(&self) -> ShareStore {
        self.try_open().unwrap_or_else(|error| panic!("open: {error}"))
    }

    /// Names of the log's segments.
    pub fn segments(&self) -> Vec<String> {
        use sharestate::fsio::Fs;
        let wal = Path::new(ROOT).join("wal");
        let entries = self.fs.list(&wal).expect("list");
        let names = entries.into_iter().map(|entry| entry.name.to_string_lossy().into_owned());
        names.filter(|name| name.ends_with(".wal")).collect()
    }
}

/// Acknowledges `offset` of a share partition that is initialized.
pub fn put(store: &ShareStore, partition: i32, offset: i64) {
    let batches = [batch(offset, offset, 2, 1)];
    store.blocking().write(&key("g", partition), write(&batches)).expect("write");
}

/// Acknowledges enough for the log to roll over a few times.
pub fn fill(store: &ShareStore, from: i64) {
    for offset in (from..from + 600).step_by(2) {
        put(store, 0, offset);
    }
}

/// Stages one record of a share partition.
pub fn stage(store: &ShareStore, partition: i32, producer_id: i64, offset: i64) {
    let ack = support::accept(offset, offset);
    let stage =
        Stage { leader_epoch: 7, ..support::stage(key("g", partition), producer_id, 4, ack) };
    store.blocking().stage(stage).expect("stage");
}

/// Commits what a producer staged.
pub fn commit(store: &ShareStore, producer_id: i64) {
    let marker = Marker {
        producer_id,
        producer_epoch: 5,
        coordinator_epoch: 3,
        outcome: Outcome::Commit,
        transaction_version: 2,
    };
    store.blocking().marker(marker).expect("marker");
}

/// Everything the store holds, producers included, in comparable form: as a walk sees it, and as a
/// look at each single row.
pub fn everything(store: &ShareStore) -> Vec<String> {
    let mut rows = support::contents(store);
    let page = store.blocking().producers(None, 100).expect("producers");
    rows.extend(page.0.iter().map(|(id, producer)| format!("{id} {producer:?}")));
    for partition in 0..10 {
        let row = store.blocking().summary(&key("g", partition)).expect("summary");
        rows.push(format!("{partition} {row:?}"));
    }
    for id in 7..10 {
        rows.push(format!("{id} {:?}", store.blocking().producer(id).expect("producer")));
    }
    rows
}
