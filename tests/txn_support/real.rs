//! A real store in a directory of its own, with a clock that a test moves, that can be closed or
//! killed and opened again.
#![allow(dead_code)] // each test file uses its own part

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use sharestate::blocking::BlockingShareStore;
use sharestate::model::State;
use sharestate::{Clock, Command, Options, ShareStore, StoreError};

use crate::support;

/// A clock that stands until it is moved.
#[derive(Debug)]
pub struct HandClock(AtomicI64);

impl HandClock {
    pub fn at(now_ms: i64) -> Arc<Self> {
        Arc::new(Self(now_ms.into()))
    }

    pub fn set(&self, now_ms: i64) {
        self.0.store(now_ms, Ordering::SeqCst);
    }

    pub fn advance(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for HandClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Small segments, no checkpoint but those asked for, and no thread that makes files while an image
/// is taken.
pub fn options(segment_bytes: u64) -> Options {
    let mut options = Options::default();
    options.segment_bytes = segment_bytes;
    options.checkpoint_log_bytes = Some(u64::MAX);
    options.background_segments = false;
    options.reserve_bytes = 0;
    options.block_cache_bytes = 1 << 20;
    options
}

pub struct Real {
    dir: tempfile::TempDir,
    live: PathBuf,
    /// How often it was opened again.
    pub reopened: usize,
    pub clock: Arc<HandClock>,
    options: Options,
    store: Option<ShareStore>,
}

impl Real {
    pub fn open(mut options: Options) -> Self {
        let dir = tempfile::tempdir().expect("directory");
        let live = dir.path().join("store-0");
        let clock = HandClock::at(1_000);
        options.clock = Arc::<HandClock>::clone(&clock);
        let store = Some(support::open(&live, &options));
        Self { dir, live, reopened: 0, clock, options, store }
    }

    pub fn store(&self) -> &ShareStore {
        self.store.as_ref().expect("open")
    }

    pub fn blocking(&self) -> BlockingShareStore {
        self.store().blocking()
    }

    pub fn path(&self) -> &Path {
        &self.live
    }

    /// A name for one more directory beside the store's.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn checkpoint(&self) {
        self.blocking().checkpoint().expect("checkpoint");
    }

    /// Closes the store cleanly and opens it again.
    pub fn close_and_open(&mut self) {
        self.blocking().close().expect("close");
        drop(self.store.take());
        self.reopen();
    }

    /// Opens what a killed process leaves: the files as the page cache holds them now. Nothing of
    /// the living store's memory, and no last checkpoint.
    pub fn kill_and_open(&mut self) {
        let image = self.beside(&format!("store-{}", self.reopened + 1));
        support::crash_image(&self.live, &image);
        drop(self.store.take());
        std::fs::remove_dir_all(&self.live).expect("remove");
        self.live = image;
        self.reopen();
    }

    fn reopen(&mut self) {
        self.reopened += 1;
        self.store = Some(support::open(&self.live, &self.options));
    }

    /// Is refused with this code, if Kafka has one; nothing is logged and nothing changes.
    pub fn refuses(&self, command: impl Into<Command>, code: Option<i16>) {
        let (before, logged) = (self.state(), self.logged());
        let error = self.blocking().execute(command.into()).expect_err("refused");
        assert!(matches!(error, StoreError::Rejected(_)), "{error}");
        assert_eq!(error.kafka_code(), code, "{error}");
        assert_eq!(self.logged(), logged);
        assert_eq!(self.state(), before);
    }

    /// LSN of the last entry; every answer waited for it.
    pub fn logged(&self) -> u64 {
        self.store().progress().durable_lsn
    }

    /// Every row of the store.
    pub fn state(&self) -> State {
        state_of(self.store())
    }
}

/// Every row of a store.
pub fn state_of(store: &ShareStore) -> State {
    const PAGE: usize = 1_000;
    let (store, mut state) = (store.blocking(), State::default());
    let mut after = None;
    loop {
        let page = store.list(None, after.as_ref(), PAGE).expect("list");
        state.partitions.extend(page.partitions);
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    let mut after = None;
    loop {
        let (producers, next) = store.producers(after, PAGE).expect("producers");
        state.producers.extend(producers);
        match next {
            Some(next) => after = Some(next),
            None => return state,
        }
    }
}
