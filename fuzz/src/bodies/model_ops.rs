//! Sequences of commands, restarts and checkpoints against the independent oracle. The first byte
//! chooses: bytes that steer a sensible history, or any commands at all; in memory beside the
//! oracle (`Twin`), or through a whole store on a simulated disk.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use sharestate::fsio::sim::{PageModel, SimFs};
use sharestate::model::{Command, Options};
use sharestate::snapshot::MemoryRows;
use sharestate::{Clock, ShareStore, StoreError};

use super::draw::Draw;
use super::segment_dir::state_of;
use crate::history::{History, Step};
use crate::oracle::{self, Oracle};
use crate::twin::Twin;

const STEPS_MAX: usize = 120;
/// Producers are forgotten when they were idle for about forty steps.
const OPTIONS: Options = Options { producer_id_expiration_ms: 400 };

pub fn run(input: &[u8]) {
    let Some((mode, bytes)) = input.split_first() else { return };
    let mut steps = if mode & 1 == 0 {
        Steps::History(Box::new(History::from_bytes(bytes)))
    } else {
        Steps::Wild(Draw::new(bytes), 1_000)
    };
    if mode & 0b1110 == 0b1110 { in_store(&mut steps) } else { in_memory(&mut steps) }
}

enum Steps<'a> {
    History(Box<History>),
    Wild(Draw<'a>, i64),
}

impl Steps<'_> {
    /// The next step and its time.
    fn next(&mut self, oracle: &Oracle) -> Option<(Step, i64)> {
        match self {
            Self::History(history) if history.is_over() => None,
            Self::History(history) => {
                let step = history.next(oracle);
                Some((step, history.now))
            }
            Self::Wild(draw, _) if draw.is_over() => None,
            Self::Wild(draw, now) => {
                *now += i64::from(draw.below(60).ok()?);
                let step = match draw.below(16).ok()? {
                    0 => Step::Restart,
                    1 => Step::Checkpoint,
                    _ => Step::Command(Box::new(draw.command().ok()?)),
                };
                Some((step, *now))
            }
        }
    }
}

fn in_memory(steps: &mut Steps<'_>) {
    let mut twin = Twin::new(OPTIONS);
    for _ in 0..STEPS_MAX {
        let Some((step, now)) = steps.next(&twin.oracle) else { break };
        twin.now = now;
        let agreed = match &step {
            Step::Command(command) => twin.execute(command).map(drop),
            Step::Restart => twin.restart(),
            Step::Checkpoint => twin.checkpoint(),
        };
        agreed.unwrap_or_else(|difference| panic!("{step:?}: {difference}"));
    }
    twin.check_recovery().unwrap_or_else(|difference| panic!("{difference}"));
}

#[derive(Debug)]
struct HandClock(AtomicI64);

impl Clock for HandClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

struct Running {
    fs: SimFs,
    rows: MemoryRows,
    options: sharestate::Options,
    clock: Arc<HandClock>,
    store: Option<ShareStore>,
}

impl Running {
    fn new() -> Self {
        let clock = Arc::new(HandClock(AtomicI64::new(0)));
        let mut options = sharestate::Options::default();
        options.segment_bytes = 4_096;
        options.checkpoint_log_bytes = Some(u64::MAX);
        options.background_segments = false;
        options.reserve_bytes = 0;
        let expiration = OPTIONS.producer_id_expiration_ms.unsigned_abs();
        options.producer_id_expiration = std::time::Duration::from_millis(expiration);
        options.clock = Arc::<HandClock>::clone(&clock);
        let (fs, rows) = (SimFs::new(0), MemoryRows::default());
        let mut running = Self { fs, rows, options, clock, store: None };
        running.open();
        running
    }

    fn open(&mut self) {
        let fs = Arc::new(self.fs.clone());
        let opened = ShareStore::open_with(fs, &self.rows, Path::new("/store"), &self.options);
        self.store = Some(opened.unwrap_or_else(|error| panic!("{error}")));
    }

    fn store(&self) -> &ShareStore {
        self.store.as_ref().expect("open")
    }

    /// A power cut: what was answered was synced, so nothing may be missing.
    fn power_cut(&mut self) {
        let image = (self.fs.power_cut(PageModel::UnsyncedLost), self.rows.fork());
        drop(self.store.take());
        (self.fs, self.rows) = image;
        self.open();
    }

    fn execute(&self, command: &Command) -> Result<oracle::Told, oracle::Refused> {
        let answer = self.store().blocking().execute(command.clone());
        oracle::told(answer.map_err(|error| match error {
            StoreError::Rejected(rejection) => rejection,
            error => panic!("{error}: {command:?}"),
        }))
    }
}

fn in_store(steps: &mut Steps<'_>) {
    let (mut running, mut oracle) = (Running::new(), Oracle::default());
    for _ in 0..STEPS_MAX {
        let Some((step, now)) = steps.next(&oracle) else { break };
        running.clock.0.store(now, Ordering::SeqCst);
        match &step {
            Step::Command(command) => {
                let expected = oracle.execute(command, now, &OPTIONS);
                assert_eq!(running.execute(command), expected, "{command:?}");
            }
            Step::Checkpoint => {
                running.store().blocking().checkpoint().expect("memory");
            }
            Step::Restart => {
                let before = state_of(running.store());
                running.power_cut();
                assert_eq!(state_of(running.store()), before, "after a power cut");
            }
        }
    }
    let before = state_of(running.store());
    assert_eq!(oracle::view(&before), oracle.view());
    assert_eq!(before.check_invariants(), Ok(()));
    running.power_cut();
    assert_eq!(state_of(running.store()), before, "after the last power cut");
}
