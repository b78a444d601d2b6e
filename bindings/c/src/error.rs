//! Errors: what failed, and how C asks for it.

use std::ffi::{CString, c_char};
use std::sync::Arc;

use sharestate::{CheckpointError, ErrorClass, KeyError, OpenError, StoreError};

use crate::guard::out;
use crate::handle::Table;
use crate::types::*;

static ERRORS: Table<Failure> = Table::new();

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub status: Status,
    kafka_code: Option<i16>,
    message: CString,
}

impl Failure {
    fn new(status: Status, kafka_code: Option<i16>, message: &str) -> Self {
        let bytes =
            message.bytes().map(|byte| if byte == 0 { b' ' } else { byte }).collect::<Vec<_>>();
        Self { status, kafka_code, message: CString::new(bytes).unwrap_or_default() }
    }

    pub fn handle(what: &str) -> Self {
        let message =
            format!("{what} handle is none: never was one, or is closed or freed already");
        Self::new(SHARESTATE_INVALID_HANDLE, Some(6), &message)
    }

    pub fn argument(message: &str) -> Self {
        Self::new(SHARESTATE_INVALID_ARGUMENT, Some(42), message)
    }

    pub fn rejected(code: i16, message: &str) -> Self {
        Self::new(SHARESTATE_REJECTED, Some(code), message)
    }

    pub fn thread(error: &std::io::Error) -> Self {
        let message = format!("a thread for callbacks could not be started: {error}");
        Self::new(SHARESTATE_IO, None, &message)
    }

    pub fn panic(what: &str) -> Self {
        let message = format!("a defect of sharestate, please report it: {what}");
        Self::new(SHARESTATE_INTERNAL, Some(-1), &message)
    }

    /// Gives the error away and answers its status. Under a null `error` it is dropped.
    ///
    /// # Safety
    /// `error` is null or valid for a write.
    pub unsafe fn tell(self, error: *mut Error) -> Status {
        let status = self.status;
        if !error.is_null() {
            let handle = self.into_handle();
            // SAFETY: not null, and valid for a write as the caller of the C function promises.
            unsafe { error.write(handle) };
        }
        status
    }

    pub fn into_handle(self) -> Error {
        ERRORS.insert(Arc::new(self))
    }
}

fn status(class: ErrorClass) -> Status {
    match class {
        ErrorClass::Rejected => SHARESTATE_REJECTED,
        ErrorClass::Retriable => SHARESTATE_RETRIABLE,
        ErrorClass::Poisoned => SHARESTATE_POISONED,
        ErrorClass::Corrupt => SHARESTATE_CORRUPT,
        _ => SHARESTATE_IO,
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new(status(error.class()), error.kafka_code(), &error.to_string())
    }
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Self {
        StoreError::from(error).into()
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        Self::new(status(error.class()), None, &error.to_string())
    }
}

impl From<CheckpointError> for Failure {
    fn from(error: CheckpointError) -> Self {
        let status = match &error {
            CheckpointError::Poisoned(_) => SHARESTATE_POISONED,
            CheckpointError::Closed => SHARESTATE_RETRIABLE,
            _ => SHARESTATE_IO,
        };
        Self::new(status, None, &error.to_string())
    }
}

/// The status that the call with this error had; `SHARESTATE_INVALID_HANDLE` if the handle is none.
#[unsafe(no_mangle)]
pub extern "C" fn sharestate_error_status(error: Error) -> Status {
    crate::guard::total(SHARESTATE_INTERNAL, || {
        ERRORS.get(error).map_or(SHARESTATE_INVALID_HANDLE, |failure| failure.status)
    })
}

/// Kafka's error code of it; `SHARESTATE_NO_KAFKA_CODE` where there is none, or the handle is none.
#[unsafe(no_mangle)]
pub extern "C" fn sharestate_error_kafka_code(error: Error) -> i16 {
    crate::guard::total(SHARESTATE_NO_KAFKA_CODE, || {
        let code = ERRORS.get(error).and_then(|failure| failure.kafka_code);
        code.unwrap_or(SHARESTATE_NO_KAFKA_CODE)
    })
}

/// What is wrong, as text that ends in a zero byte. Valid until the error is freed. Never null: of
/// a handle that is none it says so.
#[unsafe(no_mangle)]
pub extern "C" fn sharestate_error_message(error: Error) -> *const c_char {
    crate::guard::total(c"a panic was caught".as_ptr(), || match ERRORS.get(error) {
        Some(failure) => failure.message.as_ptr(),
        None => c"not an error handle".as_ptr(),
    })
}

/// Frees an error. Answers `SHARESTATE_INVALID_HANDLE` if it is none, or freed already.
#[unsafe(no_mangle)]
pub extern "C" fn sharestate_error_free(error: Error) -> Status {
    crate::guard::total(SHARESTATE_INTERNAL, || match ERRORS.remove(error) {
        Some(_) => SHARESTATE_OK,
        None => SHARESTATE_INVALID_HANDLE,
    })
}

/// As [`out`], for handles that are 0 until they are known.
///
/// # Safety
/// `place` is null or valid for a write.
pub(crate) unsafe fn clear(place: *mut u64) {
    // SAFETY: passed on to the caller.
    unsafe { out(place, 0) }
}
