//! Random histories of two producers against the oracle that works offset by offset: every answer,
//! the whole state after every step, and what a restart finds. 2,000 of them, or as many as
//! `SHARESTATE_RANDOM_SEQUENCES` says, in memory; some through a real store, really reopened.
//!
//! A failure names its seed and the shortest prefix that fails; `SHARESTATE_RANDOM_SEED` begins
//! with that seed.
#![cfg(feature = "testing")]

#[path = "txn_support/history.rs"]
mod history;
#[path = "support/oracle.rs"]
mod oracle;
#[cfg(feature = "rocksdb")]
#[path = "txn_support/real.rs"]
mod real;
#[cfg(feature = "rocksdb")]
mod support;
#[path = "txn_support/twin.rs"]
mod twin;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use history::{History, Step};
use oracle::{Refused, Told};
use sharestate::model::Options;
use twin::Twin;

const LENGTH: usize = 200;

/// Producers are forgotten when they were idle for about forty steps.
const OPTIONS: Options = Options { producer_id_expiration_ms: 400 };

/// How often each kind of step and answer was seen: histories that never see one prove nothing of
/// it.
#[derive(Debug, Default)]
struct Tally(BTreeMap<String, u64>);

impl Tally {
    fn count(&mut self, kind: impl Into<String>) {
        *self.0.entry(kind.into()).or_default() += 1;
    }

    fn answer(&mut self, answer: &Result<Told, Refused>) {
        let kind = match answer {
            Ok(Told::Staged(staged)) if staged.is_empty() => "staged again",
            Ok(Told::Staged(_)) => "staged",
            Ok(Told::Resolved { flags: (true, _), .. }) => "contradicting",
            Ok(Told::Resolved { resolved, .. }) if resolved.is_empty() => "resolving nothing",
            Ok(Told::Resolved { flags: (_, true), .. }) => "orphaning",
            Ok(Told::Resolved { .. }) => "resolving",
            Ok(Told::Done { dropped }) if !dropped.is_empty() => "dropping",
            Ok(Told::Expired(ids)) if !ids.is_empty() => "expiring",
            Ok(_) => "plain",
            Err(Some(code)) => return self.count(format!("refused {code}")),
            Err(None) => "nothing pending",
        };
        self.count(kind);
    }
}

struct Failure {
    /// The steps up to the one that went wrong.
    steps: Vec<Step>,
    difference: String,
}

/// Runs the first `length` steps of a history in memory.
fn run(seed: u64, length: usize, tally: &mut Tally) -> Result<(), Failure> {
    let (mut history, mut twin) = (History::new(seed), Twin::new(OPTIONS));
    let mut steps = Vec::new();
    while steps.len() < length {
        let step = history.next(&twin.oracle);
        twin.now = history.now;
        steps.push(step.clone());
        let agreed = match step {
            Step::Command(command) => twin.execute(&command).map(|answer| tally.answer(&answer)),
            Step::Restart => twin.restart().map(|()| tally.count("restarts")),
            Step::Checkpoint => twin.checkpoint().map(|()| tally.count("checkpoints")),
        };
        if let Err(difference) = agreed {
            return Err(Failure { steps, difference });
        }
    }
    twin.check_recovery().map_err(|difference| Failure { steps, difference })
}

/// Panics with the shortest prefix of the history that fails.
fn report(seed: u64, failed: &Failure) -> ! {
    let shortest =
        (1..failed.steps.len()).find_map(|length| run(seed, length, &mut Tally::default()).err());
    let Failure { steps, difference } = shortest.as_ref().unwrap_or(failed);
    let listed: Vec<_> = steps.iter().map(|step| format!("{step:?}\n")).collect();
    panic!("seed {seed} fails after {} steps:\n{}{difference}", steps.len(), listed.concat());
}

fn from_env(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect(name))
}

