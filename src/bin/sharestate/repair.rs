//! `repair`

mod report;

use std::io::{self, BufRead as _, IsTerminal as _, Write};
use std::process::ExitCode;

use sharestate::inspect::{Finding, verify};
use sharestate::{Condition, Repair, Salvaged};

use crate::args;
use crate::failure::{DAMAGE, Failure};
use crate::output::{json_line, stdout};
use crate::progress::Bar;
use report::Report;

/// What has to be typed before a salvage.
const WORD: &str = "salvage";

pub fn run(args: &args::Repair) -> Result<ExitCode, Failure> {
    let mut repair = Repair::plan(&args.dir)?;
    let mut healed = Vec::new();
    if matches!(repair.condition(), Condition::Whole | Condition::Torn(_)) {
        // RocksDB reads over damage in its own log and manifest without a word: it shows an older
        // state then, from which the store's log goes on. Rows that contradict each other read.
        let found = findings(args)?;
        let snapshot = args.dir.join("snapshot");
        let (files, others): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|finding| finding.file.parent() == Some(&*snapshot));
        match others.first() {
            Some(finding) => repair.distrust_snapshot(finding.to_string())?,
            None => healed = files,
        }
    }
    let report = Report::new(&repair, &healed);
    if args.salvage && report.needs_salvage() {
        return salvage(args, repair, report, !healed.is_empty());
    }
    if args.dry_run || report.needs_salvage() {
        print(args, &report)?;
        return Ok(if report.needs_salvage() { ExitCode::from(DAMAGE) } else { ExitCode::SUCCESS });
    }
    let done = repair.cut()?;
    print(args, &report.repaired(done.as_ref()))?;
    Ok(ExitCode::SUCCESS)
}

fn findings(args: &args::Repair) -> Result<Vec<Finding>, Failure> {
    let bar = Bar::new();
    Ok(verify(&args.dir, &mut |progress| bar.show(progress))?.findings)
}

fn salvage(
    args: &args::Repair,
    repair: Repair<'_>,
    report: Report,
    force: bool,
) -> Result<ExitCode, Failure> {
    let is_hopeless = report.is_hopeless();
    if args.dry_run || is_hopeless {
        print(args, &report)?;
        return Ok(if is_hopeless { ExitCode::from(DAMAGE) } else { ExitCode::SUCCESS });
    }
    if !args.yes_lose_data {
        confirm(&report)?;
    }
    match repair.salvage(force) {
        Ok(Salvaged::Kept { evidence, next_lsn, incarnation }) => {
            print(args, &report.salvaged(&evidence, next_lsn, incarnation))?;
            Ok(ExitCode::SUCCESS)
        }
        Ok(Salvaged::NotNeeded(done)) => {
            print(args, &report.repaired(done.as_ref()))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => Err(error.into()),
    }
}

/// Asks on the terminal.
fn confirm(report: &Report) -> Result<(), Failure> {
    if !io::stdin().is_terminal() {
        let text = "the standard input is no terminal on which to ask for confirmation: look with \
                    --dry-run, then say --yes-lose-data";
        return Err(Failure::cannot_run(text));
    }
    let mut err = io::stderr();
    report.print(&mut err)?;
    write!(err, "Go on from there? Type {WORD}: ")?;
    err.flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    if line.trim() != WORD {
        return Err(Failure::cannot_run("not confirmed, nothing was changed"));
    }
    Ok(())
}

fn print(args: &args::Repair, report: &Report) -> Result<(), Failure> {
    let mut out = stdout();
    if args.json {
        json_line(&mut out, report)?;
    } else {
        report.print(&mut out)?;
    }
    out.flush()?;
    Ok(())
}
