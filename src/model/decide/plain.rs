//! Initialize, read, summary and delete (semantics section 2).

use super::super::batch::NO_START;
use super::super::{
    Answer, ReadAnswer, Rejection, SharePartitionKey, State, SummaryAnswer, Transition,
};
use super::{
    Accepted, DONE, NEGATIVE_LEADER_EPOCH, NEGATIVE_STATE_EPOCH, START_OFFSET_TOO_LOW, check,
    check_leader_epoch, check_state_epoch_not_below,
};
use crate::seeded;

pub(super) fn initialize(
    state: &State,
    key: &SharePartitionKey,
    state_epoch: i32,
    start_offset: i64,
    time_ms: i64,
) -> Result<Accepted, Rejection> {
    check(state_epoch >= 0, NEGATIVE_STATE_EPOCH)?;
    check(start_offset >= NO_START, START_OFFSET_TOO_LOW)?;
    if let Some(row) = state.partition(key) {
        check_state_epoch_not_below(row, state_epoch)?;
        // However late a retry comes, it must not wipe what happened since.
        if row.is_initialize_retry(state_epoch, start_offset) {
            return Ok((None, DONE));
        }
    }
    let key = key.clone();
    Ok((Some(Transition::Initialize { key, state_epoch, start_offset, time_ms }), DONE))
}

pub(super) fn read(
    state: &State,
    key: &SharePartitionKey,
    leader_epoch: i32,
) -> Result<Accepted, Rejection> {
    check(leader_epoch >= 0, NEGATIVE_LEADER_EPOCH)?;
    let row = state.partition(key).ok_or(Rejection::InvalidRequest(
        "Read operation on uninitialized share partition not allowed.",
    ))?;
    check_leader_epoch(row, leader_epoch)?;
    let mut partition = row.clone();
    let raised = leader_epoch > row.leader_fence;
    if raised {
        partition.leader_epoch = leader_epoch;
        partition.leader_fence = leader_epoch;
    }
    let logged = raised && !seeded::bug("KAFKA-17796");
    let transition = logged.then(|| Transition::LeaderEpoch { key: key.clone(), leader_epoch });
    Ok((transition, Answer::Read(Box::new(ReadAnswer { partition }))))
}

pub(super) fn summary(state: &State, key: &SharePartitionKey) -> Result<Accepted, Rejection> {
    let unknown = SummaryAnswer {
        state_epoch: 0,
        leader_epoch: 0,
        start_offset: NO_START,
        delivery_complete_count: -1,
    };
    let answer = state.partition(key).map_or(unknown, |row| SummaryAnswer {
        state_epoch: row.state_epoch,
        leader_epoch: row.leader_epoch,
        start_offset: row.start_offset,
        delivery_complete_count: row.delivery_complete_count,
    });
    Ok((None, Answer::Summary(answer)))
}

pub(super) fn delete(state: &State, key: &SharePartitionKey) -> Result<Accepted, Rejection> {
    let exists = state.partition(key).is_some();
    Ok((exists.then(|| Transition::Delete { key: key.clone() }), DONE))
}
