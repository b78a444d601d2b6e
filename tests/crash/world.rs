//! A store on a simulated disk that a test can stop, and what a reboot finds of it.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use sharestate::fsio::sim::{PageModel, SimFs, Survivors};
use sharestate::model::{Answer, Command, State};
use sharestate::snapshot::MemoryRows;
use sharestate::{
    CheckpointError, Clock, OpenError, Options, SharePartitionKey, ShareStore, StoreError,
    SyncPolicy,
};
use uuid::Uuid;

use crate::rw1::{SEGMENT_BYTES, Step};

pub const ROOT: &str = "/store";

/// A clock that a test moves. Closed, it also holds up the store, which asks it before it looks at
/// what was submitted.
#[derive(Debug, Default)]
pub struct StepClock {
    state: Mutex<ClockState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct ClockState {
    now_ms: i64,
    closed: bool,
    waiting: usize,
}

impl StepClock {
    pub fn set(&self, now_ms: i64) {
        self.state().now_ms = now_ms;
    }

    fn close(&self) {
        self.state().closed = true;
    }

    fn open(&self) {
        self.state().closed = false;
        self.changed.notify_all();
    }

    fn until_the_store_waits(&self) {
        let limit = Duration::from_secs(60);
        let state = self.changed.wait_timeout_while(self.state(), limit, |s| s.waiting == 0);
        assert!(!state.expect("clock").1.timed_out(), "the store does not take what is submitted");
    }

    fn state(&self) -> MutexGuard<'_, ClockState> {
        self.state.lock().expect("clock")
    }
}

impl Clock for StepClock {
    fn now_ms(&self) -> i64 {
        let mut state = self.state();
        state.waiting += 1;
        self.changed.notify_all();
        let mut state = self.changed.wait_while(state, |state| state.closed).expect("clock");
        state.waiting -= 1;
        state.now_ms
    }
}

/// A disk with files and rows.
#[derive(Debug)]
pub struct World {
    pub fs: SimFs,
    pub rows: MemoryRows,
    pub clock: Arc<StepClock>,
    pub options: Options,
}

/// Deterministic: nothing is written unless a step asks for it.
pub fn options() -> Options {
    let mut options = Options::default();
    options.segment_bytes = SEGMENT_BYTES;
    options.checkpoint_log_bytes = Some(u64::MAX);
    options.background_segments = false;
    options.mark_delay = Duration::MAX;
    options.reserve_bytes = 0;
    options
}

impl World {
    pub fn new(seed: u64) -> Self {
        let fs = SimFs::new(seed);
        let rows = MemoryRows::on(&fs);
        Self::with(fs, rows, options())
    }

    pub fn with(fs: SimFs, rows: MemoryRows, mut options: Options) -> Self {
        let clock = Arc::new(StepClock::default());
        options.clock = Arc::<StepClock>::clone(&clock);
        Self { fs, rows, clock, options }
    }

    pub fn sync(mut self, sync: SyncPolicy) -> Self {
        self.options.sync = sync;
        self
    }

    /// An empty disk, with the same options.
    pub fn fresh(&self, seed: u64) -> Self {
        let fs = SimFs::new(seed);
        let rows = MemoryRows::on(&fs);
        Self::with(fs, rows, self.options.clone())
    }

    pub fn open(&self) -> Result<ShareStore, OpenError> {
        let fs = Arc::new(self.fs.clone());
        ShareStore::open_with(fs, &self.rows, Path::new(ROOT), &self.options)
    }

    /// What a reboot finds.
    pub fn power_cut(&self, model: PageModel) -> Self {
        self.on(self.fs.power_cut(model))
    }

    /// What a reboot finds, chosen piece by piece.
    pub fn power_cut_leaving(&self, survivors: &Survivors) -> Self {
        self.on(self.fs.power_cut_leaving(survivors))
    }

    /// What the next process finds after this one was killed.
    pub fn restart(&self) -> Self {
        self.on(self.fs.restart())
    }

    fn on(&self, fs: SimFs) -> Self {
        let rows = self.rows.fork_on(&fs);
        Self::with(fs, rows, self.options.clone())
    }

    /// Log segments, oldest first: the first LSN and the file of each.
    pub fn segments(&self) -> Vec<(u64, PathBuf)> {
        let is_segment = |path: &PathBuf| path.extension().is_some_and(|ext| ext == "wal");
        let files = self.fs.files().into_iter().filter(is_segment);
        let number = |path: &PathBuf| path.file_stem()?.to_str()?.parse().ok();
        files.map(|path| (number(&path).expect("a number"), path)).collect()
    }

