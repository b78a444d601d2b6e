//! A store on a simulated disk, to be opened as often as a test likes.

use std::path::Path;
use std::sync::Arc;

use sharestate::fsio::sim::{PageModel, SimFs};
use sharestate::snapshot::MemoryRows;
use sharestate::{Marker, OpenError, Options, Outcome, ShareStore, Stage};

use crate::support::{self, key};

/// Disk and snapshot rows of one store.
#[derive(Debug, Clone)]
pub struct Disk {
    pub fs: SimFs,
    pub rows: MemoryRows,
}

impl Disk {
    pub fn new() -> Self {
        Self { fs: SimFs::new(1), rows: MemoryRows::default() }
    }

    pub fn try_open(&self, options: &Options) -> Result<ShareStore, OpenError> {
        ShareStore::open_with(Arc::new(self.fs.clone()), &self.rows, Path::new("/s"), options)
    }

    pub fn open(&self, options: &Options) -> ShareStore {
        self.try_open(options).unwrap_or_else(|error| panic!("open: {error}"))
    }

    /// What a power cut leaves when nothing that was not synced survives.
    pub fn after_power_cut(&self) -> Self {
        Self { fs: self.fs.power_cut(PageModel::UnsyncedLost), rows: self.rows.fork() }
    }

    /// Bytes of all log segments.
    pub fn log_bytes(&self) -> u64 {
        let files = sharestate::fsio::Fs::list(&self.fs, Path::new("/s/wal")).expect("listed");
        files.iter().map(|file| file.len).sum()
    }
}

/// Small segments and no checkpoint but those asked for.
pub fn log_only() -> Options {
    let mut options = Options::default();
    options.segment_bytes = 16 << 10;
    options.checkpoint_log_bytes = Some(u64::MAX);
    options.background_segments = false;
    options.reserve_bytes = 0;
    options
}

/// As [`log_only`], with a checkpoint after every segment of log.
pub fn checkpointing() -> Options {
    let mut options = log_only();
    options.checkpoint_log_bytes = Some(16 << 10);
    options
}

/// Stages an accepted record of share partition `g:0`.
pub fn stage(producer_id: i64, producer_epoch: i16, offset: i64) -> Stage {
    support::stage(key("g", 0), producer_id, producer_epoch, support::accept(offset, offset))
}

/// The marker that ends what `producer_epoch` staged.
pub fn marker(producer_id: i64, producer_epoch: i16, outcome: Outcome) -> Marker {
    let producer_epoch = producer_epoch + 1;
    Marker { producer_id, producer_epoch, coordinator_epoch: 1, outcome, transaction_version: 2 }
}
