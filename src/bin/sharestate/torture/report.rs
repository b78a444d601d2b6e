//! What torture prints.

use std::io::Write as _;
use std::path::PathBuf;

use serde::Serialize;

use crate::crash::Round;
use crate::failure::Failure;
use crate::output::{json_line, stdout};

/// All rounds.
#[derive(Debug, Default, Serialize)]
pub struct Totals {
    pub rounds: u32,
    /// Operations answered.
    acknowledged: u64,
    lost: u64,
    invented: u64,
    /// Facts that differ from the record, and whatever else must not happen.
    pub wrong: u64,
    wrong_answers: u64,
    /// Numbers of offsets.
    staged: u64,
    pending_recovered: u64,
    resolved: u64,
    left_open: u64,
    kills: u64,
    recoveries: u64,
    torn_tails: u64,
    /// Recoveries after RocksDB's newest batch was taken away.
    lost_checkpoints: u64,
    pauses: u64,
    refused_openers: u64,
    /// Producers forgotten.
    expired: u64,
    /// Calls that were made to fail.
    faults: u64,
    /// Operations that failed, stores that were poisoned or could not be opened, because of them.
    failed: u64,
    poisoned: u64,
    unopened: u64,
    /// Places at which a call can be made to fail, and how many were tried (`--sweep`).
    pub sites: u64,
    pub cases: u64,
    unanswered: u64,
    adopted: u64,
    replayed: u64,
    recovery_ms_max: f64,
    /// What `verify` says of the store in the end.
    pub verdict: &'static str,
    pub seed: u64,
    pub writers: u32,
    pub partitions: u32,
    pub elapsed_ms: f64,
    /// What was made to fail in the last round.
    #[serde(skip)]
    pub plan: Option<String>,
    /// Why it ended early.
    pub failure: Option<String>,
    /// Where the store is, if it was kept.
    pub dir: Option<PathBuf>,
}

impl Totals {
    pub fn new(seed: u64, writers: u32, partitions: u32) -> Self {
        Self { seed, writers, partitions, verdict: "clean", ..Self::default() }
    }

    pub fn add(&mut self, round: &Round) {
        self.acknowledged += round.acknowledged;
        self.lost += round.lost;
        self.invented += round.invented;
        self.wrong += round.wrong;
        self.wrong_answers += round.wrong_answers;
        self.staged += round.staged;
        self.pending_recovered += round.pending_recovered;
        self.resolved += round.resolved;
        self.left_open += round.left_open;
        self.kills += round.kills;
        self.recoveries += 1;
        self.torn_tails += u64::from(round.torn_bytes > 0);
        self.lost_checkpoints += round.lost_checkpoints;
        self.pauses += round.pauses;
        self.refused_openers += round.refused_openers;
        self.expired += round.expired;
        self.faults += round.faults;
        self.failed += round.failed;
        self.poisoned += round.poisoned;
        self.unopened += round.unopened;
        self.unanswered += round.unanswered;
        self.adopted += round.adopted;
        self.replayed += round.replayed;
        self.recovery_ms_max = self.recovery_ms_max.max(round.recovery_ms);
    }

    pub fn is_fine(&self) -> bool {
        let differences = self.lost + self.invented + self.wrong + self.wrong_answers;
        differences == 0
            && self.resolved + self.left_open == self.pending_recovered
            && self.pauses == self.refused_openers
            && self.verdict == "clean"
            && self.failure.is_none()
    }
}

pub fn totals(totals: &Totals, json: bool) -> Result<(), Failure> {
    let mut out = stdout();
    if json {
        json_line(&mut out, totals)?;
    } else {
        writeln!(
            out,
            "acknowledged={} kills={} lost={} invented={} wrong={} wrong-answers={} staged={} \
             resolved={} recoveries={} torn-tails={} pauses={} expired={} faults={} failed={} \
             poisoned={} unopened={} cases={} sites={} seed={} verdict={}",
            totals.acknowledged,
            totals.kills,
            totals.lost,
            totals.invented,
            totals.wrong,
            totals.wrong_answers,
            totals.staged,
            totals.resolved,
            totals.recoveries,
            totals.torn_tails,
            totals.pauses,
            totals.expired,
            totals.faults,
            totals.failed,
            totals.poisoned,
            totals.unopened,
            totals.cases,
            totals.sites,
            totals.seed,
            totals.verdict
        )?;
        if let Some(dir) = &totals.dir {
            writeln!(out, "the store was kept in {}", dir.display())?;
        }
    }
    out.flush()?;
    Ok(())
}
