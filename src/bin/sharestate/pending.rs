//! `pending`

use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;
use sharestate::inspect::json::{PendingEntryJson, PendingTotalsJson};
use sharestate::inspect::{OneLine, Reader, ack_name};
use sharestate::{Clock as _, PendingAck, PendingEntry, PendingFilter, PendingTotals, SystemClock};

use crate::args;
use crate::failure::Failure;
use crate::output::{Table, counted, duration, error_line, json_line, or_dash, stdout};

/// Ranges that a table shows of an entry.
const RANGES_MAX: usize = 3;

#[derive(Serialize)]
struct Totals {
    totals: PendingTotalsJson,
}

pub fn run(args: &args::Pending) -> Result<ExitCode, Failure> {
    let mut reader = Reader::open(&args.dir)?;
    if let Some(note) = reader.tail_note() {
        error_line(&note.to_string())?;
    }
    let now_ms = SystemClock.now_ms();
    let mut entries = reader.pending(&filter(args, now_ms))?;
    let totals = PendingTotals::of(&entries);
    entries.sort_by_key(|entry| (entry.oldest.stage_time_ms, entry.lsn()));
    let mut out = stdout();
    if args.json {
        for entry in &entries {
            json_line(&mut out, &PendingEntryJson::new(entry, now_ms))?;
        }
        json_line(&mut out, &Totals { totals: totals.into() })?;
    } else {
        table(&mut out, &entries, now_ms)?;
        writeln!(out, "{}", sentence(&totals, now_ms))?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn filter(args: &args::Pending, now_ms: i64) -> PendingFilter {
    let mut filter = PendingFilter::default();
    filter.staged_until_ms = args.older_than.map(|age| now_ms.saturating_sub(age));
    filter.producer_id = args.producer_id;
    filter.transactional_id_prefix.clone_from(&args.transactional_id_prefix);
    filter.group_id.clone_from(&args.group);
    filter.topic_id = args.topic;
    filter.orphaned = args.orphaned.then_some(true);
    filter
}

/// Prints entries as a table; nothing when there are none.
pub fn table(out: &mut impl Write, entries: &[PendingEntry], now_ms: i64) -> io::Result<()> {
    if entries.is_empty() {
        return Ok(());
    }
    let mut table = Table::new([
        "AGE",
        "PRODUCER",
        "EPOCH",
        "2PC",
        "ORPHANED",
        "TRANSACTIONAL ID",
        "MEMBER",
        "COORDINATOR",
        "KEY",
        "START",
        "RANGES",
    ]);
    for entry in entries {
        let mark = if entry.holds_start_offset { "*" } else { "" };
        table.row([
            duration(entry.age_ms(now_ms)),
            entry.producer_id.to_string(),
            entry.producer_epoch.to_string(),
            yes_or_no(entry.two_phase),
            yes_or_no(entry.orphaned),
            OneLine(&entry.oldest.transactional_id).to_string(),
            OneLine(&entry.oldest.member_id).to_string(),
            or_dash(entry.coordinator_epoch),
            OneLine(&entry.key).to_string(),
            format!("{}{mark}", entry.start_offset),
            ranges(&entry.acks),
        ]);
    }
    table.print(out)
}

fn yes_or_no(value: bool) -> String {
    if value { "yes" } else { "no" }.to_owned()
}

fn ranges(acks: &[PendingAck]) -> String {
    let range = |ack: &PendingAck| {
        let PendingAck { first_offset, last_offset, .. } = ack;
        format!("{first_offset}-{last_offset}:{}", ack_name(ack.ack_type))
    };
    let mut text: Vec<_> = acks.iter().take(RANGES_MAX).map(range).collect();
    if acks.len() > RANGES_MAX {
        text.push(format!("and {} more", acks.len() - RANGES_MAX));
    }
    text.join(" ")
}

fn sentence(totals: &PendingTotals, now_ms: i64) -> String {
    let age = totals.oldest_ms.map(|oldest| duration(now_ms.saturating_sub(oldest)));
    let age = age.map_or_else(String::new, |age| format!(", oldest {age}"));
    format!(
        "{} in {} of {} ({} orphaned), {} held (*){age}",
        counted(totals.offsets, "prepared ack"),
        counted(totals.ranges, "range"),
        counted(totals.producers, "producer"),
        counted(totals.orphaned_epochs, "epoch"),
        counted(totals.held_start_offsets, "start offset"),
    )
}
