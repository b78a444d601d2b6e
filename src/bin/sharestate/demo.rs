//! `demo`: a child process drives a store and is killed; the parent opens what is left, compares it
//! with its own record, and ends the transactions that the kill left open.

mod child;
mod facts;
mod ledger;
mod oracle;
mod report;
mod rng;
mod settle;
mod shadow;
mod tamper;
mod tear;
mod transactor;
mod view;
mod wire;
mod worker;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use sharestate::inspect::{Progress, Reader, Verdict, verify};
use sharestate::log::TailVerdict;
use sharestate::{OpenError, ShareStore};

use crate::args::{self, Tamper};
use crate::failure::{DAMAGE, Failure};
use crate::output::error_line;
use crate::progress::Bar;

use child::{Child, When};
use ledger::Ledger;
use oracle::Oracle;
use report::{Round, Totals};
use rng::Rng;
use settle::Settlement;

pub use worker::run as run_worker;

/// How many notes on differences are printed.
const NOTES: usize = 20;

pub fn work(args: &args::Worker) -> Result<ExitCode, Failure> {
    run_worker(args)?;
    Ok(ExitCode::SUCCESS)
}

pub fn run(args: &args::Demo) -> Result<ExitCode, Failure> {
    let seed = args.seed.unwrap_or_else(drawn_seed);
    let place = Place::new(args.dir.as_deref())?;
    let mut demo = Demo {
        dir: place.path().to_owned(),
        args,
        seed,
        oracle: Oracle::new(args.partitions as usize),
        rng: Rng::new(seed, &[]),
    };
    let mut totals = Totals::new(seed, args, &demo.dir);
    if !args.json {
        report::introduce(&totals)?;
    }
    let bar = Bar::new();
    for number in 1..=args.rounds {
        let (done, total) = (u64::from(number) - 1, args.rounds.into());
        bar.show(Progress { stage: "killing and recovering", done, total });
        let round = demo.round(number)?;
        totals.add(&round);
        bar.aside(|| report::round(&round, args.json))?;
    }
    drop(bar);
    demo.last_check(&mut totals)?;
    let is_fine = totals.is_fine();
    for note in demo.oracle.notes.iter().take(NOTES) {
        error_line(note)?;
    }
    totals.kept = place.keep(!is_fine)?;
    report::totals(&totals, args.json)?;
    Ok(if is_fine { ExitCode::SUCCESS } else { ExitCode::from(DAMAGE) })
}

/// Not cryptic, only different from run to run.
fn drawn_seed() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(std::process::id()) >> 32
}

/// Where the store is made.
enum Place {
    Temporary(tempfile::TempDir),
    Kept(PathBuf),
}

impl Place {
    fn new(dir: Option<&Path>) -> Result<Self, Failure> {
        use sharestate::fsio::{Fs as _, RealFs};
        let Some(dir) = dir else {
            let made = tempfile::Builder::new().prefix("sharestate-demo-").tempdir();
            return made.map(Self::Temporary).map_err(|error| {
                Failure::cannot_run(format!("no temporary directory could be made: {error}"))
            });
        };
        if RealFs.exists(dir)? && !RealFs.list(dir)?.is_empty() {
            let text = format!("{} is not empty; the demo makes a store of its own", dir.display());
            return Err(Failure::cannot_run(text));
        }
        Ok(Self::Kept(dir.to_owned()))
    }

    fn path(&self) -> PathBuf {
        match self {
            Self::Temporary(dir) => dir.path().join("store"),
            Self::Kept(dir) => dir.clone(),
        }
    }

    /// Ends the use of the directory. Answers where it is if it is still there.
    fn keep(self, keep: bool) -> Result<Option<PathBuf>, Failure> {
        match self {
            Self::Temporary(dir) if keep => Ok(Some(dir.keep().join("store"))),
            Self::Temporary(dir) => match dir.close() {
                Ok(()) => Ok(None),
                Err(error) => Err(Failure::cannot_run(format!("leftovers remain: {error}"))),
            },
            Self::Kept(dir) => Ok(Some(dir)),
        }
    }
}

struct Demo<'a> {
    dir: PathBuf,
    args: &'a args::Demo,
    seed: u64,
    oracle: Oracle,
    rng: Rng,
}

