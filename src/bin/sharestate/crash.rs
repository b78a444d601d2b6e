//! A child process drives a store and is killed; the parent opens what is left, compares it with
//! its own record, and ends the transactions that the kill left open.
//!
//! Owns one such round, which `demo` and `torture` repeat in their own ways.

pub mod child;
mod evidence;
mod facts;
pub mod faults;
mod ledger;
mod oracle;
mod place;
pub mod rng;
mod round;
mod settle;
mod shadow;
mod tamper;
mod tear;
mod transactor;
mod view;
mod wire;
mod worker;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use sharestate::inspect::{Reader, Verdict, verify};
use sharestate::{OpenError, ShareStore};

use crate::args::{self, Tamper};
use crate::failure::Failure;

use child::{Child, Ending, When};
use faults::Faults;
use ledger::Ledger;
use oracle::Oracle;
use rng::Rng;
use settle::Settlement;

pub use place::Place;
pub use round::Round;

/// How many notes on differences are printed.
pub const NOTES: usize = 20;

/// So much later it is, for the store, after a round in which producers expire: more than the day
/// after which an idle producer is forgotten.
const DAYS_PER_ERA: u32 = 2;

/// The child's part.
pub fn work(args: &args::Worker) -> Result<ExitCode, Failure> {
    worker::run(args)?;
    Ok(ExitCode::SUCCESS)
}

/// Not cryptic, only different from run to run.
pub fn drawn_seed() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(std::process::id()) >> 32
}

/// What happens in a round.
#[derive(Debug)]
pub struct Plan {
    /// When the child is killed.
    pub until: When,
    /// The child ends by itself after so many operations of each consumer.
    pub ops: Option<u64>,
    /// Half a frame is left behind the log's end, as by a power cut.
    pub tear: bool,
    /// RocksDB loses its newest batch, from which the log must heal it.
    pub lose_checkpoint: bool,
    /// Idle producers expire while the child works, which then leaves transactions alone.
    pub expiring: bool,
    /// Percentage of open transactions that get no marker after the recovery.
    pub leave_open: u64,
    pub pause: Option<Pause>,
    pub faults: Option<Faults>,
    pub tamper: Option<Tamper>,
}

impl Plan {
    /// A round with nothing but a kill.
    pub fn kill(until: When) -> Self {
        Self {
            until,
            ops: None,
            tear: false,
            lose_checkpoint: false,
            expiring: false,
            leave_open: 0,
            pause: None,
            faults: None,
            tamper: None,
        }
    }
}

/// The child is stopped for a while, and somebody else tries to open the store.
#[derive(Debug)]
pub struct Pause {
    /// So long after its first acknowledgement.
    pub after: Duration,
    /// It is killed while it is stopped.
    pub is_last: bool,
}

/// A store, and the record of it.
pub struct Campaign {
    dir: PathBuf,
    seed: u64,
    consumers: u32,
    partitions: u32,
    days_ahead: u32,
    /// Where to copy what a kill has left, before the recovery changes it.
    pub evidence: Option<PathBuf>,
    oracle: Oracle,
}

impl Campaign {
    pub fn new(dir: PathBuf, seed: u64, consumers: u32, partitions: u32) -> Self {
        let oracle = Oracle::new(partitions as usize);
        Self { dir, seed, consumers, partitions, days_ahead: 0, evidence: None, oracle }
    }

    /// Differences found so far, in words.
    pub fn notes(&self) -> &[String] {
        &self.oracle.notes
    }

    /// The operations of the next rounds are on another store, which is made anew.
    pub fn start_anew(&mut self) -> Result<(), Failure> {
        evidence::remove(&self.dir)?;
        self.oracle = Oracle::new(self.partitions as usize);
        Ok(())
    }

    pub fn round(&mut self, number: u32, plan: &Plan) -> Result<Round, Failure> {
        let mut round = Round { round: number, ..Round::default() };
        if plan.expiring {
            self.days_ahead += DAYS_PER_ERA;
        }
        self.drive(&mut round, plan)?;
        let mut rng = Rng::new(self.seed, &[number.into(), u64::MAX - 1]);
        if plan.tear {
            round.torn_by_parent = self.tear(&mut rng)?;
        }
        if plan.lose_checkpoint {
            round.lost_checkpoints = u64::from(tear::lose_checkpoint(&self.dir)?);
        }
        if let Some(copy) = &self.evidence {
            evidence::copy(&self.dir, copy)?;
        }
        // First as a bystander, who repairs nothing; then as the next owner.
        let seen = self.look()?;
        self.recover(&mut round, plan, seen.as_ref())?;
        Ok(round)
    }

