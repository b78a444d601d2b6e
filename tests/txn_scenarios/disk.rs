//! A store on a simulated disk that loses power, over snapshot rows whose writing a test can hold
//! up, with a clock that can hold up the store itself.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use sharestate::engine::recovery::RowOpener;
use sharestate::fsio::sim::{PageModel, SimFs};
use sharestate::snapshot::{
    Family, MemoryRows, RowOp, RowReader, RowStore, RowsVisitor, SnapshotError, SnapshotStats,
};
use sharestate::{Clock, OpenError, Options, ShareStore};

use super::key;

/// Where somebody waits while it is closed.
#[derive(Debug, Clone, Default)]
pub struct Gate(Arc<(Mutex<GateState>, Condvar)>);

#[derive(Debug, Default)]
struct GateState {
    closed: bool,
    waiting: usize,
}

impl Gate {
    pub fn close(&self) {
        self.state().closed = true;
    }

    pub fn open(&self) {
        self.state().closed = false;
        self.0.1.notify_all();
    }

    /// Returns once somebody waits at the closed gate.
    pub fn until_somebody_waits(&self) {
        let state = self.state();
        let waits = self.0.1.wait_while(state, |state| state.waiting == 0);
        drop(waits.expect("gate"));
    }

    fn pass(&self) {
        let mut state = self.state();
        state.waiting += 1;
        self.0.1.notify_all();
        let mut state = self.0.1.wait_while(state, |state| state.closed).expect("gate");
        state.waiting -= 1;
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        self.0.0.lock().expect("gate")
    }
}

/// A clock that stands still. The store asks it before it looks at what was submitted.
impl Clock for Gate {
    fn now_ms(&self) -> i64 {
        self.pass();
        1_000
    }
}

/// Rows in memory whose writing waits at a gate.
#[derive(Debug, Clone)]
struct GatedRows(MemoryRows, Gate);

impl RowOpener for GatedRows {
    fn create(&self, _: &Path) -> Result<Box<dyn RowStore>, SnapshotError> {
        self.0.clear();
        Ok(Box::new(self.clone()))
    }

    fn open(&self, _: &Path) -> Result<Box<dyn RowStore>, SnapshotError> {
        Ok(Box::new(self.clone()))
    }

    fn look(&self, path: &Path) -> Result<Box<dyn RowStore>, SnapshotError> {
        self.open(path)
    }
}

type Row = (Box<[u8]>, Box<[u8]>);

impl RowReader for GatedRows {
    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, SnapshotError> {
        self.0.get(family, key)
    }

    fn scan(&self, family: Family, from: &[u8], limit: usize) -> Result<Vec<Row>, SnapshotError> {
        self.0.scan(family, from, limit)
    }
}

impl RowStore for GatedRows {
    fn path(&self) -> PathBuf {
        self.0.path()
    }

    fn at_once(&self, read: RowsVisitor<'_>) -> Result<(), SnapshotError> {
        self.0.at_once(read)
    }

    fn write(&self, ops: Vec<RowOp>) -> Result<(), SnapshotError> {
        self.1.pass();
        self.0.write(ops)
    }

    fn copy_to(&self, target: &Path) -> Result<(), SnapshotError> {
        self.0.copy_to(target)
    }

    fn verify(&self) -> Result<(), SnapshotError> {
        self.0.verify()
    }

    fn stats(&self) -> SnapshotStats {
        self.0.stats()
    }
}

pub const ROOT: &str = "/store";

/// The disk, with what its snapshot holds.
pub struct Disk {
    pub fs: SimFs,
    pub rows: MemoryRows,
    /// Holds up checkpoints.
    pub checkpoints: Gate,
    /// Holds up the store.
    pub clock: Gate,
}

impl Disk {
    pub fn new() -> Self {
        Self::with(SimFs::new(1), MemoryRows::default())
    }

    pub fn with(fs: SimFs, rows: MemoryRows) -> Self {
        Self { fs, rows, checkpoints: Gate::default(), clock: Gate::default() }
    }

    /// What a reboot finds.
    pub fn power_cut(&self, model: PageModel) -> Self {
        Self::with(self.fs.power_cut(model), self.rows.fork())
    }

    pub fn open(&self) -> ShareStore {
        self.try_open().unwrap_or_else(|error| panic!("open: {error}"))
    }

    pub fn try_open(&self) -> Result<ShareStore, OpenError> {
        let mut options = Options::default();
        options.segment_bytes = 16 << 10;
        options.checkpoint_log_bytes = Some(u64::MAX);
        options.background_segments = false;
        options.reserve_bytes = 0;
        options.clock = Arc::new(self.clock.clone());
        let rows = GatedRows(self.rows.clone(), self.checkpoints.clone());
        ShareStore::open_with(Arc::new(self.fs.clone()), &rows, Path::new(ROOT), &options)
    }

    /// A new store with `key(0)` to `key(2)`.
    pub fn started(&self) -> ShareStore {
        let store = self.open();
        for partition in 0..3 {
            store.blocking().initialize(&key(partition), 1, 0).expect("initialize");
        }
        store
    }
}

/// Cuts the power before and after every call that `act` makes on a store which `prepare` has
/// brought to where it begins. `check` gets each image that a reboot may find, opened, and whether
/// `act` was answered with success. Answers the number of images.
pub fn cut_at_every_call(
    prepare: impl Fn(&ShareStore),
    act: impl Fn(&ShareStore) -> bool,
    mut check: impl FnMut(&ShareStore, bool, &str),
) -> usize {
    let mut images = 0;
    for call in 1.. {
        let mut crashed = false;
        for before in [true, false] {
            let disk = Disk::new();
            let store = disk.started();
            prepare(&store);
            let number = disk.fs.calls() + call;
            if before {
                disk.fs.crash_before(number)
            } else {
                disk.fs.crash_after(number)
            }
            let answered = act(&store);
            crashed |= disk.fs.is_crashed();
            for model in [
                PageModel::AllKept,
                PageModel::UnsyncedLost,
                PageModel::Random { seed: call, granularity: 512 },
                PageModel::Random { seed: call + 1_000, granularity: 4_096 },
            ] {
                let context = format!("call {call}, before {before}, {model:?}");
                check(&disk.power_cut(model).open(), answered, &context);
                images += 1;
            }
        }
        if !crashed {
            return images;
        }
        assert!(call < 1_000, "the act never ends");
    }
    images
}

/// Submits a call without waiting for its answer.
pub fn submit<F: Future>(call: &mut Pin<Box<F>>) {
    let polled = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Pending), "it was to be held up");
}

/// Waits for the answer of a submitted call.
pub fn wait<F: Future>(mut call: Pin<Box<F>>) -> F::Output {
    loop {
        match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::yield_now(),
        }
    }
}
