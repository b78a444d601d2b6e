//! Answers: how C looks into what a call gave back.

use std::ffi::c_char;
use std::sync::Arc;

use crate::guard::{out, total};
use crate::handle::Table;
use crate::operation::Reply;
use crate::types::*;

static ANSWERS: Table<Reply> = Table::new();

pub(crate) fn into_handle(reply: Reply) -> Answer {
    ANSWERS.insert(Arc::new(reply))
}

#[cfg(test)]
pub(crate) fn outstanding() -> usize {
    ANSWERS.len()
}

/// Frees an answer and everything that points into it. Answers `SHARESTATE_INVALID_HANDLE` if it is
/// none, or freed already.
#[unsafe(no_mangle)]
pub extern "C" fn sharestate_answer_free(answer: Answer) -> Status {
    total(SHARESTATE_INTERNAL, || match ANSWERS.remove(answer) {
        Some(_) => SHARESTATE_OK,
        None => SHARESTATE_INVALID_HANDLE,
    })
}

fn look(answer: Answer, at: impl FnOnce(&Reply) -> Status) -> Status {
    total(SHARESTATE_INTERNAL, || match ANSWERS.get(answer) {
        Some(reply) => at(&reply),
        None => SHARESTATE_INVALID_HANDLE,
    })
}

/// The state without batches: of a read and of a summary. `SHARESTATE_INVALID_ARGUMENT` for answers
/// of other calls, which have none.
///
/// # Safety
/// `partition` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_answer_partition(
    answer: Answer,
    partition: *mut Partition,
) -> Status {
    look(answer, |reply| match reply.partition {
        Some(found) => {
            // SAFETY: null or valid, as promised for this function.
            unsafe { out(partition, found) };
            SHARESTATE_OK
        }
        None => SHARESTATE_INVALID_ARGUMENT,
    })
}

/// The batches of a read, ascending and disjoint, as stored: pending acks are not among them, see
/// `sharestate_answer_pending`. None for other calls. `*batches` is valid until the answer is
/// freed.
///
/// # Safety
/// `batches` and `count` are null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_answer_batches(
    answer: Answer,
    batches: *mut *const Batch,
    count: *mut usize,
) -> Status {
    // SAFETY: null or valid, as promised for this function.
    look(answer, |reply| unsafe { slice(&reply.batches, batches, count) })
}

/// The offset ranges that a stage newly staged. None for other calls, and for a repeated stage.
/// `*ranges` is valid until the answer is freed.
///
/// # Safety
/// `ranges` and `count` are null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_answer_staged(
    answer: Answer,
    ranges: *mut *const Range,
    count: *mut usize,
) -> Status {
    // SAFETY: null or valid, as promised for this function.
    look(answer, |reply| unsafe { slice(&reply.staged, ranges, count) })
}

/// # Safety
/// Both places are null or valid for a write.
unsafe fn slice<T>(items: &[T], first: *mut *const T, count: *mut usize) -> Status {
    // SAFETY: as promised for this function.
    unsafe {
        out(first, items.as_ptr());
        out(count, items.len());
    }
    SHARESTATE_OK
}

/// How many ranges of pending acks the answer holds: all of the share partition for a read; those
/// that were dropped for initialize, write and delete.
///
/// # Safety
/// `count` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_answer_pending_count(
    answer: Answer,
    count: *mut usize,
) -> Status {
    look(answer, |reply| {
        // SAFETY: null or valid, as promised for this function.
        unsafe { out(count, reply.pending.len()) };
        SHARESTATE_OK
    })
}

