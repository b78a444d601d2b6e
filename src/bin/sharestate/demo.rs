//! `demo`: a child process drives a store and is killed; the parent opens what is left and compares
//! it with its own record.

mod child;
mod oracle;
mod report;
mod rng;
mod shadow;
mod tear;
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
use oracle::{Found, Oracle};
use report::{Round, Totals};
use rng::Rng;

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
        let when = if self.rng.chance(15) {
            // Most likely while it recovers the store.
            When::After(Duration::from_micros(self.rng.below(60_000)))
        } else {
            let acks = 20 + self.rng.below(1_500);
            When::Acknowledged(acks, Duration::from_micros(self.rng.below(3_000)))
        };
        let before = self.oracle.acknowledged;
        let started = Instant::now();
        let mut child = Child::start(self.args, &self.dir, self.seed, round.round)?;
        child.listen_until_killed(when, &mut self.oracle)?;
        round.worked_ms = millis(started.elapsed());
        round.acknowledged = self.oracle.acknowledged - before;
        Ok(())
    }

    fn tear(&mut self) -> Result<u64, Failure> {
        match Reader::open(&self.dir) {
            Ok(reader) => Ok(tear::tear(&self.dir, reader.identity().uuid, &mut self.rng)?),
            Err(OpenError::NotAStore { .. }) => Ok(0), // killed before it was one
            Err(error) => Err(error.into()),
        }
    }

    /// What a bystander sees; nothing when the child was killed before there was a store.
    fn look(&self) -> Result<Option<Found>, Failure> {
        let mut reader = match Reader::open(&self.dir) {
            Ok(reader) => reader,
            Err(OpenError::NotAStore { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut found = Found::new();
        reader.for_each_partition::<Failure>(&mut |key, row| {
            found.insert(self.slot_of(key), worker::row_of(row));
            Ok(())
        })?;
        Ok(Some(found))
    }

    /// Opens the store, which repairs it, and compares.
    fn recover(&mut self, round: &mut Round, seen: Option<&Found>) -> Result<(), Failure> {
        let started = Instant::now();
        let store = ShareStore::open(&self.dir, &worker::options())?;
        round.recovery_ms = millis(started.elapsed());
        round.recovered(store.recovery());
        if let (Some(tamper), true) = (self.args.tamper, round.round == self.args.rounds) {
            tamper_with(&store, tamper)?;
        }
        let found = self.list(&store)?;
        store.blocking().close()?;
        let outcome = self.oracle.compare(&found);
        round.compared(&outcome, std::mem::take(&mut self.oracle.wrong_answers));
        let is_same = seen.map_or(found.is_empty(), |seen| *seen == found);
        if !is_same && self.args.tamper.is_none() {
            round.invented += 1;
            let note = "a read-only view and the recovered store differ".to_owned();
            self.oracle.notes.push(format!("round {}: {note}", round.round));
        }
        Ok(())
    }

    fn list(&self, store: &ShareStore) -> Result<Found, Failure> {
        const PAGE: usize = 256;
        let store = store.blocking();
        let mut found = Found::new();
        let mut after = None;
        loop {
            let page = store.list(None, after.as_ref(), PAGE)?;
            for (key, row) in &page.partitions {
                found.insert(self.slot_of(key), worker::row_of(row));
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(found),
            }
        }
    }

    /// The number of a share partition; one of nobody's gets a number above all others.
    fn slot_of(&self, key: &sharestate::SharePartitionKey) -> usize {
        let slots = self.args.partitions as usize;
        (0..slots).find(|slot| wire::key_of(*slot) == *key).unwrap_or(slots)
    }

    /// After all rounds the store must be whole.
    fn last_check(&mut self, totals: &mut Totals) -> Result<(), Failure> {
        if self.args.rounds == 0 {
            return Ok(());
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

/// Changes the store behind the oracle's back.
fn tamper_with(store: &ShareStore, tamper: Tamper) -> Result<(), Failure> {
    let store = store.blocking();
    let page = store.list(None, None, 256)?;
    let victim = page.partitions.into_iter().find(|(_, row)| !row.batches.is_empty());
    let Some((key, row)) = victim else {
        return Err(Failure::cannot_run("there is nothing to tamper with yet"));
    };
    let mut row = sharestate::Partition::clone(&row);
    match tamper {
        Tamper::Lost => drop(row.batches.pop()),
        Tamper::Invented => {
            let first_offset = 1_000_000;
            row.batches.push(sharestate::StateBatch {
                first_offset,
                last_offset: first_offset,
                delivery_state: sharestate::DeliveryState::ACKNOWLEDGED,
                delivery_count: 1,
            });
        }
    }
    store.import(&key, row, true)?;
    Ok(())
}

/// Bytes that recovery cut from the log.
fn torn_bytes(verdict: &TailVerdict) -> u64 {
    match verdict {
        TailVerdict::Torn(torn) => torn.bytes,
        _ => 0,
    }
}
