//! `show`

use std::io::{self, Write};
use std::process::ExitCode;

use sharestate::inspect::json::PartitionJson;
use sharestate::inspect::{OneLine, Reader, state_name};
use sharestate::{AckType, DeliveryState, Partition, SharePartitionKey};

use crate::args;
use crate::failure::Failure;
use crate::output::{error_line, json_line, stdout};

pub fn run(args: &args::Show) -> Result<ExitCode, Failure> {
    let mut reader = Reader::open(&args.dir)?;
    if let Some(note) = reader.tail_note() {
        error_line(&note.to_string())?;
    }
    let row = reader.partition(&args.key)?.ok_or_else(|| {
        Failure::cannot_run(format!("the store has no share partition {}", OneLine(&args.key)))
    })?;
    let mut out = stdout();
    if args.json {
        let mut json = PartitionJson::new(&args.key, &row);
        json.last_lsn = Some(row.last_lsn);
        json_line(&mut out, &json)?;
    } else {
        print(&mut out, &args.key, &row, args.width.into())?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn print(
    out: &mut impl Write,
    key: &SharePartitionKey,
    row: &Partition,
    width: usize,
) -> io::Result<()> {
    writeln!(out, "{}", OneLine(key))?;
    writeln!(out, "  state epoch              {}", row.state_epoch)?;
    writeln!(out, "  leader epoch             {} (fence {})", row.leader_epoch, row.leader_fence)?;
    let (start, init) = (known(row.start_offset), known(row.init_start_offset));
    writeln!(out, "  start offset             {start} (initialized at {init})")?;
    let count = known(row.delivery_complete_count.into());
    writeln!(out, "  delivery-complete count  {count}")?;
    writeln!(out, "  snapshot epoch           {}", row.snapshot_epoch)?;
    writeln!(out, "  created, written (ms)    {}, {}", row.create_time_ms, row.write_time_ms)?;
    writeln!(out, "  last changed by LSN      {}", row.last_lsn)?;
    draw(out, row, width)?;
    for batch in &row.batches {
        let state = state_name(batch.delivery_state);
        let (first, last, count) = (batch.first_offset, batch.last_offset, batch.delivery_count);
        writeln!(out, "  {first}-{last} {state}, delivery count {count}")?;
    }
    for ack in &row.pending {
        let holds_start = (ack.first_offset..=ack.last_offset).contains(&row.start_offset);
        writeln!(
            out,
            "  {}-{} pending {:?} of producer {} epoch {}: {} on commit, {} on abort, delivery \
             count {}, member {}, transaction {}{}{}",
            ack.first_offset,
            ack.last_offset,
            ack.ack_type,
            ack.call.producer_id,
            ack.call.producer_epoch,
            state_name(ack.commit_target),
            state_name(ack.abort_target),
            ack.delivery_count,
            OneLine(&ack.call.member_id),
            OneLine(&ack.call.transactional_id),
            if ack.call.two_phase { ", two-phase" } else { "" },
            if holds_start { ", holds the start offset" } else { "" }
        )?;
    }
    Ok(())
}

fn known(value: i64) -> String {
    if value == -1 { "unknown".to_owned() } else { value.to_string() }
}

const LEGEND: &str =
    "_ nothing stored   . available   # acknowledged   ~ archiving   x archived   * several";
const PENDING_LEGEND: &str = "a accept   r reject   g gap   * several";

/// Draws the offsets from the start offset to the last one that anything is stored of.
fn draw(out: &mut impl Write, row: &Partition, width: usize) -> io::Result<()> {
    let states =
        row.batches.iter().map(|b| (b.first_offset, b.last_offset, state_cell(b.delivery_state)));
    let states: Vec<_> = states.collect();
    let pending =
        row.pending.iter().map(|ack| (ack.first_offset, ack.last_offset, ack_cell(ack.ack_type)));
    let pending: Vec<_> = pending.collect();
    let all = || states.iter().chain(&pending);
    let Some(last) = all().map(|(_, last, _)| *last).max() else {
        return writeln!(out, "  no offsets are stored");
    };
    let lowest = all().map(|(first, ..)| *first).min().unwrap_or(last);
    let first = if row.start_offset == -1 { lowest } else { row.start_offset.min(lowest) };
    let bar = Bar::new(first, last, width);
    let each = match bar.per_cell {
        1 => "one cell per offset".to_owned(),
        n => format!("{n} offsets per cell"),
    };
    writeln!(out, "  offsets {first} to {last}, {each}")?;
    writeln!(out, "    |{}|", bar.fill(&states))?;
    if !pending.is_empty() {
        writeln!(out, "    |{}| pending: {PENDING_LEGEND}", bar.fill(&pending))?;
    }
    writeln!(out, "    {LEGEND}")
}

fn state_cell(state: DeliveryState) -> char {
    match state {
        DeliveryState::AVAILABLE => '.',
        DeliveryState::ACKNOWLEDGED => '#',
        DeliveryState::ARCHIVING => '~',
        DeliveryState::ARCHIVED => 'x',
        _ => '?',
    }
}

fn ack_cell(ack_type: AckType) -> char {
    match ack_type {
        AckType::Accept => 'a',
        AckType::Reject => 'r',
        AckType::Gap => 'g',
        AckType::Release | AckType::Renew => '?',
    }
}

/// A row of cells over a range of offsets.
struct Bar {
    first: i64,
    last: i64,
    per_cell: i64,
    cells: usize,
}

impl Bar {
    fn new(first: i64, last: i64, width: usize) -> Self {
        let offsets = last.saturating_sub(first).saturating_add(1).max(1);
        let width = i64::try_from(width).unwrap_or(i64::MAX).max(1);
        let per_cell = offsets / width + i64::from(offsets % width != 0);
        let cells = offsets / per_cell + i64::from(offsets % per_cell != 0);
        Self { first, last, per_cell, cells: usize::try_from(cells).unwrap_or(0) }
    }

    /// One letter per cell: that of all its offsets, or `*`.
    fn fill(&self, runs: &[(i64, i64, char)]) -> String {
        let mut runs = runs.iter().copied().peekable();
        let mut bar = String::with_capacity(self.cells);
        let mut from = self.first;
        for _ in 0..self.cells {
            let to = from.saturating_add(self.per_cell - 1).min(self.last);
            let mut letters = Vec::new();
            let mut at = from;
            while at <= to {
                while runs.next_if(|(_, last, _)| *last < at).is_some() {}
                // What `at` is in, and where that ends.
                let (letter, end) = match runs.peek() {
                    Some((first, last, letter)) if *first <= at => (*letter, *last),
                    Some((first, ..)) => ('_', first.saturating_sub(1)),
                    None => ('_', to),
                };
                letters.push(letter);
                at = end.min(to).saturating_add(1);
            }
            letters.dedup();
            bar.push(if let [letter] = letters[..] { letter } else { '*' });
            from = to.saturating_add(1);
        }
        bar
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_has_a_letter_per_offset_while_there_is_room() {
        let bar = Bar::new(5, 12, 64);
        assert_eq!(bar.fill(&[(6, 7, '#'), (8, 8, 'x'), (12, 12, '.')]), "_##x___.");
        assert_eq!(bar.fill(&[]), "________");
    }

    #[test]
    fn a_narrow_bar_says_where_several_share_a_cell() {
        let bar = Bar::new(0, 9, 4);
        assert_eq!((bar.per_cell, bar.cells), (3, 4));
        assert_eq!(bar.fill(&[(0, 3, '#'), (4, 9, '.')]), "#*..");
    }

    #[test]
    fn the_widest_range_does_not_overflow() {
        let bar = Bar::new(0, i64::MAX - 1, 10);
        assert_eq!(bar.fill(&[(0, i64::MAX - 1, '.')]), "..........");
    }
}