    /// Lets a child work and kills it.
    fn drive(&mut self, round: &mut Round, plan: &Plan) -> Result<(), Failure> {
        let worker = args::Worker {
            dir: self.dir.clone(),
            parent: std::process::id(),
            seed: self.seed,
            round: round.round,
            consumers: self.consumers,
            partitions: self.partitions,
            days_ahead: self.days_ahead,
            expiring: plan.expiring,
            failing: plan.faults.is_some(),
            ops: plan.ops,
        };
        let (before, staged) = (self.oracle.acknowledged, self.oracle.staged);
        let started = Instant::now();
        let mut child = Child::start(&worker, plan.faults.as_ref())?;
        let mut ending = Ending::Due;
        if let Some(pause) = &plan.pause {
            ending = child.listen(&When::Acknowledged(1, pause.after), &mut self.oracle)?;
            if let Ending::Due = ending {
                child.stop()?;
                self.try_to_open_it_twice(round)?;
                if pause.is_last {
                    ending = Ending::Killed;
                } else {
                    child.resume()?;
                }
            }
        }
        if let Ending::Due = ending {
            ending = child.listen(&plan.until, &mut self.oracle)?;
        }
        child.kill(&mut self.oracle)?;
        round.worked_ms = millis(started.elapsed());
        round.acknowledged = self.oracle.acknowledged - before;
        round.staged = self.oracle.staged - staged;
        if let Ending::ByItself(status) = ending {
            let may_end = plan.ops.is_some() || plan.faults.is_some();
            child::judge_ending(status, may_end)?;
        } else {
            round.kills = 1;
        }
        self.judge_faults(round, plan)
    }

    /// What the child said of failures fits what was injected.
    fn judge_faults(&mut self, round: &mut Round, plan: &Plan) -> Result<(), Failure> {
        let told = std::mem::take(&mut self.oracle.failures);
        let Some(faults) = &plan.faults else { return Ok(()) };
        round.faults = faults.injected()?;
        round.failed = told.failed;
        let is_poisoned = told.poisoned == Some(true);
        round.poisoned = u64::from(is_poisoned);
        round.unopened = u64::from(told.unopened.is_some());
        let mut blame = |text: String| {
            round.wrong += 1;
            self.oracle.notes.push(format!("{text} (faults: {})", faults.plan));
        };
        if let Some((class, error)) = &told.unopened
            && class != "Io"
        {
            blame(format!("a failing disk is no {class} error: {error}"));
        }
        if told.unknown > 0 && told.poisoned == Some(false) {
            blame("an outcome is unknown and the store was not poisoned".to_owned());
        }
        let did_fail = told.failed > 0 || is_poisoned || told.unopened.is_some();
        if did_fail && (round.faults == 0 || faults.are_harmless()) {
            blame(format!("nothing serious was injected, yet: {told:?}"));
        }
        Ok(())
    }

    /// While the child that holds the store is stopped, nobody else gets in or touches anything.
    fn try_to_open_it_twice(&mut self, round: &mut Round) -> Result<(), Failure> {
        round.pauses = 1;
        let before = evidence::digest(&self.dir)?;
        match ShareStore::open(&self.dir, &worker::options(self.days_ahead)) {
            Err(OpenError::Locked { .. }) => round.refused_openers = 1,
            Err(error) => {
                round.wrong += 1;
                self.oracle.notes.push(format!("a second opener was told: {error}"));
            }
            Ok(_) => {
                round.wrong += 1;
                self.oracle.notes.push("a second opener got in".to_owned());
            }
        }
        if evidence::digest(&self.dir)? != before {
            round.wrong += 1;
            self.oracle.notes.push("a second opener changed something".to_owned());
        }
        Ok(())
    }

    fn tear(&mut self, rng: &mut Rng) -> Result<u64, Failure> {
        match Reader::open(&self.dir) {
            Ok(reader) => Ok(tear::tear(&self.dir, reader.identity().uuid, rng)?),
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
    fn recover(
        &mut self,
        round: &mut Round,
        plan: &Plan,
        seen: Option<&Ledger>,
    ) -> Result<(), Failure> {
        let started = Instant::now();
        let store = ShareStore::open(&self.dir, &worker::options(self.days_ahead))?;
        round.recovery_ms = millis(started.elapsed());
        round.recovered(store.recovery());
        let store = store.blocking();
        if let Some(tamper) = plan.tamper {
            tamper::tamper_with(&store, tamper, &self.oracle)?;
        }
        let found = view::listed(&store)?;
        round.compared(&self.oracle.compare(&found, plan.expiring));
        let is_same = seen.map_or(found == Ledger::default(), |seen| *seen == found);
        if !is_same && plan.tamper.is_none() {
            round.invented += 1;
            self.oracle.notes.push("a read-only view and the recovered store differ".to_owned());
        }
        let mut settlement = Settlement {
            store: &store,
            dir: &self.dir,
            oracle: &mut self.oracle,
            // How much is drawn depends on what was open: not from the generator of the rounds.
            rng: Rng::new(self.seed, &[round.round.into(), u64::MAX]),
            coordinator: i32::try_from(round.round).unwrap_or(0),
            tamper: plan.tamper,
            leave_open: plan.leave_open,
        };
        round.settled(&settlement.run()?);
        round.wrong_answers = std::mem::take(&mut self.oracle.wrong_answers);
        store.close()?;
        Ok(())
    }

    /// After all rounds the store must be whole. Answers how many facts differ, and what `verify`
    /// says.
    pub fn last_check(&mut self) -> Result<(u64, &'static str), Failure> {
        let Some(seen) = self.look()? else { return Ok((0, "clean")) };
        let wrong = self.oracle.check(&seen);
        let report = verify(&self.dir, &mut |_| {})?;
        if report.verdict != Verdict::Clean {
            let findings = report.findings.iter().map(ToString::to_string);
            self.oracle.notes.extend(findings);
        }
        Ok((wrong, crate::verify::verdict_name(&report.verdict)))
    }
}

pub fn millis(elapsed: Duration) -> f64 {
    (elapsed.as_secs_f64() * 1e6).round() / 1e3
}
