//! Kafka's persister calls, and the deletion of groups and topics.

use std::ffi::c_void;

use sharestate::Command;
use uuid::Uuid;

use super::{begin, wait};
use crate::convert;
use crate::error::Failure;
use crate::guard::value;
use crate::operation::Operation;
use crate::types::*;

/// # Safety
/// As of `sharestate_write`.
unsafe fn write_operation(key: *const Key, write: *const Write) -> Result<Operation, Failure> {
    // SAFETY: as promised for this function.
    let (key, write) = unsafe { (convert::key(key)?, convert::write(write)?) };
    let sharestate::Write {
        state_epoch,
        leader_epoch,
        start_offset,
        delivery_complete_count,
        batches,
    } = write;
    Ok(Operation::Command(Command::Write {
        key,
        state_epoch,
        leader_epoch,
        start_offset,
        delivery_complete_count,
        batches,
    }))
}

/// # Safety
/// As of `sharestate_read`.
unsafe fn read_operation(
    key: *const Key,
    leader_epoch: i32,
    accepts_pending: u8,
) -> Result<Operation, Failure> {
    // SAFETY: as promised for this function.
    let key = unsafe { convert::key(key)? };
    Ok(match accepts_pending {
        0 => Operation::PlainRead { key, leader_epoch },
        _ => Operation::Command(Command::Read { key, leader_epoch }),
    })
}

/// Starts a share partition anew; a repeated identical call changes nothing. The answer holds the
/// pending acks that were dropped.
///
/// # Safety
/// Every pointer is null or points to what its type says, texts and arrays as long as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_initialize(
    store: Store,
    key: *const Key,
    state_epoch: i32,
    start_offset: i64,
    answer: *mut Answer,
    error: *mut Error,
) -> Status {
    // SAFETY: as promised for this function.
    unsafe {
        wait(store, answer, error, || {
            Ok(Operation::Command(Command::Initialize {
                key: convert::key(key)?,
                state_epoch,
                start_offset,
            }))
        })
    }
}

/// As `sharestate_initialize`, with a callback.
///
/// # Safety
/// As of the other; `callback` may be called with `user_data` once, on another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_initialize_async(
    store: Store,
    key: *const Key,
    state_epoch: i32,
    start_offset: i64,
    callback: Callback,
    user_data: *mut c_void,
    call: *mut Call,
    error: *mut Error,
) -> Status {
    // SAFETY: as promised for this function.
    unsafe {
        begin(store, (callback, user_data), call, error, || {
            Ok(Operation::Command(Command::Initialize {
                key: convert::key(key)?,
                state_epoch,
                start_offset,
            }))
        })
    }
}

/// Merges state batches, as a partition leader does after acknowledgements. The answer holds the
/// pending acks that were dropped because the start offset passed them.
///
/// # Safety
/// Every pointer is null or points to what its type says, texts and arrays as long as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_write(
    store: Store,
    key: *const Key,
    write: *const Write,
    answer: *mut Answer,
    error: *mut Error,
) -> Status {
    // SAFETY: as promised for this function.
    unsafe { wait(store, answer, error, || write_operation(key, write)) }
}

/// As `sharestate_write`, with a callback.
///
/// # Safety
/// As of the other; `callback` may be called with `user_data` once, on another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_write_async(
    store: Store,
    key: *const Key,
    write: *const Write,
    callback: Callback,
    user_data: *mut c_void,
    call: *mut Call,
    error: *mut Error,
) -> Status {
    // SAFETY: as promised for this function.
    unsafe { begin(store, (callback, user_data), call, error, || write_operation(key, write)) }
}

/// Reads the whole state as a partition leader; a leader epoch above the fence is durable before
/// the answer and fences older leaders. With `accepts_pending` 0 a share partition that has pending
/// acks is `SHARESTATE_REJECTED` with Kafka's code 35: hidden ones would look like gaps and be
/// delivered again.
///
/// # Safety
/// Every pointer is null or points to what its type says, texts and arrays as long as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_read(
    store: Store,
    key: *const Key,
    leader_epoch: i32,
    accepts_pending: u8,
    answer: *mut Answer,
    error: *mut Error,
) -> Status {
    // SAFETY: as promised for this function.
    unsafe { wait(store, answer, error, || read_operation(key, leader_epoch, accepts_pending)) }
}

/// As `sharestate_read`, with a callback.
///
/// # Safety
/// As of the other; `callback` may be called with `user_data` once, on another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_read_async(
    store: Store,
    key: *const Key,
    leader_epoch: i32,
    accepts_pending: u8,
    callback: Callback,
    user_data: *mut c_void,
    call: *mut Call,
    error: *mut Error,
) -> Status {
    // SAFETY: as promised for this function.
    unsafe {
        begin(store, (callback, user_data), call, error, || {
            read_operation(key, leader_epoch, accepts_pending)
        })
    }
}

