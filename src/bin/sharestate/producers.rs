//! `producers`

use std::io::Write as _;
use std::process::ExitCode;

use sharestate::inspect::json::ProducerJson;
use sharestate::inspect::{Reader, outcome_name};
use sharestate::{Clock as _, Producer, SystemClock};

use crate::args;
use crate::failure::Failure;
use crate::output::{Table, counted, duration, error_line, json_line, or_dash, stdout};

/// Producers read at once, which line up with each other.
const PAGE: usize = 1_024;

pub fn run(args: &args::Dir) -> Result<ExitCode, Failure> {
    let mut reader = Reader::open(&args.dir)?;
    if let Some(note) = reader.tail_note() {
        error_line(&note.to_string())?;
    }
    let now_ms = SystemClock.now_ms();
    let mut out = stdout();
    let (mut count, mut open, mut after) = (0, 0, None);
    loop {
        let (page, next) = reader.producers(after, PAGE)?;
        count += page.len() as u64;
        open += page.iter().map(|(_, row)| row.open.len() as u64).sum::<u64>();
        if args.json {
            for (id, row) in &page {
                json_line(&mut out, &ProducerJson::new(*id, row))?;
            }
        } else if !page.is_empty() {
            let mut table = Table::new([
                "PRODUCER",
                "HIGHEST STAGE",
                "LAST COMPLETED",
                "COORDINATOR",
                "LAST USED",
                "OPEN EPOCHS",
            ]);
            page.iter().for_each(|(id, row)| table.row(cells(*id, row, now_ms)));
            table.print(&mut out)?;
        }
        match next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    if !args.json {
        let (count, open) = (counted(count, "producer"), counted(open, "open epoch"));
        writeln!(out, "{count}, {open}")?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn cells(id: i64, row: &Producer, now_ms: i64) -> [String; 6] {
    let completed = row.last_completed.map(|last| {
        let by = if last.operator { " by operator" } else { "" };
        format!("{} {}{by}", last.epoch, outcome_name(last.outcome))
    });
    let open: Vec<_> = row
        .open
        .iter()
        .map(|(epoch, open)| {
            let mut facts = vec![counted(open.keys.len() as u64, "share partition")];
            facts.extend(open.two_phase.then(|| "2PC".to_owned()));
            facts.extend(open.superseded_by.map(|later| format!("superseded by {later}")));
            facts.extend(row.orphaned(*epoch).then(|| "orphaned".to_owned()));
            format!("{epoch} ({})", facts.join(", "))
        })
        .collect();
    [
        id.to_string(),
        or_dash(row.highest_stage_epoch),
        or_dash(completed),
        or_dash(row.coordinator_epoch),
        format!("{} ago", duration(now_ms.saturating_sub(row.last_used_ms))),
        if open.is_empty() { "-".to_owned() } else { open.join(", ") },
    ]
}
