//! What is done to producers from outside their transactions: forced resolution and expiry
//! (semantics sections 4.5 and 4.2).

use super::super::{
    Answer, ForceResolveTransition, Outcome, Producer, Rejection, State, Transition,
};
use super::marker::leaves_open;
use super::{Accepted, Options};
use crate::limits::EXPIRED_PER_ENTRY_MAX;
use crate::seeded;

pub(super) fn force_resolve(
    state: &State,
    producer_id: i64,
    epoch: i16,
    outcome: Outcome,
    time_ms: i64,
) -> Result<Accepted, Rejection> {
    let producer = state
        .producer(producer_id)
        .filter(|producer| producer.open.contains_key(&epoch))
        .ok_or(Rejection::NothingPending { producer_id, epoch })?;
    // As its own marker would: that one is a repeat then, and a late stage is refused.
    let marker = epoch.saturating_add(1);
    let completes = producer.last_completed.is_none_or(|last| last.epoch < marker);
    let transition = Transition::ForceResolve(ForceResolveTransition {
        producer_id,
        epoch,
        outcome,
        completes: completes.then_some(marker),
        time_ms,
    });
    let orphans = leaves_open(producer, marker, Some(epoch));
    let answer = Answer::Resolved { resolved: Vec::new(), contradicts: false, orphans };
    Ok((Some(transition), answer))
}

/// Names at most as many as one entry may; what is left is found expired again by the next call.
pub(super) fn expire(
    state: &State,
    candidates: &[i64],
    now_ms: i64,
    options: &Options,
) -> Result<Accepted, Rejection> {
    let is_expired = |producer: &Producer| {
        (producer.open.is_empty() || seeded::bug("KAFKA-19163"))
            && now_ms.saturating_sub(producer.last_used_ms) >= options.producer_id_expiration_ms
    };
    let mut producer_ids: Vec<i64> = candidates
        .iter()
        .copied()
        .filter(|id| state.producer(*id).is_some_and(is_expired))
        .collect();
    producer_ids.sort_unstable();
    producer_ids.dedup();
    producer_ids.truncate(EXPIRED_PER_ENTRY_MAX);
    let answer = Answer::Expired { producer_ids: producer_ids.clone() };
    let is_empty = producer_ids.is_empty();
    Ok(((!is_empty).then_some(Transition::ExpireProducers { producer_ids }), answer))
}