/// Reads epochs, start offset and count; never changes anything. A share partition that is not
/// initialised answers 0, 0, -1, -1.
///
/// # Safety
/// Every pointer is null or points to what its type says, texts and arrays as long as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_summary(
    store: Store,
    key: *const Key,
    answer: *mut Answer,
    error: *mut Error,
) -> Status {
    // SAFETY: as promised for this function.
    unsafe {
        wait(store, answer, error, || {
            Ok(Operation::Command(Command::Summary { key: convert::key(key)? }))
        })
    }
}

/// As `sharestate_summary`, with a callback.
///
/// # Safety
/// As of the other; `callback` may be called with `user_data` once, on another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_summary_async(
    store: Store,
    key: *const Key,
    callback: Callback,
    user_data: *mut c_void,
    call: *mut Call,
    error: *mut Error,
) -> Status {
    // SAFETY: as promised for this function.
    unsafe {
        begin(store, (callback, user_data), call, error, || {
            Ok(Operation::Command(Command::Summary { key: convert::key(key)? }))
        })
    }
}

/// Drops a share partition; dropping what is not there succeeds. The answer holds the pending acks
/// that went with it.
///
/// # Safety
/// Every pointer is null or points to what its type says, texts and arrays as long as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_delete(
    store: Store,
    key: *const Key,
    answer: *mut Answer,
    error: *mut Error,
) -> Status {
    // SAFETY: as promised for this function.
    unsafe {
        wait(store, answer, error, || {
            Ok(Operation::Command(Command::Delete { key: convert::key(key)? }))
        })
    }
}

/// As `sharestate_delete`, with a callback.
///
/// # Safety
/// As of the other; `callback` may be called with `user_data` once, on another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_delete_async(
    store: Store,
    key: *const Key,
    callback: Callback,
    user_data: *mut c_void,
    call: *mut Call,
    error: *mut Error,
) -> Status {
    // SAFETY: as promised for this function.
    unsafe {
        begin(store, (callback, user_data), call, error, || {
            Ok(Operation::Command(Command::Delete { key: convert::key(key)? }))
        })
    }
}

/// Deletes all share partitions of a group, one by one: not one atomic act. After an error a
/// repeated call continues.
///
/// # Safety
/// Every pointer is null or points to what its type says, texts and arrays as long as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_delete_group(
    store: Store,
    group_id: Text,
    answer: *mut Answer,
    error: *mut Error,
) -> Status {
    // SAFETY: as promised for this function.
    unsafe {
        wait(store, answer, error, || {
            Ok(Operation::DeleteGroup(convert::text(group_id, "group_id")?.to_owned()))
        })
    }
}

/// As `sharestate_delete_group`, with a callback.
///
/// # Safety
/// As of the other; `callback` may be called with `user_data` once, on another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_delete_group_async(
    store: Store,
    group_id: Text,
    callback: Callback,
    user_data: *mut c_void,
    call: *mut Call,
    error: *mut Error,
) -> Status {
    // SAFETY: as promised for this function.
    unsafe {
        begin(store, (callback, user_data), call, error, || {
            Ok(Operation::DeleteGroup(convert::text(group_id, "group_id")?.to_owned()))
        })
    }
}

/// Deletes all share partitions of a topic in all groups, one by one, as `sharestate_delete_group`.
/// `topic_id` points to 16 bytes.
///
/// # Safety
/// Every pointer is null or points to what its type says, texts and arrays as long as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_delete_topic(
    store: Store,
    topic_id: *const u8,
    answer: *mut Answer,
    error: *mut Error,
) -> Status {
    // SAFETY: as promised for this function.
    unsafe {
        wait(store, answer, error, || {
            Ok(Operation::DeleteTopic(Uuid::from_bytes(value(
                topic_id.cast::<[u8; 16]>(),
                "topic_id",
            )?)))
        })
    }
}

/// As `sharestate_delete_topic`, with a callback.
///
/// # Safety
/// As of the other; `callback` may be called with `user_data` once, on another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sharestate_delete_topic_async(
    store: Store,
    topic_id: *const u8,
    callback: Callback,
    user_data: *mut c_void,
    call: *mut Call,
    error: *mut Error,
) -> Status {
    // SAFETY: as promised for this function.
    unsafe {
        begin(store, (callback, user_data), call, error, || {
            Ok(Operation::DeleteTopic(Uuid::from_bytes(value(
                topic_id.cast::<[u8; 16]>(),
                "topic_id",
            )?)))
        })
    }
}