/// One range of pending acks, `index` from 0. `SHARESTATE_INVALID_ARGUMENT` behind the last. Its
/// texts are valid until the answer is freed.
///
/// # Safety
/// `pending` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_answer_pending(
    answer: Answer,
    index: usize,
    pending: *mut Pending,
) -> Status {
    look(answer, |reply| {
        let Some(ack) = reply.pending.get(index) else { return SHARESTATE_INVALID_ARGUMENT };
        let (producer_id, producer_epoch) = ack.owner();
        let found = Pending {
            first_offset: ack.first_offset,
            last_offset: ack.last_offset,
            delivery_count: ack.delivery_count,
            ack_type: ack.ack_type as i8,
            commit_target: ack.commit_target.0,
            abort_target: ack.abort_target.0,
            two_phase: u8::from(ack.call.two_phase),
            producer_epoch,
            producer_id,
            stage_time_ms: ack.call.stage_time_ms,
            transactional_id: text(&ack.call.transactional_id),
            member_id: text(&ack.call.member_id),
        };
        // SAFETY: null or valid, as promised for this function.
        unsafe { out(pending, found) };
        SHARESTATE_OK
    })
}

/// In how many share partitions a marker, or a forced resolution, resolved something.
///
/// # Safety
/// `count` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_answer_resolved_count(
    answer: Answer,
    count: *mut usize,
) -> Status {
    look(answer, |reply| {
        // SAFETY: null or valid, as promised for this function.
        unsafe { out(count, reply.resolved.len()) };
        SHARESTATE_OK
    })
}

/// One of these share partitions, `index` from 0, and the offset ranges that were resolved in it.
/// `SHARESTATE_INVALID_ARGUMENT` behind the last. Text and ranges are valid until the answer is
/// freed.
///
/// # Safety
/// `key`, `ranges` and `count` are null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_answer_resolved(
    answer: Answer,
    index: usize,
    key: *mut Key,
    ranges: *mut *const Range,
    count: *mut usize,
) -> Status {
    look(answer, |reply| {
        let Some((found, resolved)) = reply.resolved.get(index) else {
            return SHARESTATE_INVALID_ARGUMENT;
        };
        let found = Key {
            group_id: text(found.group_id()),
            topic_id: *found.topic_id().as_bytes(),
            partition: found.partition(),
        };
        // SAFETY: null or valid, as promised for this function.
        unsafe {
            out(key, found);
            slice(resolved, ranges, count)
        }
    })
}

/// Of a marker: 1 in `contradicts` if it is a repeat whose outcome is not the one remembered, 1 in
/// `orphans` if an open epoch below it stays behind.
///
/// # Safety
/// `contradicts` and `orphans` are null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_answer_marker(
    answer: Answer,
    contradicts: *mut u8,
    orphans: *mut u8,
) -> Status {
    look(answer, |reply| {
        // SAFETY: null or valid, as promised for this function.
        unsafe {
            out(contradicts, u8::from(reply.contradicts));
            out(orphans, u8::from(reply.orphans));
        }
        SHARESTATE_OK
    })
}

/// Of the deletion of a group or topic: how many share partitions were deleted, and how many ranges
/// of pending acks were dropped with them.
///
/// # Safety
/// `partitions` and `dropped` are null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_answer_deleted(
    answer: Answer,
    partitions: *mut u64,
    dropped: *mut u64,
) -> Status {
    look(answer, |reply| {
        // SAFETY: null or valid, as promised for this function.
        unsafe {
            out(partitions, reply.deleted.0);
            out(dropped, reply.deleted.1);
        }
        SHARESTATE_OK
    })
}

/// The answer of `sharestate_pending_totals`; `SHARESTATE_INVALID_ARGUMENT` for those of other
/// calls.
///
/// # Safety
/// `totals` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_answer_pending_totals(
    answer: Answer,
    totals: *mut PendingTotals,
) -> Status {
    look(answer, |reply| match reply.totals {
        Some(found) => {
            // SAFETY: null or valid, as promised for this function.
            unsafe { out(totals, found) };
            SHARESTATE_OK
        }
        None => SHARESTATE_INVALID_ARGUMENT,
    })
}

/// Of a checkpoint: the entry up to which the snapshot holds everything.
///
/// # Safety
/// `lsn` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_answer_lsn(answer: Answer, lsn: *mut u64) -> Status {
    look(answer, |reply| {
        // SAFETY: null or valid, as promised for this function.
        unsafe { out(lsn, reply.lsn) };
        SHARESTATE_OK
    })
}

/// A text of the answer's, for as long as the answer lives.
fn text(text: &str) -> Text {
    Text { data: text.as_ptr().cast::<c_char>(), length: text.len() }
}
