//! Initialize, write, leader epoch, delete and import.

use std::sync::Arc;

use super::super::batch::{NO_START, clip_all, combine, is_canonical, merge_into, overlapping};
use super::super::{Partition, RowId, SharePartitionKey, State, WriteTransition};
use super::loss::Loss;
use super::{ApplyError, Effects, Entry, Impossible, change};

pub(super) fn initialize(
    state: &mut State,
    entry: Entry<'_>,
    key: &SharePartitionKey,
    state_epoch: i32,
    start_offset: i64,
    time_ms: i64,
) -> Result<Effects, ApplyError> {
    let is_legal = state_epoch >= 0 && start_offset >= NO_START;
    entry.require(key, is_legal, Impossible::Malformed)?;
    let previous = entry.find(state, key)?;
    if let Some(row) = previous {
        entry.require(key, state_epoch >= row.state_epoch, Impossible::GoesBack)?;
        let is_retry = row.is_initialize_retry(state_epoch, start_offset);
        entry.require(key, !is_retry, Impossible::NoChange)?;
    }
    let loss = Loss::of(previous);
    loss.check(state, entry, key)?;
    let row = Partition::new_initialized(state_epoch, start_offset, time_ms, previous, entry.lsn);
    Ok(replace(state, entry, key, Some(row), loss))
}

pub(super) fn write(
    state: &mut State,
    entry: Entry<'_>,
    write: &WriteTransition,
) -> Result<Effects, ApplyError> {
    let WriteTransition { key, start_offset, batches, .. } = write;
    let row = entry.get(state, key)?;
    entry.require(key, *start_offset >= row.start_offset, Impossible::GoesBack)?;
    let is_legal = write.delivery_complete_count >= -1 && is_canonical(batches, *start_offset);
    entry.require(key, is_legal, Impossible::Malformed)?;
    let is_free = batches
        .iter()
        .all(|batch| overlapping(&row.pending, batch.first_offset, batch.last_offset).is_empty());
    entry.require(key, is_free, Impossible::Taken)?;
    let loss = Loss::below(row, *start_offset);
    loss.check(state, entry, key)?;

    change(state, entry, key, |row| {
        row.start_offset = *start_offset;
        row.delivery_complete_count = write.delivery_complete_count;
        row.write_time_ms = write.time_ms;
        clip_all(&mut row.batches, *start_offset);
        merge_into(&mut row.batches, batches, |part, sent| combine(part, sent, NO_START));
        row.clip_pending();
    });
    let mut touched = vec![RowId::Partition(key.clone())];
    touched.append(&mut loss.release(state, entry, key));
    Ok(Effects { touched, dropped: loss.dropped, resolved: Vec::new() })
}

pub(super) fn leader_epoch(
    state: &mut State,
    entry: Entry<'_>,
    key: &SharePartitionKey,
    leader_epoch: i32,
) -> Result<Effects, ApplyError> {
    let row = entry.get(state, key)?;
    entry.require(key, leader_epoch > row.leader_fence, Impossible::GoesBack)?;
    change(state, entry, key, |row| {
        row.leader_epoch = leader_epoch;
        row.leader_fence = leader_epoch;
    });
    Ok(Effects { touched: vec![RowId::Partition(key.clone())], ..Effects::default() })
}

pub(super) fn delete(
    state: &mut State,
    entry: Entry<'_>,
    key: &SharePartitionKey,
) -> Result<Effects, ApplyError> {
    let loss = Loss::of(Some(entry.get(state, key)?));
    loss.check(state, entry, key)?;
    Ok(replace(state, entry, key, None, loss))
}

pub(super) fn import(
    state: &mut State,
    entry: Entry<'_>,
    key: &SharePartitionKey,
    partition: &Partition,
) -> Result<Effects, ApplyError> {
    let is_legal = partition.check_invariants().is_ok() && partition.pending.is_empty();
    entry.require(key, is_legal, Impossible::Malformed)?;
    let loss = Loss::of(entry.find(state, key)?);
    loss.check(state, entry, key)?;
    let row = Partition { last_lsn: entry.lsn, ..partition.clone() };
    Ok(replace(state, entry, key, Some(row), loss))
}

/// Puts a new row, or none, in the place of a row that goes with all its pending acks.
fn replace(
    state: &mut State,
    entry: Entry<'_>,
    key: &SharePartitionKey,
    row: Option<Partition>,
    loss: Loss,
) -> Effects {
    match row {
        Some(row) => drop(state.partitions.insert(key.clone(), Arc::new(row))),
        None => drop(state.partitions.remove(key)),
    }
    let mut touched = vec![RowId::Partition(key.clone())];
    touched.append(&mut loss.release(state, entry, key));
    Effects { touched, dropped: loss.dropped, resolved: Vec::new() }
}
