//! Transaction markers (semantics section 4.4). Only the producer's row is looked at.

use std::cmp::Ordering;

use super::super::{
    Answer, Decision, Marker, MarkerTransition, Outcome, Producer, Rejection, State, Transition,
};
use crate::seeded;

/// From this version on a marker carries the epoch above that of the acks.
const TRANSACTION_VERSION_BUMPED: i8 = 2;

/// What a marker does.
#[derive(Default)]
struct Verdict {
    resolves: Option<i16>,
    completes: Option<i16>,
    contradicts: bool,
}

pub(super) fn marker(state: &State, marker: &Marker, time_ms: i64) -> Decision {
    let nothing_known = Producer::default();
    let producer = state.producer(marker.producer_id).unwrap_or(&nothing_known);
    if let Err(rejection) = check_form(producer, marker) {
        return Decision { transition: None, answer: Err(rejection) };
    }
    let verdict = judge(producer, marker);
    let (resolves, completes) =
        verdict.as_ref().map_or((None, None), |verdict| (verdict.resolves, verdict.completes));
    // The epoch of a coordinator counts even where its marker is refused.
    let coordinator_is_new =
        producer.coordinator_epoch.is_none_or(|known| known < marker.coordinator_epoch);
    let changes = resolves.is_some() || completes.is_some() || coordinator_is_new;
    let transition = changes.then_some(Transition::Marker(MarkerTransition {
        producer_id: marker.producer_id,
        producer_epoch: marker.producer_epoch,
        coordinator_epoch: marker.coordinator_epoch,
        transaction_version: marker.transaction_version,
        outcome: marker.outcome,
        resolves,
        completes,
        time_ms,
    }));
    let answer = verdict.map(|verdict| Answer::Resolved {
        resolved: Vec::new(),
        contradicts: verdict.contradicts,
        orphans: leaves_open(producer, marker.producer_epoch, verdict.resolves),
    });
    Decision { transition, answer }
}

fn check_form(producer: &Producer, marker: &Marker) -> Result<(), Rejection> {
    super::check(marker.producer_id >= 0, "The producer id cannot be a negative number.")?;
    super::check(marker.producer_epoch >= 0, "The producer epoch cannot be a negative number.")?;
    match producer.coordinator_epoch {
        Some(remembered) if marker.coordinator_epoch < remembered => {
            let sent = marker.coordinator_epoch;
            Err(Rejection::TransactionCoordinatorFenced { sent, remembered })
        }
        _ => Ok(()),
    }
}

fn judge(producer: &Producer, marker: &Marker) -> Result<Verdict, Rejection> {
    let sent = marker.producer_epoch;
    let last = producer.last_completed;
    if let Some(open) = producer.matching(sent) {
        let completes = last.is_none_or(|last| last.epoch < sent).then_some(sent);
        return Ok(Verdict { resolves: Some(open), completes, contradicts: false });
    }
    match last.map(|last| (sent.cmp(&last.epoch), last)) {
        Some((Ordering::Equal, last)) => {
            let contradicts = last.outcome != marker.outcome && !seeded::bug("FLINK-8086");
            Ok(Verdict { contradicts, ..Verdict::default() })
        }
        Some((Ordering::Less, last)) => {
            Err(Rejection::InvalidProducerEpoch { sent, current: last.epoch })
        }
        _ if is_operators_abort(producer, marker) => {
            Ok(Verdict { resolves: Some(sent), ..Verdict::default() })
        }
        // So that a stage that comes after its own marker is refused.
        _ => {
            let completes = producer.highest_stage_epoch.is_none_or(|highest| highest < sent);
            Ok(Verdict { completes: completes.then_some(sent), ..Verdict::default() })
        }
    }
}

/// Kafka's tool aborts with the unbumped epoch and without a transaction version. The transaction
/// may go on.
fn is_operators_abort(producer: &Producer, marker: &Marker) -> bool {
    marker.transaction_version < TRANSACTION_VERSION_BUMPED
        && marker.outcome == Outcome::Abort
        && producer.open.contains_key(&marker.producer_epoch)
}

/// Whether an epoch below the marker's stays open after it: nothing but its own marker or an
/// operator ends it now.
pub(super) fn leaves_open(producer: &Producer, marker: i16, resolves: Option<i16>) -> bool {
    producer.open.range(..marker).any(|(epoch, _)| Some(*epoch) != resolves)
}
