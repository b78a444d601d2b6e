//! Threads, locks, channels and atomics of the parts that run beside each other: the standard
//! library's, or with `--cfg sharestate_shuttle` those of shuttle, which runs the real code in many
//! orders (`tools/models.sh`).
//!
//! tokio's semaphore and oneshot stay what they are: none of the calls that the store makes of them
//! blocks, so each is one step of a schedule, and the orders within it are tokio's own to test. The
//! clock stays too: a wait with a deadline never ends by it under shuttle.

#[cfg(not(sharestate_shuttle))]
pub(crate) use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError, atomic, mpsc},
    thread,
};

#[cfg(sharestate_shuttle)]
pub(crate) use shuttle::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError, atomic, mpsc},
    thread,
};

/// Where shuttle may go on with another thread although no lock is taken: file calls.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn step() {
    #[cfg(sharestate_shuttle)]
    thread::yield_now();
}
