//! The calls. Each comes twice: one waits for the answer, the other, with `_async` in its name,
//! returns when the call has begun and ends with a callback.
//!
//! Of every pair: `answer`, `call` and `error` may be null. What is put into `*answer` and `*error`
//! is owned by the caller; it is 0 where there is nothing. Arguments are copied before the function
//! returns. A call with a callback that answers anything but `SHARESTATE_OK` has not begun, and its
//! callback never runs. While the queue has room, calls of one thread are judged in the order in
//! which they were made, those with a callback among them.

mod plain;
mod transaction;

use std::ffi::c_void;

use crate::error::{Failure, clear};
use crate::guard::{guard, out};
use crate::operation::Operation;
use crate::running::Recipient;
use crate::types::*;

/// # Safety
/// `answer` and `error` are null or valid for a write.
unsafe fn wait(
    store: Store,
    answer: *mut Answer,
    error: *mut Error,
    operation: impl FnOnce() -> Result<Operation, Failure>,
) -> Status {
    // SAFETY: as promised for this function.
    unsafe {
        clear(answer);
        guard(error, || {
            let reply = crate::store::get(store)?.run(operation()?)?;
            if !answer.is_null() {
                out(answer, crate::answer::into_handle(reply));
            }
            Ok(())
        })
    }
}

/// # Safety
/// `call` and `error` are null or valid for a write; `callback` may be called with `user_data`
/// once, on another thread.
unsafe fn begin(
    store: Store,
    (callback, user_data): (Callback, *mut c_void),
    call: *mut Call,
    error: *mut Error,
    operation: impl FnOnce() -> Result<Operation, Failure>,
) -> Status {
    // SAFETY: as promised for this function.
    unsafe {
        clear(call);
        guard(error, || {
            let store = crate::store::get(store)?;
            let operation = operation()?;
            let recipient = Recipient::new(callback, user_data)?;
            // Before the callback can run, which may look at it.
            out(call, recipient.call());
            store.begin(operation, recipient).inspect_err(|_| clear(call))
        })
    }
}

/// Exported in tests only: calls that panic.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// # Safety
    /// As of any call.
    pub unsafe extern "C" fn sharestate_panic(
        store: Store,
        later: bool,
        answer: *mut Answer,
        error: *mut Error,
    ) -> Status {
        // SAFETY: as promised for this function.
        unsafe { wait(store, answer, error, || Ok(Operation::Panic { later })) }
    }

    /// # Safety
    /// As of any call.
    pub unsafe fn sharestate_panic_async(
        store: Store,
        later: bool,
        (callback, user_data): (Callback, *mut c_void),
        call: *mut Call,
        error: *mut Error,
    ) -> Status {
        // SAFETY: as promised for this function.
        unsafe {
            begin(store, (callback, user_data), call, error, || Ok(Operation::Panic { later }))
        }
    }
}
