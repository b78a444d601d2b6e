//! The store in the record's form, and the record's deeds as calls of the store.

use std::collections::BTreeMap;

use sharestate::blocking::BlockingShareStore;
use sharestate::inspect::Reader;
use sharestate::{
    AckRange, AckType, DeliveryState, Marker, Outcome, Partition, Resolved, SharePartitionKey,
    Stage, StateBatch, StoreError, SummaryAnswer, Write,
};

use super::ledger::{Completed, Ledger, Open, Producer};
use super::shadow::{Prepared, Row};
use super::wire::{
    Answer, Deed, Fate, MarkerOp, Op, Run, StageOp, Sum, Told, key_of, member_id, slot_of,
    transactional_id,
};
use crate::failure::Failure;

/// Rows read at once.
const PAGE: usize = 256;

/// What a bystander sees.
pub fn seen(reader: &mut Reader) -> Result<Ledger, Failure> {
    let mut ledger = Ledger::default();
    reader.for_each_partition::<Failure>(&mut |key, row| {
        ledger.rows.insert(slot_of(key), row_of(row));
        Ok(())
    })?;
    let mut after = None;
    loop {
        let (page, next) = reader.producers(after, PAGE)?;
        ledger.producers.extend(page.iter().map(|(id, row)| (*id, producer_of(row))));
        match next {
            Some(next) => after = Some(next),
            None => return Ok(ledger),
        }
    }
}

