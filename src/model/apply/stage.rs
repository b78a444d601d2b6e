//! Stage.

use std::sync::Arc;

use super::super::staging::{is_disjoint, newly_staged};
use super::super::{
    AckRange, OpenEpoch, Partition, PendingAck, Producer, RowId, StageCall, StageTransition, State,
};
use super::{ApplyError, Effects, Entry, Impossible, change, change_producer};

pub(super) fn stage(
    state: &mut State,
    entry: Entry<'_>,
    stage: &StageTransition,
) -> Result<Effects, ApplyError> {
    check_form(entry, stage)?;
    check_row(entry, stage, entry.get(state, &stage.key)?)?;
    if let Some(producer) = entry.find_producer(state, stage.producer_id)? {
        check_producer(entry, stage, producer)?;
    }

    let call = Arc::new(call(entry, stage));
    change(state, entry, &stage.key, |row| {
        row.pending.extend(stage.acks.iter().map(|ack| pending(ack, &call)));
        // Two sorted runs: the stable sort merges them in linear time.
        row.pending.sort_by_key(|ack| ack.first_offset);
    });
    change_producer(state, entry, stage.producer_id, |producer| remember(producer, stage));
    Ok(Effects {
        touched: vec![RowId::Partition(stage.key.clone()), RowId::Producer(stage.producer_id)],
        ..Effects::default()
    })
}

fn check_form(entry: Entry<'_>, stage: &StageTransition) -> Result<(), ApplyError> {
    let is_legal = stage.producer_id >= 0
        && (0..i16::MAX).contains(&stage.producer_epoch)
        && !stage.acks.is_empty()
        && stage.acks.iter().all(|ack| ack.is_well_formed() && ack.fits())
        && is_disjoint(&stage.acks);
    entry.require(&stage.key, is_legal, Impossible::Malformed)
}

fn check_row(entry: Entry<'_>, stage: &StageTransition, row: &Partition) -> Result<(), ApplyError> {
    let epochs_fit = stage.leader_epoch >= row.leader_fence && stage.state_epoch == row.state_epoch;
    entry.require(&stage.key, epochs_fit, Impossible::GoesBack)?;
    // What is logged is what was newly staged then: all of it must be free now.
    let owner = (stage.producer_id, stage.producer_epoch);
    let is_free = newly_staged(row, owner, &stage.acks).is_ok_and(|free| free == stage.acks);
    entry.require(&stage.key, is_free, Impossible::Taken)
}

fn check_producer(
    entry: Entry<'_>,
    stage: &StageTransition,
    producer: &Producer,
) -> Result<(), ApplyError> {
    let epoch = stage.producer_epoch;
    let is_current = producer.current_epoch().is_none_or(|current| epoch >= current);
    entry.require_producer(stage.producer_id, is_current, Impossible::GoesBack)?;
    let agrees = producer.open.get(&epoch).is_none_or(|open| open.two_phase == stage.two_phase);
    entry.require_producer(stage.producer_id, agrees, Impossible::NotOpen)
}

fn call(entry: Entry<'_>, stage: &StageTransition) -> StageCall {
    StageCall {
        lsn: entry.lsn,
        producer_id: stage.producer_id,
        producer_epoch: stage.producer_epoch,
        two_phase: stage.two_phase,
        transactional_id: stage.transactional_id.clone(),
        member_id: stage.member_id.clone(),
        member_epoch: stage.member_epoch,
        state_epoch: stage.state_epoch,
        leader_epoch: stage.leader_epoch,
        stage_time_ms: stage.time_ms,
    }
}

fn pending(ack: &AckRange, call: &Arc<StageCall>) -> PendingAck {
    PendingAck {
        first_offset: ack.first_offset,
        last_offset: ack.last_offset,
        ack_type: ack.ack_type,
        commit_target: ack.commit_target,
        abort_target: ack.abort_target,
        delivery_count: ack.delivery_count,
        call: Arc::clone(call),
    }
}

fn remember(producer: &mut Producer, stage: &StageTransition) {
    let epoch = stage.producer_epoch;
    producer.highest_stage_epoch = producer.highest_stage_epoch.max(Some(epoch));
    producer.last_used_ms = stage.time_ms;
    // A later stage proves that the coordinator is done with these; only the first one says until
    // which marker.
    for (_, older) in producer.open.range_mut(..epoch) {
        older.superseded_by.get_or_insert(epoch);
    }
    let open = producer.open.entry(epoch).or_insert_with(|| OpenEpoch {
        two_phase: stage.two_phase,
        superseded_by: None,
        keys: Default::default(),
    });
    open.keys.insert(stage.key.clone());
}