impl Demo<'_> {
    fn round(&mut self, number: u32) -> Result<Round, Failure> {
        let mut round = Round { round: number, ..Round::default() };
        self.drive(&mut round)?;
        if self.rng.chance(40) {
            round.torn_by_demo = self.tear()?;
        }
        // First as a bystander, who repairs nothing; then as the next owner.
        let seen = self.look()?;
        self.recover(&mut round, seen.as_ref())?;
        Ok(round)
    }

    /// Lets a child work and kills it.
    fn drive(&mut self, round: &mut Round) -> Result<(), Failure> {
        let is_early = self.rng.chance(15) && self.tamper_in(round.round).is_none();
        let when = if is_early {
            // Most likely while it recovers the store.
            When::After(Duration::from_micros(self.rng.below(60_000)))
        } else {
            let acks = 20 + self.rng.below(1_500);
            When::Acknowledged(acks, Duration::from_micros(self.rng.below(3_000)))
        };
        let (before, staged) = (self.oracle.acknowledged, self.oracle.staged);
        let started = Instant::now();
        let mut child = Child::start(self.args, &self.dir, self.seed, round.round)?;
        child.listen_until_killed(when, &mut self.oracle)?;
        round.worked_ms = millis(started.elapsed());
        round.acknowledged = self.oracle.acknowledged - before;
        round.staged = self.oracle.staged - staged;
        Ok(())
    }

    /// What is tampered with in a round: only the last one.
    fn tamper_in(&self, round: u32) -> Option<Tamper> {
        self.args.tamper.filter(|_| round == self.args.rounds)
    }

    fn tear(&mut self) -> Result<u64, Failure> {
        match Reader::open(&self.dir) {
            Ok(reader) => Ok(tear::tear(&self.dir, reader.identity().uuid, &mut self.rng)?),
            Err(OpenError::NotAStore { .. }) => Ok(0), // killed before it was one
            Err(error) => Err(error.into()),
        }
    }

    /// What a bystander sees; nothing when the child was killed before there was a store.
    fn look(&self) -> Result<Option<Ledger>, Failure> {
        match Reader::open(&self.dir) {
            Ok(mut reader) => Ok(Some(view::seen(&mut reader)?)),
            Err(OpenError::NotAStore { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens the store, which repairs it, compares, and ends the transactions that are open.
    fn recover(&mut self, round: &mut Round, seen: Option<&Ledger>) -> Result<(), Failure> {
        let started = Instant::now();
        let store = ShareStore::open(&self.dir, &worker::options())?;
        round.recovery_ms = millis(started.elapsed());
        round.recovered(store.recovery());
        let store = store.blocking();
        let tamper = self.tamper_in(round.round);
        if let Some(tamper) = tamper {
            tamper::tamper_with(&store, tamper, &self.oracle)?;
        }
        let found = view::listed(&store)?;
        round.compared(&self.oracle.compare(&found));
        let is_same = seen.map_or(found == Ledger::default(), |seen| *seen == found);
        if !is_same && tamper.is_none() {
            round.invented += 1;
            let note = "a read-only view and the recovered store differ".to_owned();
            self.oracle.notes.push(format!("round {}: {note}", round.round));
        }
        let mut settlement = Settlement {
            store: &store,
            dir: &self.dir,
            oracle: &mut self.oracle,
            // How much is drawn depends on what was open: not from the generator of the rounds.
            rng: Rng::new(self.seed, &[round.round.into(), u64::MAX]),
            coordinator: i32::try_from(round.round).unwrap_or(0),
            tamper,
        };
        round.settled(&settlement.run()?);
        round.wrong_answers = std::mem::take(&mut self.oracle.wrong_answers);
        store.close()?;
        Ok(())
    }

    /// After all rounds the store must be whole.
    fn last_check(&mut self, totals: &mut Totals) -> Result<(), Failure> {
        if self.args.rounds == 0 {
            return Ok(());
        }
        if let Some(seen) = self.look()? {
            totals.wrong += self.oracle.check(&seen);
        }
        let report = verify(&self.dir, &mut |_| {})?;
        totals.verdict = crate::verify::verdict_name(&report.verdict);
        if report.verdict != Verdict::Clean {
            let findings = report.findings.iter().map(ToString::to_string);
            self.oracle.notes.extend(findings);
        }
        Ok(())
    }
}

fn millis(elapsed: Duration) -> f64 {
    (elapsed.as_secs_f64() * 1e6).round() / 1e3
}

/// Bytes that recovery cut from the log.
fn torn_bytes(verdict: &TailVerdict) -> u64 {
    match verdict {
        TailVerdict::Torn(torn) => torn.bytes,
        _ => 0,
    }
}
