//! What came of one round.

use serde::Serialize;
use sharestate::RecoveryReport;
use sharestate::log::TailVerdict;

use super::oracle::Outcome;
use super::settle::Settled;

/// One round.
#[derive(Debug, Default, Serialize)]
pub struct Round {
    pub round: u32,
    /// 1 when the child was killed, 0 when it ended by itself.
    pub kills: u64,
    /// Operations answered before the kill.
    pub acknowledged: u64,
    /// Operations issued and not answered.
    pub unanswered: u64,
    /// Of these, such as the store brought back.
    pub adopted: u64,
    pub worked_ms: f64,
    /// Bytes of half a frame that the parent left behind the end of the log.
    pub torn_by_parent: u64,
    /// RocksDB's newest batch was taken away.
    pub lost_checkpoints: u64,
    /// Bytes that recovery cut.
    pub torn_bytes: u64,
    pub snapshot_lsn: u64,
    pub replayed: u64,
    pub last_lsn: u64,
    pub recovery_ms: f64,
    pub lost: u64,
    pub invented: u64,
    pub wrong_answers: u64,
    /// Offsets whose staging was acknowledged before the kill.
    pub staged: u64,
    /// Offsets with a prepared ack that the store brought back.
    pub pending_recovered: u64,
    /// Of these, such as the markers sent after the recovery resolved.
    pub resolved: u64,
    /// Of these, such as were left prepared on purpose.
    pub left_open: u64,
    /// Offsets, prepared acks and other facts that differ from the record after that, and whatever
    /// else must not happen.
    pub wrong: u64,
    /// Idle producers that the store forgot, as it must.
    pub expired: u64,
    /// The child was stopped and somebody else tried to open the store.
    pub pauses: u64,
    /// Of these, such as were refused because of the lock.
    pub refused_openers: u64,
    /// Calls that were made to fail below the store.
    pub faults: u64,
    /// Operations that failed.
    pub failed: u64,
    /// The store was poisoned.
    pub poisoned: u64,
    /// The store could not be opened.
    pub unopened: u64,
}

impl Round {
    pub fn recovered(&mut self, report: &RecoveryReport) {
        self.snapshot_lsn = report.snapshot_lsn;
        self.replayed = report.replayed;
        self.last_lsn = report.last_lsn;
        self.torn_bytes = report.tail.as_ref().map_or(0, |tail| torn_bytes(&tail.verdict));
    }

    pub fn settled(&mut self, settled: &Settled) {
        self.pending_recovered = settled.recovered;
        self.resolved = settled.resolved;
        self.left_open = settled.left_open;
        self.wrong += settled.wrong;
    }

    pub fn compared(&mut self, outcome: &Outcome) {
        self.lost = outcome.lost;
        self.invented = outcome.invented;
        self.unanswered = outcome.unanswered;
        self.adopted = outcome.adopted;
        self.expired = outcome.expired;
    }

    /// Nothing is missing, too much or wrong.
    pub fn is_fine(&self) -> bool {
        self.lost + self.invented + self.wrong + self.wrong_answers == 0
            && self.resolved + self.left_open == self.pending_recovered
    }
}

/// Bytes that recovery cut from the log.
fn torn_bytes(verdict: &TailVerdict) -> u64 {
    match verdict {
        TailVerdict::Torn(torn) => torn.bytes,
        _ => 0,
    }
}
