//! Write (semantics section 2).

use std::cmp::Ordering;

use super::super::batch::{NO_START, clip_all, combine, cut, merge_into, overlapping};
use super::super::{
    Partition, Rejection, SharePartitionKey, State, StateBatch, Transition, WriteTransition,
};
use super::{
    Accepted, DONE, NEGATIVE_LEADER_EPOCH, NEGATIVE_STATE_EPOCH, START_OFFSET_TOO_LOW, check,
    check_leader_epoch, check_state_epoch_not_below, check_weight,
};
use crate::limits::{BATCHES_PER_CALL_MAX, ROW_WEIGHT_MAX};
use crate::seeded;

/// The parts of [`Command::Write`](super::super::Command::Write).
pub(super) struct Write<'a> {
    pub(super) key: &'a SharePartitionKey,
    pub(super) state_epoch: i32,
    pub(super) leader_epoch: i32,
    pub(super) start_offset: i64,
    pub(super) delivery_complete_count: i32,
    pub(super) batches: &'a [StateBatch],
}

impl Write<'_> {
    pub(super) fn decide(&self, state: &State, time_ms: i64) -> Result<Accepted, Rejection> {
        self.check_form()?;
        let row = state.partition(self.key).ok_or(Rejection::InvalidRequest(
            "Write operation on uninitialized share partition not allowed.",
        ))?;
        check_leader_epoch(row, self.leader_epoch)?;
        check_state_epoch_not_below(row, self.state_epoch)?;

        // -1 is below every known start, so the larger of the two is right for it as well.
        let start_offset = row.start_offset.max(self.start_offset);
        let sent = combine(&[], self.batches, start_offset);
        let stale = stale_offsets(row, &sent)?;
        let batches = cut(&sent, &stale);
        check_growth(row, start_offset, &batches)?;
        let transition = Transition::Write(WriteTransition {
            key: self.key.clone(),
            start_offset,
            delivery_complete_count: self.count_after(row, !stale.is_empty()),
            batches,
            time_ms,
        });
        Ok((Some(transition), DONE))
    }

    fn check_form(&self) -> Result<(), Rejection> {
        check(self.leader_epoch >= 0, NEGATIVE_LEADER_EPOCH)?;
        check(self.state_epoch >= 0, NEGATIVE_STATE_EPOCH)?;
        check(self.start_offset >= NO_START, START_OFFSET_TOO_LOW)?;
        check(self.delivery_complete_count >= -1, "The delivery-complete count is below -1.")?;
        check(self.batches.len() <= BATCHES_PER_CALL_MAX, "Too many state batches in one call.")?;
        check(self.batches.iter().all(StateBatch::is_well_formed), "A state batch is malformed.")
    }

    /// A count that comes with an older start, or from a leader that does not know of pending acks,
    /// says nothing.
    fn count_after(&self, row: &Partition, stale: bool) -> i32 {
        let (stored, sent) = (row.delivery_complete_count, self.delivery_complete_count);
        match self.start_offset.cmp(&row.start_offset) {
            _ if stale => stored,
            Ordering::Less => stored,
            Ordering::Equal => stored.max(sent),
            Ordering::Greater => sent,
        }
    }
}

/// The pending offsets that `sent` covers with a lower delivery count, ascending. What is sent with
/// an equal or higher one speaks of a record that the sender cannot hold: refused.
fn stale_offsets(row: &Partition, sent: &[StateBatch]) -> Result<Vec<(i64, i64)>, Rejection> {
    let mut stale = Vec::new();
    for batch in sent {
        for ack in overlapping(&row.pending, batch.first_offset, batch.last_offset) {
            let first = batch.first_offset.max(ack.first_offset);
            if batch.delivery_count >= ack.delivery_count && !seeded::bug("KAFKA-19476") {
                let reason = "the record is pending in a transaction";
                return Err(Rejection::InvalidRecordState { offset: first, reason });
            }
            stale.push((first, batch.last_offset.min(ack.last_offset)));
        }
    }
    Ok(stale)
}

fn check_growth(row: &Partition, start: i64, changes: &[StateBatch]) -> Result<(), Rejection> {
    // Each change adds itself and at most one more piece of a batch that it splits; enough to know
    // in all but huge rows.
    let at_most = row.weight().saturating_add(changes.len().saturating_mul(2));
    if at_most <= ROW_WEIGHT_MAX {
        return Ok(());
    }
    let mut batches = row.batches.clone();
    clip_all(&mut batches, start);
    merge_into(&mut batches, changes, |part, changes| combine(part, changes, NO_START));
    let gone = row.pending.partition_point(|ack| ack.last_offset < start);
    let pending = row.pending.len().saturating_sub(gone);
    check_weight(row.weight(), batches.len().saturating_add(pending.saturating_mul(2)))
}
