//! Transactional acknowledgements, and what operators ask.

use std::ffi::c_void;

use sharestate::Command;

use super::{begin, wait};
use crate::convert;
use crate::operation::Operation;
use crate::types::*;

/// Stages acks inside a producer's transaction: from then on they are prepared, and only the
/// transaction's marker, or an operator, ends that. All or nothing. The answer holds the ranges
/// that are newly staged; an identical repeated call succeeds with none. After
/// `SHARESTATE_POISONED` the outcome is unknown.
///
/// # Safety
/// Every pointer is null or points to what its type says, texts and arrays as long as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_stage(
    store: Store,
    key: *const Key,
    stage: *const Stage,
    answer: *mut Answer,
    error: *mut Error,
) -> Status {
    // SAFETY: as promised for this function.
    unsafe {
        wait(store, answer, error, || {
            Ok(Operation::Command(Command::Stage(convert::stage(key, stage)?)))
        })
    }
}

/// As `sharestate_stage`, with a callback.
///
/// # Safety
/// As of the other; `callback` may be called with `user_data` once, on another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_stage_async(
    store: Store,
    key: *const Key,
    stage: *const Stage,
    callback: Callback,
    user_data: *mut c_void,
    call: *mut Call,
    error: *mut Error,
) -> Status {
    // SAFETY: as promised for this function.
    unsafe {
        begin(store, (callback, user_data), call, error, || {
            Ok(Operation::Command(Command::Stage(convert::stage(key, stage)?)))
        })
    }
}

/// Takes a transaction marker: one atomic entry that resolves whatever the producer staged anywhere
/// in the store. Repeating it is harmless. The answer holds what was resolved.
///
/// # Safety
/// Every pointer is null or points to what its type says, texts and arrays as long as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_marker(
    store: Store,
    marker: *const Marker,
    answer: *mut Answer,
    error: *mut Error,
) -> Status {
    // SAFETY: as promised for this function.
    unsafe {
        wait(store, answer, error, || {
            Ok(Operation::Command(Command::Marker(convert::marker(marker)?)))
        })
    }
}

/// As `sharestate_marker`, with a callback.
///
/// # Safety
/// As of the other; `callback` may be called with `user_data` once, on another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_marker_async(
    store: Store,
    marker: *const Marker,
    callback: Callback,
    user_data: *mut c_void,
    call: *mut Call,
    error: *mut Error,
) -> Status {
    // SAFETY: as promised for this function.
    unsafe {
        begin(store, (callback, user_data), call, error, || {
            Ok(Operation::Command(Command::Marker(convert::marker(marker)?)))
        })
    }
}

/// Ends one open epoch of a producer by hand, as its own marker would (`commit` 1) or as an abort
/// (0); logged as an operator's act.
///
/// # Safety
/// Every pointer is null or points to what its type says, texts and arrays as long as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_force_resolve(
    store: Store,
    producer_id: i64,
    producer_epoch: i16,
    commit: u8,
    answer: *mut Answer,
    error: *mut Error,
) -> Status {
    // SAFETY: as promised for this function.
    unsafe {
        wait(store, answer, error, || {
            Ok(Operation::Command(Command::ForceResolve {
                producer_id,
                epoch: producer_epoch,
                outcome: convert::outcome(commit)?,
            }))
        })
    }
}

/// As `sharestate_force_resolve`, with a callback.
///
/// # Safety
/// As of the other; `callback` may be called with `user_data` once, on another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_force_resolve_async(
    store: Store,
    producer_id: i64,
    producer_epoch: i16,
    commit: u8,
    callback: Callback,
    user_data: *mut c_void,
    call: *mut Call,
    error: *mut Error,
) -> Status {
    // SAFETY: as promised for this function.
    unsafe {
        begin(store, (callback, user_data), call, error, || {
            Ok(Operation::Command(Command::ForceResolve {
                producer_id,
                epoch: producer_epoch,
                outcome: convert::outcome(commit)?,
            }))
        })
    }
}

/// Counts all prepared acks.
///
/// # Safety
/// Every pointer is null or points to what its type says, texts and arrays as long as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_pending_totals(
    store: Store,
    answer: *mut Answer,
    error: *mut Error,
) -> Status {
    // SAFETY: as promised for this function.
    unsafe { wait(store, answer, error, || Ok(Operation::PendingTotals)) }
}

/// As `sharestate_pending_totals`, with a callback.
///
/// # Safety
/// As of the other; `callback` may be called with `user_data` once, on another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_pending_totals_async(
    store: Store,
    callback: Callback,
    user_data: *mut c_void,
    call: *mut Call,
    error: *mut Error,
) -> Status {
    // SAFETY: as promised for this function.
    unsafe { begin(store, (callback, user_data), call, error, || Ok(Operation::PendingTotals)) }
}

/// Folds everything accepted so far into the snapshot. Never needed: the store does so by itself.
///
/// # Safety
/// Every pointer is null or points to what its type says, texts and arrays as long as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_checkpoint(
    store: Store,
    answer: *mut Answer,
    error: *mut Error,
) -> Status {
    // SAFETY: as promised for this function.
    unsafe { wait(store, answer, error, || Ok(Operation::Checkpoint)) }
}

/// As `sharestate_checkpoint`, with a callback.
///
/// # Safety
/// As of the other; `callback` may be called with `user_data` once, on another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_checkpoint_async(
    store: Store,
    callback: Callback,
    user_data: *mut c_void,
    call: *mut Call,
    error: *mut Error,
) -> Status {
    // SAFETY: as promised for this function.
    unsafe { begin(store, (callback, user_data), call, error, || Ok(Operation::Checkpoint)) }
}
