//! Changes the store behind the record's back, to show that the comparison finds it.

use sharestate::blocking::BlockingShareStore;
use sharestate::{DeliveryState, Partition, SharePartitionKey, StateBatch};

use super::oracle::Oracle;
use super::wire::slot_of;
use crate::args::Tamper;
use crate::failure::Failure;

/// Does what can be done before the first look. Leaves alone what the oracle would let pass: share
/// partitions with something unanswered.
pub fn tamper_with(
    store: &BlockingShareStore,
    tamper: Tamper,
    oracle: &Oracle,
) -> Result<(), Failure> {
    let flying = oracle.flying_slots();
    let wanted = |key: &SharePartitionKey, row: &Partition| match tamper {
        _ if flying.contains(&slot_of(key)) => false,
        Tamper::Lost | Tamper::Invented => !row.batches.is_empty() && row.pending.is_empty(),
        Tamper::LostStage => !row.pending.is_empty(),
        Tamper::LostMarker => false, // when the markers are sent
    };
    if tamper == Tamper::LostMarker {
        return Ok(());
    }
    let (key, mut row) = find(store, wanted)?;
    match tamper {
        Tamper::Lost => drop(row.batches.pop()),
        Tamper::Invented => {
            let first_offset = 1_000_000;
            row.batches.push(StateBatch {
                first_offset,
                last_offset: first_offset,
                delivery_state: DeliveryState::ACKNOWLEDGED,
                delivery_count: 1,
            });
        }
        Tamper::LostStage | Tamper::LostMarker => row.pending.clear(),
    }
    store.import(&key, row, true)?;
    Ok(())
}

fn find(
    store: &BlockingShareStore,
    wanted: impl Fn(&SharePartitionKey, &Partition) -> bool,
) -> Result<(SharePartitionKey, Partition), Failure> {
    let mut after = None;
    loop {
        let page = store.list(None, after.as_ref(), 256)?;
        let mut rows = page.partitions.into_iter();
        if let Some((key, row)) = rows.find(|(key, row)| wanted(key, row)) {
            return Ok((key, Partition::clone(&row)));
        }
        after = page.next;
        if after.is_none() {
            return Err(Failure::cannot_run("there is nothing to tamper with yet"));
        }
    }
}
