//! What the demo prints.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::args;
use crate::crash::Round;
use crate::failure::Failure;
use crate::output::{json_line, stdout};

/// All rounds.
#[derive(Debug, Serialize)]
pub struct Totals {
    rounds: u32,
    acknowledged: u64,
    lost: u64,
    invented: u64,
    /// Numbers of offsets.
    staged: u64,
    pending_recovered: u64,
    resolved: u64,
    /// Offsets, prepared acks and other facts that differ from the record after the markers.
    pub wrong: u64,
    wrong_answers: u64,
    unanswered: u64,
    adopted: u64,
    replayed: u64,
    torn_bytes: u64,
    last_lsn: u64,
    recovery_ms_max: f64,
    /// What `verify` says of the store in the end.
    pub verdict: &'static str,
    seed: u64,
    consumers: u32,
    partitions: u32,
    #[serde(skip)]
    dir: PathBuf,
    /// Where the store is, if it was kept.
    #[serde(rename = "dir")]
    pub kept: Option<PathBuf>,
}

impl Totals {
    pub fn new(seed: u64, args: &args::Demo, dir: &Path) -> Self {
        Self {
            rounds: 0,
            acknowledged: 0,
            lost: 0,
            invented: 0,
            staged: 0,
            pending_recovered: 0,
            resolved: 0,
            wrong: 0,
            wrong_answers: 0,
            unanswered: 0,
            adopted: 0,
            replayed: 0,
            torn_bytes: 0,
            last_lsn: 0,
            recovery_ms_max: 0.0,
            verdict: "clean",
            seed,
            consumers: args.consumers,
            partitions: args.partitions,
            dir: dir.to_owned(),
            kept: None,
        }
    }

    pub fn add(&mut self, round: &Round) {
        self.rounds += 1;
        self.acknowledged += round.acknowledged;
        self.lost += round.lost;
        self.invented += round.invented;
        self.staged += round.staged;
        self.pending_recovered += round.pending_recovered;
        self.resolved += round.resolved;
        self.wrong += round.wrong;
        self.wrong_answers += round.wrong_answers;
        self.unanswered += round.unanswered;
        self.adopted += round.adopted;
        self.replayed += round.replayed;
        self.torn_bytes += round.torn_bytes;
        self.last_lsn = round.last_lsn;
        self.recovery_ms_max = self.recovery_ms_max.max(round.recovery_ms);
    }

    pub fn is_fine(&self) -> bool {
        let differences = self.lost + self.invented + self.wrong + self.wrong_answers;
        differences == 0 && self.resolved == self.pending_recovered && self.verdict == "clean"
    }
}

pub fn introduce(totals: &Totals) -> Result<(), Failure> {
    let Totals { seed, consumers, partitions, dir, .. } = totals;
    let mut out = stdout();
    writeln!(
        out,
        "{consumers} share consumers on {partitions} share partitions, seed {seed}, store in {}",
        dir.display()
    )?;
    out.flush()?;
    Ok(())
}

pub fn round(round: &Round, json: bool) -> Result<(), Failure> {
    let mut out = stdout();
    if json {
        json_line(&mut out, round)?;
    } else {
        write!(
            out,
            "round {}: killed after {} acknowledged operations in {:.0} ms; recovered to LSN {} \
             in {:.1} ms: snapshot at {}, {} entries replayed, {} torn bytes cut; {} unanswered, \
             {} of them kept; lost {}, invented {}; {} prepared acks survived, {} resolved by \
             their markers, wrong {}",
            round.round,
            round.acknowledged,
            round.worked_ms,
            round.last_lsn,
            round.recovery_ms,
            round.snapshot_lsn,
            round.replayed,
            round.torn_bytes,
            round.unanswered,
            round.adopted,
            round.lost,
            round.invented,
            round.pending_recovered,
            round.resolved,
            round.wrong
        )?;
        if round.wrong_answers > 0 {
            write!(out, ", {} wrong answers", round.wrong_answers)?;
        }
        writeln!(out)?;
    }
    out.flush()?;
    Ok(())
}

pub fn totals(totals: &Totals, json: bool) -> Result<(), Failure> {
    let mut out = stdout();
    if json {
        json_line(&mut out, totals)?;
    } else {
        writeln!(
            out,
            "{} rounds: {} operations acknowledged, lost {}, invented {}; {} acks staged, {} \
             survived prepared, {} resolved, wrong {}, wrong answers {}; the store is {}",
            totals.rounds,
            totals.acknowledged,
            totals.lost,
            totals.invented,
            totals.staged,
            totals.pending_recovered,
            totals.resolved,
            totals.wrong,
            totals.wrong_answers,
            totals.verdict
        )?;
        if let Some(dir) = &totals.kept {
            writeln!(out, "the store was kept in {}", dir.display())?;
        }
    }
    out.flush()?;
    Ok(())
}
