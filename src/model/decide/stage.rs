//! Stage (semantics section 4.3).

use super::super::batch::join;
use super::super::staging::{Conflict, is_disjoint, newly_staged};
use super::super::{
    AckRange, Answer, Partition, Producer, Rejection, Stage, StageTransition, State, Transition,
};
use super::{
    Accepted, NEGATIVE_LEADER_EPOCH, NEGATIVE_STATE_EPOCH, check, check_leader_epoch, check_weight,
};
use crate::limits::{
    BATCHES_PER_CALL_MAX, ID_BYTES_MAX, KEYS_PER_PRODUCER_MAX, ROW_CALL_BYTES_MAX,
};

/// Below it epochs are not bumped per transaction, so that a late stage cannot be told apart.
const TRANSACTION_VERSION_MIN: i8 = 2;

pub(super) fn stage(state: &State, stage: &Stage, time_ms: i64) -> Result<Accepted, Rejection> {
    check_form(stage)?;
    let acks = sorted_acks(&stage.acks)?;
    let fits = acks.iter().all(AckRange::fits);
    check(fits, "The ack type cannot be staged, or a target does not fit it.")?;
    if stage.transaction_version < TRANSACTION_VERSION_MIN {
        return Err(Rejection::UnsupportedVersion(stage.transaction_version));
    }
    let row = state.partition(&stage.key).ok_or(Rejection::InvalidRequest(
        "Stage operation on uninitialized share partition not allowed.",
    ))?;
    check_leader_epoch(row, stage.leader_epoch)?;
    if stage.state_epoch != row.state_epoch {
        let (sent, stored) = (stage.state_epoch, row.state_epoch);
        return Err(Rejection::FencedStateEpoch { sent, stored });
    }
    let producer = state.producer(stage.producer_id);
    if let Some(producer) = producer {
        check_producer(producer, stage)?;
    }
    let owner = (stage.producer_id, stage.producer_epoch);
    let staged = newly_staged(row, owner, &acks)
        .map_err(|Conflict { offset, reason }| Rejection::InvalidRecordState { offset, reason })?;
    let answer = Answer::Staged {
        staged: join(staged.iter().map(|ack| (ack.first_offset, ack.last_offset))),
    };
    if staged.is_empty() {
        return Ok((None, answer));
    }
    check_size(row, producer, stage, &staged)?;
    Ok((Some(transition(stage, staged, time_ms)), answer))
}

fn check_form(stage: &Stage) -> Result<(), Rejection> {
    check(stage.producer_id >= 0, "The producer id cannot be a negative number.")?;
    // i16::MAX is only ever a marker's: the transaction before it ran at the epoch below.
    let is_stageable = (0..i16::MAX).contains(&stage.producer_epoch);
    check(is_stageable, "The producer epoch is not one that can stage.")?;
    check(!stage.acks.is_empty(), "No ranges to stage.")?;
    check(stage.acks.len() <= BATCHES_PER_CALL_MAX, "Too many ranges in one call.")?;
    check(stage.acks.iter().all(AckRange::is_well_formed), "A range is malformed.")?;
    check(stage.transactional_id.len() <= ID_BYTES_MAX, "The transactional id is too long.")?;
    check(stage.member_id.len() <= ID_BYTES_MAX, "The member id is too long.")?;
    check(stage.leader_epoch >= 0, NEGATIVE_LEADER_EPOCH)?;
    check(stage.state_epoch >= 0, NEGATIVE_STATE_EPOCH)
}

fn sorted_acks(acks: &[AckRange]) -> Result<Vec<AckRange>, Rejection> {
    let mut sorted = acks.to_vec();
    sorted.sort_by_key(|ack| ack.first_offset);
    check(is_disjoint(&sorted), "Ranges overlap each other.")?;
    Ok(sorted)
}

fn check_producer(producer: &Producer, stage: &Stage) -> Result<(), Rejection> {
    let sent = stage.producer_epoch;
    // Below either, the transaction is over and no marker would ever resolve what it stages.
    if let Some(current) = producer.current_epoch().filter(|current| sent < *current) {
        return Err(Rejection::InvalidProducerEpoch { sent, current });
    }
    let agrees = producer.open.get(&sent).is_none_or(|open| open.two_phase == stage.two_phase);
    check(agrees, "The transaction is open with another two-phase setting.")
}

fn check_size(
    row: &Partition,
    producer: Option<&Producer>,
    stage: &Stage,
    staged: &[AckRange],
) -> Result<(), Rejection> {
    let after = staged.len().saturating_mul(2).saturating_add(row.weight());
    check_weight(row.weight(), after)?;
    let ids = stage.transactional_id.len().saturating_add(stage.member_id.len());
    let found = row.call_bytes().saturating_add(ids);
    if found > ROW_CALL_BYTES_MAX {
        let what = "bytes of ids that the pending acks of the share partition carry";
        return Err(Rejection::TooLarge { what, found, bound: ROW_CALL_BYTES_MAX });
    }
    let Some(open) = producer.and_then(|producer| producer.open.get(&stage.producer_epoch)) else {
        return Ok(());
    };
    let found = open.keys.len().saturating_add(1);
    if found > KEYS_PER_PRODUCER_MAX && !open.keys.contains(&stage.key) {
        let what = "number of share partitions with pending acks of one transaction";
        return Err(Rejection::TooLarge { what, found, bound: KEYS_PER_PRODUCER_MAX });
    }
    Ok(())
}

fn transition(stage: &Stage, acks: Vec<AckRange>, time_ms: i64) -> Transition {
    Transition::Stage(StageTransition {
        key: stage.key.clone(),
        producer_id: stage.producer_id,
        producer_epoch: stage.producer_epoch,
        two_phase: stage.two_phase,
        transactional_id: stage.transactional_id.clone(),
        member_id: stage.member_id.clone(),
        member_epoch: stage.member_epoch,
        state_epoch: stage.state_epoch,
        leader_epoch: stage.leader_epoch,
        time_ms,
        acks,
    })
}
