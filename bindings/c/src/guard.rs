//! The boundary: no panic leaves, and what a pointer says is checked before it is followed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Failure, clear};
use crate::types::{Error, SHARESTATE_OK, Status};

/// Runs the body of an exported function. Its failure, or a panic, becomes a status and, unless
/// `error` is null, an error handle there; on success 0 is put there.
///
/// # Safety
/// `error` is null or valid for a write.
pub(crate) unsafe fn guard(
    error: *mut Error,
    body: impl FnOnce() -> Result<(), Failure>,
) -> Status {
    // SAFETY: as promised for this function.
    unsafe { clear(error) };
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return SHARESTATE_OK,
        Ok(Err(failure)) => failure,
        Err(panic) => Failure::panic(&panic_text(&*panic)),
    };
    // SAFETY: as promised for this function.
    catch_unwind(AssertUnwindSafe(|| unsafe { failure.tell(error) }))
        .unwrap_or(crate::types::SHARESTATE_INTERNAL)
}

/// Runs the body of an exported function that has no error to give; answers `otherwise` instead of
/// a panic.
pub(crate) fn total<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without text").to_owned()
}

/// Writes to a place that the caller may not want.
///
/// # Safety
/// `place` is null or valid for a write.
pub(crate) unsafe fn out<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: not null, and valid for a write as the caller promises.
        unsafe { place.write(value) };
    }
}

/// Copies what a pointer points to.
///
/// # Safety
/// `pointer` is null or points to a `T`.
pub(crate) unsafe fn value<T: Copy>(pointer: *const T, what: &str) -> Result<T, Failure> {
    if pointer.is_null() {
        return Err(Failure::argument(&format!("{what} is null")));
    }
    // SAFETY: not null, and points to a `T` as the caller promises. Every `T` here is plain data,
    // of which any bits are a value.
    Ok(unsafe { pointer.read() })
}

/// The items behind a pointer and a count. A null pointer is fine when the count is 0.
///
/// # Safety
/// `pointer` is null or points to `count` items, which live and do not change for `'a`.
pub(crate) unsafe fn items<'a, T: Copy>(
    pointer: *const T,
    count: usize,
    what: &str,
) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(Failure::argument(&format!("{what} is null, its count is {count}")));
    }
    if !pointer.is_aligned() || count > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(Failure::argument(&format!("{what}: {count} items cannot be there")));
    }
    // SAFETY: aligned, not null, not longer than memory can be, and valid as the caller promises.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}
