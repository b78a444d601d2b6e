//! `resolve`

use std::io::{self, BufRead as _, IsTerminal as _, Write};
use std::process::ExitCode;

use sharestate::inspect::json::ResolvedJson;
use sharestate::inspect::{OneLine, outcome_name};
use sharestate::{
    Clock as _, Create, Options, Outcome, PendingFilter, Resolved, ShareStore, SystemClock,
};

use crate::args;
use crate::failure::Failure;
use crate::output::{counted, json_line, stdout};
use crate::pending;

pub fn run(args: &args::Resolve) -> Result<ExitCode, Failure> {
    let outcome = if args.commit { Outcome::Commit } else { Outcome::Abort };
    if !args.yes && !io::stdin().is_terminal() {
        let text = "the standard input is no terminal on which to ask for confirmation: look with \
                    `pending`, then say --yes";
        return Err(Failure::cannot_run(text));
    }
    let mut options = Options::default();
    options.create = Create::Never;
    let store = ShareStore::open(&args.dir, &options)?.blocking();
    let answer = resolve(args, outcome, &store);
    let closed = store.close();
    let resolved = answer?;
    // Before an error of the closing: it is done.
    let mut out = stdout();
    if args.json {
        json_line(&mut out, &ResolvedJson::new(args.producer_id, args.epoch, outcome, &resolved))?;
    } else {
        print(&mut out, args, &resolved)?;
    }
    out.flush()?;
    closed?;
    Ok(ExitCode::SUCCESS)
}

fn resolve(
    args: &args::Resolve,
    outcome: Outcome,
    store: &sharestate::blocking::BlockingShareStore,
) -> Result<Resolved, Failure> {
    let mut filter = PendingFilter::default();
    filter.producer_id = Some(args.producer_id);
    let mut entries = store.pending(filter)?;
    entries.retain(|entry| entry.producer_epoch == args.epoch);
    if !entries.is_empty() && !args.json {
        let mut out = stdout();
        pending::table(&mut out, &entries, SystemClock.now_ms())?;
        out.flush()?;
    }
    if !entries.is_empty() && !args.yes {
        let mut err = io::stderr();
        if args.json {
            pending::table(&mut err, &entries, SystemClock.now_ms())?;
        }
        let (id, epoch) = (args.producer_id, args.epoch);
        let verb = outcome_name(outcome);
        write!(err, "{verb} all of this, for producer {id} at epoch {epoch}? Type yes: ")?;
        err.flush()?;
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line)?;
        if line.trim() != "yes" {
            return Err(Failure::cannot_run("not confirmed, nothing was resolved"));
        }
    }
    // Refused when nothing is pending.
    Ok(store.force_resolve(args.producer_id, args.epoch, outcome)?)
}

fn print(out: &mut impl Write, args: &args::Resolve, resolved: &Resolved) -> io::Result<()> {
    let mut offsets = 0_u64;
    for (key, ranges) in &resolved.partitions {
        let texts: Vec<_> = ranges.iter().map(|(first, last)| format!("{first}-{last}")).collect();
        let sizes = ranges.iter().map(|(first, last)| last.abs_diff(*first).saturating_add(1));
        offsets = sizes.fold(offsets, u64::saturating_add);
        writeln!(out, "resolved {}: {}", OneLine(key), texts.join(" "))?;
    }
    let done = if args.commit { "committed" } else { "aborted" };
    writeln!(
        out,
        "{} of producer {} epoch {} in {} {done} by operator",
        counted(offsets, "prepared ack"),
        args.producer_id,
        args.epoch,
        counted(resolved.partitions.len() as u64, "share partition"),
    )?;
    if resolved.orphans {
        let id = args.producer_id;
        writeln!(out, "an older epoch of the producer stays open: see pending --producer-id {id}")?;
    }
    Ok(())
}
