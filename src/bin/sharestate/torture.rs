//! `torture`: many rounds of killing, stopping and failing, until something goes wrong or all is
//! done.

mod report;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use sharestate::inspect::Progress;

use crate::args;
use crate::crash::child::When;
use crate::crash::faults::{Faults, Site};
use crate::crash::rng::Rng;
use crate::crash::{Campaign, NOTES, Pause, Place, Plan, Round, drawn_seed, millis};
use crate::failure::{DAMAGE, Failure};
use crate::output::error_line;
use crate::progress::Bar;

use report::Totals;

/// Operations of the script in which single calls fail.
const SCRIPT_OPS: u64 = 60;

/// Share partitions of that script.
const SCRIPT_PARTITIONS: u32 = 6;

pub fn run(args: &args::Torture) -> Result<ExitCode, Failure> {
    let (shortest, longest) = (args.shortest, args.longest);
    if shortest > longest {
        return Err(Failure::cannot_run("--shortest is longer than --longest"));
    }
    let seed = args.seed.unwrap_or_else(drawn_seed);
    let place = Place::new(args.dir.as_deref(), "torture")?;
    let mut torture = Torture::new(args, &place, seed)?;
    let started = Instant::now();
    let ended = match args.sweep {
        Some(most) => torture.sweep(most),
        None => torture.kill_again_and_again(),
    };
    let mut totals = torture.totals;
    totals.elapsed_ms = millis(started.elapsed());
    // That a store cannot be opened any more is a violation, too.
    totals.failure = ended.err().map(|failure| failure.to_string());
    let is_fine = totals.is_fine();
    if !is_fine {
        let faults = totals.plan.as_ref().map_or(String::new(), |plan| format!(", faults {plan}"));
        error_line(&format!("violation in round {} of seed {seed}{faults}", totals.rounds))?;
        for note in torture.campaign.notes().iter().take(NOTES).chain(&totals.failure) {
            error_line(note)?;
        }
    }
    totals.dir = place.keep(!is_fine)?;
    report::totals(&totals, args.json)?;
    Ok(if is_fine { ExitCode::SUCCESS } else { ExitCode::from(DAMAGE) })
}

struct Torture<'a> {
    args: &'a args::Torture,
    seed: u64,
    faults: Option<Faults>,
    campaign: Campaign,
    totals: Totals,
}

impl<'a> Torture<'a> {
    fn new(args: &'a args::Torture, place: &Place, seed: u64) -> Result<Self, Failure> {
        let base = place.path();
        std::fs::create_dir_all(base)
            .and_then(|()| base.canonicalize())
            .map_err(|error| Failure::cannot_run(format!("{}: {error}", base.display())))
            .and_then(|base| Self::in_dir(args, base, seed))
    }

    fn in_dir(args: &'a args::Torture, base: PathBuf, seed: u64) -> Result<Self, Failure> {
        let store = base.join("store");
        let faults = match args.faults {
            true => Some(Faults::new(args.shim.as_deref(), &store, base.join("faults.log"))?),
            false => None,
        };
        let (writers, partitions) = match args.sweep {
            // One thread, so that the same call is the same place in every run.
            Some(_) => (1, SCRIPT_PARTITIONS),
            None => (args.writers, args.partitions),
        };
        let mut campaign = Campaign::new(store, seed, writers, partitions);
        campaign.evidence = Some(base.join("before"));
        let totals = Totals::new(seed, writers, partitions);
        Ok(Self { args, seed, faults, campaign, totals })
    }

    fn kill_again_and_again(&mut self) -> Result<(), Failure> {
        let bar = Bar::new();
        for number in 1..=self.args.rounds {
            let (done, total) = (u64::from(number) - 1, self.args.rounds.into());
            bar.show(Progress { stage: "killing and recovering", done, total });
            let plan = self.plan(number);
            if !self.round(number, &plan)? {
                return Ok(());
            }
        }
        drop(bar);
        self.last_check()
    }

    /// Answers whether all is well.
    fn round(&mut self, number: u32, plan: &Plan) -> Result<bool, Failure> {
        self.totals.rounds = number;
        self.totals.plan = plan.faults.as_ref().map(|faults| faults.plan.clone());
        let round: Round = self.campaign.round(number, plan)?;
        self.totals.add(&round);
        Ok(round.is_fine())
    }

    fn last_check(&mut self) -> Result<(), Failure> {
        let (wrong, verdict) = self.campaign.last_check()?;
        self.totals.wrong += wrong;
        self.totals.verdict = verdict;
        Ok(())
    }

    /// Draws what happens in a round.
    fn plan(&self, number: u32) -> Plan {
        let mut rng = Rng::new(self.seed, &[number.into()]);
        let span = u64::try_from(self.args.longest - self.args.shortest).unwrap_or(0);
        let shortest = u64::try_from(self.args.shortest).unwrap_or(0);
        let until = Duration::from_millis(shortest + rng.below(span + 1));
        let pause = rng.chance(20).then(|| Pause {
            after: Duration::from_micros(rng.below(100_000)),
            is_last: rng.chance(50),
        });
        let plan = Plan {
            tear: rng.chance(30),
            expiring: rng.chance(10),
            lose_checkpoint: rng.chance(20),
            leave_open: if rng.chance(50) { 40 } else { 0 },
            tamper: self.args.tamper.filter(|_| number == self.args.rounds),
            ..Plan::kill(When::After(until))
        };
        match &self.faults {
            Some(faults) if rng.chance(67) => Plan { faults: Some(faults.drawn(&mut rng)), ..plan },
            _ => Plan { pause, ..plan },
        }
    }

    /// Lets every single call of a short script fail, or as many as are wanted.
    fn sweep(&mut self, most: u32) -> Result<(), Failure> {
        let Some(faults) = self.faults.clone() else {
            return Err(Failure::cannot_run("--sweep needs --faults"));
        };
        let mut cases: Vec<(bool, Site)> = Vec::new();
        for is_new in [true, false] {
            // Without a fault, to count the calls.
            self.script(&faults, is_new)?;
            cases.extend(faults.sites()?.into_iter().map(|site| (is_new, site)));
        }
        self.totals.sites = cases.len() as u64;
        let (count, most) = (cases.len(), (most as usize).min(cases.len()));
        let bar = Bar::new();
        for index in 0..most {
            bar.show(Progress { stage: "failing", done: index as u64, total: most as u64 });
            let (is_new, site) = &cases[index * count / most];
            if !self.script(&faults.at(site), *is_new)? {
                return Ok(());
            }
            self.totals.cases += 1;
        }
        drop(bar);
        self.last_check()
    }

    /// The script on a new store, or on the one that there is.
    fn script(&mut self, faults: &Faults, is_new: bool) -> Result<bool, Failure> {
        if is_new {
            self.campaign.start_anew()?;
        }
        let plan =
            Plan { ops: Some(SCRIPT_OPS), faults: Some(faults.clone()), ..Plan::kill(When::Ended) };
        self.round(self.totals.rounds + 1, &plan)
    }
}
