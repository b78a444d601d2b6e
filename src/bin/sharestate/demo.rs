//! `demo`: a few rounds of killing and recovering, told in words.

mod report;

use std::process::ExitCode;
use std::time::Duration;

use sharestate::inspect::Progress;

use crate::args;
use crate::crash::child::When;
use crate::crash::rng::Rng;
use crate::crash::{Campaign, NOTES, Place, Plan, drawn_seed};
use crate::failure::{DAMAGE, Failure};
use crate::output::error_line;
use crate::progress::Bar;

use report::Totals;

pub fn run(args: &args::Demo) -> Result<ExitCode, Failure> {
    let seed = args.seed.unwrap_or_else(drawn_seed);
    let place = Place::new(args.dir.as_deref(), "demo")?;
    let mut dir = place.path().to_owned();
    if place.is_temporary() {
        dir.push("store");
    }
    let mut totals = Totals::new(seed, args, &dir);
    if !args.json {
        report::introduce(&totals)?;
    }
    let mut campaign = Campaign::new(dir, seed, args.consumers, args.partitions);
    let mut rng = Rng::new(seed, &[]);
    let bar = Bar::new();
    for number in 1..=args.rounds {
        let (done, total) = (u64::from(number) - 1, args.rounds.into());
        bar.show(Progress { stage: "killing and recovering", done, total });
        let round = campaign.round(number, &plan(args, number, &mut rng))?;
        totals.add(&round);
        bar.aside(|| report::round(&round, args.json))?;
    }
    drop(bar);
    if args.rounds > 0 {
        let (wrong, verdict) = campaign.last_check()?;
        totals.wrong += wrong;
        totals.verdict = verdict;
    }
    let is_fine = totals.is_fine();
    for note in campaign.notes().iter().take(NOTES) {
        error_line(note)?;
    }
    let is_temporary = place.is_temporary();
    totals.kept =
        place.keep(!is_fine)?.map(|dir| if is_temporary { dir.join("store") } else { dir });
    report::totals(&totals, args.json)?;
    Ok(if is_fine { ExitCode::SUCCESS } else { ExitCode::from(DAMAGE) })
}

fn plan(args: &args::Demo, number: u32, rng: &mut Rng) -> Plan {
    // Only in the last round.
    let tamper = args.tamper.filter(|_| number == args.rounds);
    let is_early = rng.chance(15) && tamper.is_none();
    let until = if is_early {
        // Most likely while it recovers the store.
        When::After(Duration::from_micros(rng.below(60_000)))
    } else {
        let acks = 20 + rng.below(1_500);
        When::Acknowledged(acks, Duration::from_micros(rng.below(3_000)))
    };
    Plan { tear: rng.chance(40), tamper, ..Plan::kill(until) }
}