/// What an open store answers.
pub fn listed(store: &BlockingShareStore) -> Result<Ledger, Failure> {
    let mut ledger = Ledger::default();
    let mut after = None;
    loop {
        let page = store.list(None, after.as_ref(), PAGE)?;
        ledger.rows.extend(page.partitions.iter().map(|(key, row)| (slot_of(key), row_of(row))));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let mut after = None;
    loop {
        let (page, next) = store.producers(after, PAGE)?;
        ledger.producers.extend(page.iter().map(|(id, row)| (*id, producer_of(row))));
        after = next;
        if after.is_none() {
            return Ok(ledger);
        }
    }
}

/// A row of the store.
pub fn row_of(partition: &Partition) -> Row {
    let offsets = partition.batches.iter().flat_map(|batch| {
        let value = (batch.delivery_state.0, batch.delivery_count);
        (batch.first_offset..=batch.last_offset).map(move |offset| (offset, value))
    });
    let prepared = partition.pending.iter().flat_map(|ack| {
        let prepared = Prepared {
            producer: ack.call.producer_id,
            epoch: ack.call.producer_epoch,
            ack: ack.ack_type as i8,
            commit: ack.commit_target.0,
            abort: ack.abort_target.0,
            count: ack.delivery_count,
        };
        (ack.first_offset..=ack.last_offset).map(move |offset| (offset, prepared))
    });
    Row {
        state_epoch: partition.state_epoch,
        leader_epoch: partition.leader_epoch,
        leader_fence: partition.leader_fence,
        start: partition.start_offset,
        init_start: partition.init_start_offset,
        complete: partition.delivery_complete_count,
        offsets: offsets.collect(),
        prepared: prepared.collect(),
    }
}

/// A producer of the store.
pub fn producer_of(row: &sharestate::Producer) -> Producer {
    let open = row.open.iter().map(|(epoch, open)| {
        let slots = open.keys.iter().map(slot_of).collect();
        let (two_phase, superseded_by) = (open.two_phase, open.superseded_by);
        (*epoch, Open { two_phase, superseded_by, slots })
    });
    Producer {
        highest: row.highest_stage_epoch,
        completed: row.last_completed.map(|last| Completed {
            epoch: last.epoch,
            commit: last.outcome == Outcome::Commit,
            operator: last.operator,
        }),
        coordinator: row.coordinator_epoch,
        open: open.collect::<BTreeMap<_, _>>(),
    }
}

/// Asks the store for these, all at once if they are several.
pub fn submit(store: &BlockingShareStore, deeds: &[Deed]) -> Result<Vec<Answer>, Failure> {
    let stages: Vec<Stage> = deeds
        .iter()
        .filter_map(|deed| match deed {
            Deed::Stage { slot, op } => Some(stage_of(*slot, op)),
            _ => None,
        })
        .collect();
    if stages.len() == deeds.len() {
        let answers = store.stage_all(stages).into_iter();
        return answers.map(|answer| answer.map(staged).or_else(refusal)).collect();
    }
    deeds.iter().map(|deed| submit_one(store, deed).or_else(refusal)).collect()
}

fn submit_one(store: &BlockingShareStore, deed: &Deed) -> Result<Answer, StoreError> {
    match deed {
        Deed::Plain { slot, op } => plain(store, &key_of(*slot), op),
        Deed::Stage { slot, op } => store.stage(stage_of(*slot, op)).map(staged),
        Deed::Marker(op) => store.marker(marker_of(*op)).map(|resolved| resolved_of(&resolved)),
    }
}

fn plain(
    store: &BlockingShareStore,
    key: &SharePartitionKey,
    op: &Op,
) -> Result<Answer, StoreError> {
    match op {
        Op::Initialize { state_epoch, start } => {
            store.initialize(key, *state_epoch, *start).map(|_| Answer::Done)
        }
        Op::Read { leader_epoch } => {
            store.read(key, *leader_epoch).map(|answer| Answer::Told(told_of(&answer.partition)))
        }
        Op::Write { state_epoch, leader_epoch, start, complete, runs } => {
            let batch = |(first, last, state, count): &Run| StateBatch {
                first_offset: *first,
                last_offset: *last,
                delivery_state: DeliveryState(*state),
                delivery_count: *count,
            };
            let write = Write {
                state_epoch: *state_epoch,
                leader_epoch: *leader_epoch,
                start_offset: *start,
                delivery_complete_count: *complete,
                batches: runs.iter().map(batch).collect(),
            };
            store.write(key, write).map(|_| Answer::Done)
        }
        Op::Summary => store.summary(key).map(|summary| Answer::Told(told_in(&summary))),
        Op::Delete => store.delete(key).map(|_| Answer::Done),
    }
}

fn stage_of(slot: usize, op: &StageOp) -> Stage {
    let acks = op.acks.iter().map(|(first, last, ack, commit, abort, count)| AckRange {
        first_offset: *first,
        last_offset: *last,
        ack_type: AckType::from_raw(*ack).unwrap_or(AckType::Renew),
        commit_target: DeliveryState(*commit),
        abort_target: DeliveryState(*abort),
        delivery_count: *count,
    });
    Stage {
        key: key_of(slot),
        state_epoch: op.state_epoch,
        leader_epoch: op.leader_epoch,
        producer_id: op.producer,
        producer_epoch: op.epoch,
        two_phase: op.two_phase,
        transaction_version: 2,
        transactional_id: transactional_id(op.producer),
        member_id: member_id(op.producer),
        member_epoch: 1,
        acks: acks.collect(),
    }
}

fn marker_of(op: MarkerOp) -> Marker {
    Marker {
        producer_id: op.producer,
        producer_epoch: op.epoch,
        coordinator_epoch: op.coordinator,
        outcome: if op.commit { Outcome::Commit } else { Outcome::Abort },
        transaction_version: 2,
    }
}

fn staged(ranges: Vec<(i64, i64)>) -> Answer {
    Answer::Staged(offsets_in(&ranges))
}

fn resolved_of(resolved: &Resolved) -> Answer {
    Answer::Resolved(Sum {
        slots: resolved.partitions.len() as u64,
        offsets: resolved.partitions.iter().map(|(_, ranges)| offsets_in(ranges)).sum(),
        contradicts: resolved.contradicts,
        orphans: resolved.orphans,
    })
}

fn offsets_in(ranges: &[(i64, i64)]) -> u64 {
    ranges.iter().map(|(first, last)| last.abs_diff(*first) + 1).sum()
}

/// A refusal is an answer, and what becomes of an operation when the store fails is one as well;
/// any other error ends the work.
pub fn refusal(error: StoreError) -> Result<Answer, Failure> {
    match &error {
        StoreError::OutcomeUnknown(_) => Ok(Answer::Failed(Fate::Unknown)),
        StoreError::Poisoned(_) => Ok(Answer::Failed(Fate::NotLogged)),
        StoreError::Snapshot(error) if !error.is_corruption() => {
            Ok(Answer::Failed(Fate::NotLogged))
        }
        StoreError::Rejected(rejection) => match rejection.kafka_code() {
            Some(code) => Ok(Answer::Refused(code)),
            None => Err(error.into()),
        },
        _ => Err(error.into()),
    }
}

fn told_in(summary: &SummaryAnswer) -> Told {
    Told {
        state_epoch: summary.state_epoch,
        leader_epoch: summary.leader_epoch,
        start: summary.start_offset,
        complete: summary.delivery_complete_count,
    }
}

pub fn told_of(partition: &Partition) -> Told {
    Told {
        state_epoch: partition.state_epoch,
        leader_epoch: partition.leader_epoch,
        start: partition.start_offset,
        complete: partition.delivery_complete_count,
    }
}
