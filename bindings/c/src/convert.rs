//! From what C passes to what the store takes. Nothing is copied before its size is known to be one
//! that the store accepts.

use sharestate::limits::{BATCHES_PER_CALL_MAX, ID_BYTES_MAX};
use sharestate::{AckRange, AckType, DeliveryState, Outcome, SharePartitionKey, StateBatch};
use uuid::Uuid;

use crate::error::Failure;
use crate::guard::{items, value};
use crate::types::*;

/// # Safety
/// `text.data` is null or points to `text.length` bytes that live and do not change for `'a`.
pub(crate) unsafe fn text<'a>(text: Text, what: &str) -> Result<&'a str, Failure> {
    if text.length > ID_BYTES_MAX {
        let message = format!("{what} has {} bytes, {ID_BYTES_MAX} are allowed", text.length);
        return Err(Failure::rejected(42, &message));
    }
    // SAFETY: as promised for this function.
    let bytes = unsafe { items(text.data.cast::<u8>(), text.length, what) }?;
    std::str::from_utf8(bytes).map_err(|_| Failure::argument(&format!("{what} is not UTF-8")))
}

/// # Safety
/// `key` is null or points to a key whose text is as [`text`] wants it.
pub(crate) unsafe fn key(key: *const Key) -> Result<SharePartitionKey, Failure> {
    // SAFETY: as promised for this function.
    let key = unsafe { value(key, "key") }?;
    // SAFETY: as promised for this function.
    let group_id = unsafe { text(key.group_id, "group_id") }?;
    Ok(SharePartitionKey::new(group_id, Uuid::from_bytes(key.topic_id), key.partition)?)
}

fn check_count(count: usize, what: &str) -> Result<(), Failure> {
    if count <= BATCHES_PER_CALL_MAX {
        return Ok(());
    }
    let message = format!("{what}: {count} in one call, {BATCHES_PER_CALL_MAX} are allowed");
    Err(Failure::rejected(42, &message))
}

/// # Safety
/// `write` is null or points to a struct whose `batches` is null or points to `batch_count`
/// batches.
pub(crate) unsafe fn write(write: *const Write) -> Result<sharestate::Write, Failure> {
    // SAFETY: as promised for this function.
    let write = unsafe { value(write, "write") }?;
    check_count(write.batch_count, "batches")?;
    // SAFETY: as promised for this function; the items are copied before it returns.
    let batches = unsafe { items(write.batches, write.batch_count, "batches") }?;
    let batch = |batch: &Batch| StateBatch {
        first_offset: batch.first_offset,
        last_offset: batch.last_offset,
        delivery_state: DeliveryState(batch.delivery_state),
        delivery_count: batch.delivery_count,
    };
    Ok(sharestate::Write {
        state_epoch: write.state_epoch,
        leader_epoch: write.leader_epoch,
        start_offset: write.start_offset,
        delivery_complete_count: write.delivery_complete_count,
        batches: batches.iter().map(batch).collect(),
    })
}

/// # Safety
/// As [`key`]; `stage` is null or points to a struct whose texts are as [`text`] wants them and
/// whose `acks` is null or points to `ack_count` acks.
pub(crate) unsafe fn stage(
    of: *const Key,
    stage: *const Stage,
) -> Result<sharestate::Stage, Failure> {
    // SAFETY: as promised for this function.
    let (key, stage) = unsafe { (key(of)?, value(stage, "stage")?) };
    check_count(stage.ack_count, "acks")?;
    // SAFETY: as promised for this function; everything is copied before it returns.
    let (acks, transactional_id, member_id) = unsafe {
        (
            items(stage.acks, stage.ack_count, "acks")?,
            text(stage.transactional_id, "transactional_id")?,
            text(stage.member_id, "member_id")?,
        )
    };
    Ok(sharestate::Stage {
        key,
        state_epoch: stage.state_epoch,
        leader_epoch: stage.leader_epoch,
        producer_id: stage.producer_id,
        producer_epoch: stage.producer_epoch,
        two_phase: stage.two_phase != 0,
        transaction_version: stage.transaction_version,
        transactional_id: transactional_id.to_owned(),
        member_id: member_id.to_owned(),
        member_epoch: stage.member_epoch,
        acks: acks.iter().map(ack).collect::<Result<_, _>>()?,
    })
}

fn ack(ack: &Ack) -> Result<AckRange, Failure> {
    let ack_type = AckType::from_raw(ack.ack_type)
        .ok_or_else(|| Failure::rejected(42, &format!("acknowledge type {}", ack.ack_type)))?;
    Ok(AckRange {
        first_offset: ack.first_offset,
        last_offset: ack.last_offset,
        ack_type,
        commit_target: DeliveryState(ack.commit_target),
        abort_target: DeliveryState(ack.abort_target),
        delivery_count: ack.delivery_count,
    })
}

pub(crate) fn outcome(commit: u8) -> Result<Outcome, Failure> {
    match commit {
        0 => Ok(Outcome::Abort),
        1 => Ok(Outcome::Commit),
        other => Err(Failure::argument(&format!("commit is {other}, not 0 or 1"))),
    }
}

/// # Safety
/// `marker` is null or points to a marker.
pub(crate) unsafe fn marker(marker: *const Marker) -> Result<sharestate::Marker, Failure> {
    // SAFETY: as promised for this function.
    let marker = unsafe { value(marker, "marker") }?;
    Ok(sharestate::Marker {
        producer_id: marker.producer_id,
        producer_epoch: marker.producer_epoch,
        coordinator_epoch: marker.coordinator_epoch,
        outcome: outcome(marker.commit)?,
        transaction_version: marker.transaction_version,
    })
}