#[test]
fn random_histories_end_as_the_oracle_says() {
    let sequences = from_env("SHARESTATE_RANDOM_SEQUENCES", 2_000);
    let first = from_env("SHARESTATE_RANDOM_SEED", 0);
    let next = AtomicU64::new(first);
    let work = || {
        let mut tally = Tally::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + sequences {
                return tally;
            }
            run(seed, LENGTH, &mut tally).unwrap_or_else(|failed| report(seed, &failed));
        }
    };
    let mut tally = Tally::default();
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(2, usize::from);
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            for (kind, count) in thread.join().expect("every history agrees").0 {
                *tally.0.entry(kind).or_default() += count;
            }
        }
    });
    println!("random-sequences={sequences} steps={} {tally:?}", sequences * LENGTH as u64);
    if sequences >= 100 {
        let kinds = ["restarts", "checkpoints"].into_iter().chain(ANSWERS);
        let missing: Vec<_> = kinds.filter(|kind| !tally.0.contains_key(*kind)).collect();
        assert!(missing.is_empty(), "never seen: {missing:?}");
    }
}

const ANSWERS: [&str; 17] = [
    "staged",
    "staged again",
    "resolving",
    "resolving nothing",
    "orphaning",
    "contradicting",
    "dropping",
    "expiring",
    "plain",
    "nothing pending",
    "refused 35",
    "refused 42",
    "refused 47",
    "refused 52",
    "refused 74",
    "refused 121",
    "refused 124",
];

/// Plays a history through a real store. Answers how often it was reopened and checkpointed.
#[cfg(feature = "rocksdb")]
fn play(seed: u64) -> (usize, usize) {
    let expiration = OPTIONS.producer_id_expiration_ms.unsigned_abs();
    let mut options = real::options(4 << 10);
    options.producer_id_expiration = std::time::Duration::from_millis(expiration);
    let mut real = real::Real::open(options);
    let (mut history, mut oracle) = (History::new(seed), oracle::Oracle::default());
    let mut checkpoints = 0;
    for number in 0..LENGTH {
        let step = history.next(&oracle);
        let at = || format!("seed {seed}, step {number}: {step:?}");
        match &step {
            Step::Command(command) => {
                real.clock.set(history.now);
                let expected = oracle.execute(command, history.now, &OPTIONS);
                let answer = real.blocking().execute(sharestate::Command::clone(command));
                let answer = answer.map_err(|error| match error {
                    sharestate::StoreError::Rejected(rejection) => rejection,
                    error => panic!("{error}: {}", at()),
                });
                assert_eq!(oracle::told(answer), expected, "{}", at());
            }
            Step::Checkpoint => {
                real.checkpoint();
                checkpoints += 1;
            }
            Step::Restart => {
                let before = real.state();
                assert_eq!(oracle::view(&before), oracle.view(), "{}", at());
                if real.reopened.is_multiple_of(2) {
                    real.kill_and_open();
                } else {
                    real.close_and_open();
                }
                assert_eq!(real.state(), before, "{}", at());
            }
        }
    }
    let before = real.state();
    assert_eq!(oracle::view(&before), oracle.view(), "seed {seed}");
    assert_eq!(before.check_invariants(), Ok(()), "seed {seed}");
    real.kill_and_open();
    assert_eq!(real.state(), before, "seed {seed}");
    (real.reopened, checkpoints)
}

/// The same through threads, files and RocksDB.
#[cfg(feature = "rocksdb")]
#[test]
fn random_histories_survive_every_reopening_of_a_real_store() {
    const SEQUENCES: u64 = 20;
    const THREADS: u64 = 4; // most of the time goes into waiting for the disk
    let (mut reopened, mut checkpoints) = (0, 0);
    std::thread::scope(|scope| {
        let seeds = |thread| (0..SEQUENCES).filter(move |seed| seed % THREADS == thread);
        let play = |thread| move || seeds(thread).map(play).collect::<Vec<_>>();
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(play(thread))).collect();
        for (opened, folded) in
            threads.into_iter().flat_map(|thread| thread.join().expect("agrees"))
        {
            reopened += opened;
            checkpoints += folded;
        }
    });
    println!("real-sequences={SEQUENCES} reopened={reopened} checkpoints={checkpoints}");
    assert!(reopened > 60 && checkpoints > 60);
}
