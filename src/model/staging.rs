//! What a stage call newly stages in a row (semantics section 4.3), asked by both `decide` and
//! `apply`.
//!
//! Knows nothing of epochs and fences.

use super::batch::{is_offset_range, overlapping, uncovered};
use super::partition::ack_fits;
use super::{AckRange, DeliveryState, Partition, PendingAck};

/// The first offset that cannot be staged, and why.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Conflict {
    pub(super) offset: i64,
    pub(super) reason: &'static str,
}

impl AckRange {
    /// Whether offsets and count are in range.
    pub(super) fn is_well_formed(&self) -> bool {
        is_offset_range(self.first_offset, self.last_offset) && self.delivery_count >= 0
    }

    /// Whether the targets fit the ack type.
    pub(super) fn fits(&self) -> bool {
        ack_fits(self.ack_type, self.commit_target, self.abort_target)
    }

    /// Whether `other` says the same of other offsets.
    fn same_ack(&self, other: &Self) -> bool {
        let offsets = (self.first_offset, self.last_offset);
        let (first_offset, last_offset) = offsets;
        *self == Self { first_offset, last_offset, ..*other }
    }
}

impl PendingAck {
    /// Whether this is the same ack, for the same transaction, whoever staged it and when.
    fn repeats(&self, owner: (i64, i16), ack: &AckRange) -> bool {
        self.owner() == owner
            && self.ack_type == ack.ack_type
            && self.commit_target == ack.commit_target
            && self.abort_target == ack.abort_target
            && self.delivery_count == ack.delivery_count
    }
}

/// Whether ranges are sorted and disjoint.
pub(super) fn is_disjoint(acks: &[AckRange]) -> bool {
    acks.is_sorted_by(|a, b| a.last_offset < b.first_offset)
}

/// What of `acks` is not pending yet for `owner`: sorted, disjoint, equal neighbours joined. `acks`
/// is sorted and disjoint.
pub(super) fn newly_staged(
    row: &Partition,
    owner: (i64, i16),
    acks: &[AckRange],
) -> Result<Vec<AckRange>, Conflict> {
    let mut staged: Vec<AckRange> = Vec::new();
    for ack in acks {
        let start = row.start_offset.max(ack.first_offset);
        if start > ack.last_offset {
            continue;
        }
        let ack = AckRange { first_offset: start, ..*ack };
        if let Some(conflict) = first_conflict(row, owner, &ack) {
            return Err(conflict);
        }
        for (first_offset, last_offset) in
            uncovered(ack.first_offset, ack.last_offset, &row.pending)
        {
            let part = AckRange { first_offset, last_offset, ..ack };
            match staged.last_mut() {
                Some(run)
                    if run.last_offset.checked_add(1) == Some(first_offset)
                        && run.same_ack(&part) =>
                {
                    run.last_offset = last_offset;
                }
                _ => staged.push(part),
            }
        }
    }
    Ok(staged)
}

fn first_conflict(row: &Partition, owner: (i64, i16), ack: &AckRange) -> Option<Conflict> {
    let conflict = |first: i64, reason| Conflict { offset: first.max(ack.first_offset), reason };
    let persisted =
        overlapping(&row.batches, ack.first_offset, ack.last_offset).iter().find_map(|batch| {
            let reason = if batch.delivery_state != DeliveryState::AVAILABLE {
                "the record is not acquired, its delivery has ended"
            } else if batch.delivery_count >= ack.delivery_count {
                "the record was released or delivered again since"
            } else {
                return None;
            };
            Some(conflict(batch.first_offset, reason))
        });
    let pending = overlapping(&row.pending, ack.first_offset, ack.last_offset)
        .iter()
        .find(|pending| !pending.repeats(owner, ack))
        .map(|pending| conflict(pending.first_offset, "the record is pending otherwise"));
    persisted.into_iter().chain(pending).min_by_key(|conflict| conflict.offset)
}
