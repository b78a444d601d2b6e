//! Import of a whole share partition.

use super::super::batch::{NO_START, combine};
use super::super::{Partition, Rejection, SharePartitionKey, State, StateBatch, Transition};
use super::{Accepted, DONE, START_OFFSET_TOO_LOW, check, check_weight};

pub(super) fn import(
    state: &State,
    key: &SharePartitionKey,
    partition: &Partition,
    replace: bool,
) -> Result<Accepted, Rejection> {
    check_form(partition)?;
    let stored = state.partition(key);
    if stored.is_some() && !replace {
        return Err(Rejection::Exists(key.clone()));
    }
    // Another store's batches may be cut otherwise than ours.
    let batches = combine(&[], &partition.batches, partition.start_offset);
    check_weight(stored.map_or(0, Partition::weight), batches.len())?;
    let partition = Box::new(Partition { batches, pending: Vec::new(), last_lsn: 0, ..*partition });
    Ok((Some(Transition::Import { key: key.clone(), partition }), DONE))
}

fn check_form(partition: &Partition) -> Result<(), Rejection> {
    let epochs = [
        partition.state_epoch,
        partition.leader_epoch,
        partition.leader_fence,
        partition.snapshot_epoch,
    ];
    check(epochs.iter().all(|epoch| *epoch >= 0), "An epoch is negative.")?;
    check(
        partition.leader_epoch <= partition.leader_fence,
        "The leader epoch is above the leader fence.",
    )?;
    check(partition.start_offset >= NO_START, START_OFFSET_TOO_LOW)?;
    check(partition.init_start_offset >= NO_START, START_OFFSET_TOO_LOW)?;
    check(partition.delivery_complete_count >= -1, "The delivery-complete count is below -1.")?;
    check(partition.batches.iter().all(StateBatch::is_well_formed), "A state batch is malformed.")?;
    check(partition.pending.is_empty(), "Pending acks cannot be imported.")
}
