//! Calls with a callback: from the caller's thread to the store's callback thread, and how they are
//! cancelled.

use std::ffi::c_void;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::ThreadId;

use crate::error::Failure;
use crate::guard::total;
use crate::handle::Table;
use crate::operation::Reply;
use crate::types::*;

static CALLS: Table<Running> = Table::new();

/// A call whose callback is outstanding.
pub(crate) struct Running {
    stage: Mutex<Stage>,
    over: Condvar,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Waiting,
    Cancelled,
    /// The callback runs on this thread.
    Calling(ThreadId),
    Over,
}

/// Whom to tell.
pub(crate) struct Recipient {
    callback: unsafe extern "C" fn(*mut c_void, Status, Answer, Error),
    user_data: *mut c_void,
    running: Arc<Running>,
    call: Call,
}

// SAFETY: `user_data` is not touched here, only handed back; that it may go to another thread is
// what the header says of every callback. Everything else is `Send` by itself.
unsafe impl Send for Recipient {}

impl Recipient {
    pub fn new(callback: Callback, user_data: *mut c_void) -> Result<Self, Failure> {
        let callback = callback.ok_or_else(|| Failure::argument("callback is null"))?;
        let running = Running { stage: Mutex::new(Stage::Waiting), over: Condvar::new() };
        let running = Arc::new(running);
        let call = CALLS.insert(Arc::clone(&running));
        Ok(Self { callback, user_data, running, call })
    }

    pub fn call(&self) -> Call {
        self.call
    }

    /// Runs the callback, under no lock, unless it was cancelled.
    pub fn tell(self, result: Result<Reply, Failure>) {
        if !self.running.pass(Stage::Waiting, Stage::Calling(std::thread::current().id())) {
            return;
        }
        let (status, answer, error) = match result {
            Ok(reply) => (SHARESTATE_OK, crate::answer::into_handle(reply), 0),
            Err(failure) => (failure.status, 0, failure.into_handle()),
        };
        // SAFETY: the caller passed a function of this type, to be called once, on any thread, with
        // the `user_data` that it passed beside it.
        unsafe { (self.callback)(self.user_data, status, answer, error) };
        self.running.pass(Stage::Calling(std::thread::current().id()), Stage::Over);
    }
}

impl Drop for Recipient {
    fn drop(&mut self) {
        // When the callback has returned, or will never run.
        CALLS.remove(self.call);
    }
}

impl Running {
    fn lock(&self) -> std::sync::MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From one stage to another, if it is in that one.
    fn pass(&self, from: Stage, to: Stage) -> bool {
        let mut stage = self.lock();
        let is_there = *stage == from;
        if is_there {
            *stage = to;
            self.over.notify_all();
        }
        is_there
    }

    /// Cancels, or waits until a callback that runs on another thread has returned.
    fn cancel(&self) -> Status {
        let mut stage = self.lock();
        loop {
            match *stage {
                Stage::Waiting => {
                    *stage = Stage::Cancelled;
                    return SHARESTATE_OK;
                }
                Stage::Calling(thread) if thread != std::thread::current().id() => {
                    stage = self.over.wait(stage).unwrap_or_else(PoisonError::into_inner);
                }
                Stage::Cancelled | Stage::Calling(_) | Stage::Over => return SHARESTATE_TOO_LATE,
            }
        }
    }
}

/// Takes a callback back, for a caller that goes away. After `SHARESTATE_OK` the callback will not
/// run and its `user_data` may be freed. `SHARESTATE_TOO_LATE`: it has run and has returned; if it
/// is running on another thread, this waits until it has returned; called from within the callback
/// itself, this answers at once. `SHARESTATE_INVALID_HANDLE`: it has run, or the call is none.
///
/// The command itself is not taken back: it may have been carried out.
#[unsafe(no_mangle)]
pub extern "C" fn sharestate_cancel(call: Call) -> Status {
    total(SHARESTATE_INTERNAL, || match CALLS.get(call) {
        Some(running) => running.cancel(),
        None => SHARESTATE_INVALID_HANDLE,
    })
}