    /// The store opens, takes a command, and still has everything after the next power cut.
    pub fn goes_on(&self, context: &dyn Fn() -> String) {
        let fail = |error: String| -> ! { panic!("does not go on: {error}\n{}", context()) };
        let store = self.open().unwrap_or_else(|error| fail(error.to_string()));
        let key = SharePartitionKey::new("after", Uuid::from_u128(2), 0).expect("valid");
        let command = Command::Initialize { key, state_epoch: 1, start_offset: 5 };
        let told = store.blocking().execute(command);
        told.unwrap_or_else(|error| fail(error.to_string()));
        let before = state_of(&store);
        let cut = self.power_cut(PageModel::UnsyncedLost);
        let store = cut.open().unwrap_or_else(|error| fail(error.to_string()));
        assert_eq!(state_of(&store), before, "{}", context());
    }

    /// Every file with its content, to show that nothing was touched.
    pub fn tree(&self) -> Vec<(PathBuf, Option<Vec<u8>>)> {
        let files = self.fs.files().into_iter();
        files.map(|path| (path.clone(), self.fs.content(&path))).collect()
    }

    /// Carries out the step with this number.
    pub fn step(&self, store: &ShareStore, number: usize, step: &Step) -> Result<(), StepError> {
        self.set_time_of(number);
        match step {
            Step::Checkpoint => Ok(store.blocking().checkpoint().map(drop)?),
            Step::Commands(commands) => {
                for answer in self.execute(store, commands) {
                    answer?;
                }
                Ok(())
            }
        }
    }

    /// Every step has its own time.
    pub fn set_time_of(&self, step: usize) {
        self.clock.set(time_of(step));
    }

    /// Executes commands so that they share a frame.
    pub fn execute(&self, store: &ShareStore, commands: &[Command]) -> Vec<Told> {
        if let [command] = commands {
            return vec![store.blocking().execute(command.clone())];
        }
        // Held up at the clock, the store finds all of them behind what it is held up with.
        self.clock.close();
        let any = SharePartitionKey::new("none", Uuid::from_u128(1), 0).expect("valid");
        let mut held = boxed(store.execute(Command::Summary { key: any }));
        let is_held = poll(&mut held).is_none();
        if is_held {
            self.clock.until_the_store_waits();
        }
        let mut calls: Vec<_> =
            commands.iter().map(|command| boxed(store.execute(command.clone()))).collect();
        let early: Vec<_> = calls.iter_mut().map(poll).collect();
        self.clock.open();
        if is_held {
            drop(block_on(held));
        }
        let told = calls.into_iter().zip(early);
        let told: Vec<_> =
            told.map(|(call, early)| early.unwrap_or_else(|| block_on(call))).collect();
        let unknown = |told: &Told| matches!(told, Err(StoreError::OutcomeUnknown(_)));
        assert!(
            !told.iter().any(unknown) || !told.iter().any(Result::is_ok),
            "one frame, one fate: {told:?}"
        );
        told
    }
}

/// What a caller was told.
pub type Told = Result<Answer, StoreError>;

/// When a step happens, in ms since the Unix epoch.
pub fn time_of(step: usize) -> i64 {
    1_000 + i64::try_from(step).expect("small")
}

/// Why a step was not answered with success.
#[derive(Debug)]
pub enum StepError {
    Store(StoreError),
    Checkpoint(CheckpointError),
}

impl StepError {
    /// Whether nothing can succeed any more.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Store(error) => {
                matches!(error, StoreError::OutcomeUnknown(_) | StoreError::Poisoned(_))
            }
            Self::Checkpoint(error) => matches!(error, CheckpointError::Poisoned(_)),
        }
    }

    /// Whether the step may have happened all the same.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Store(StoreError::OutcomeUnknown(_)))
    }
}

impl std::fmt::Display for StepError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Checkpoint(error) => error.fmt(f),
        }
    }
}

impl From<StoreError> for StepError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<CheckpointError> for StepError {
    fn from(error: CheckpointError) -> Self {
        Self::Checkpoint(error)
    }
}

type Call<'a> = Pin<Box<dyn Future<Output = Told> + 'a>>;

fn boxed<'a>(call: impl Future<Output = Told> + 'a) -> Call<'a> {
    Box::pin(call)
}

/// Submits a call; answers what it was told at once, if anything.
fn poll(call: &mut Call<'_>) -> Option<Told> {
    match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        std::task::Poll::Ready(answer) => Some(answer),
        std::task::Poll::Pending => None,
    }
}

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on(mut call: Call<'_>) -> Told {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        match call.as_mut().poll(&mut Context::from_waker(&waker)) {
            std::task::Poll::Ready(answer) => return answer,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}

/// Every row of a store.
pub fn state_of(store: &ShareStore) -> State {
    const PAGE: usize = 1_000;
    let (store, mut state) = (store.blocking(), State::default());
    let page = store.list(None, None, PAGE).expect("list");
    assert!(page.next.is_none(), "more rows than the workload has");
    state.partitions.extend(page.partitions);
    let (producers, next) = store.producers(None, PAGE).expect("producers");
    assert!(next.is_none(), "more producers than the workload has");
    state.producers.extend(producers);
    state
}
