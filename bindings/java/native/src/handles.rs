//! Numbers for open stores. Java holds the number, never a pointer; a number is used once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use crate::answer::Failure;
use crate::session::Session;

static OPEN: LazyLock<RwLock<HashMap<i64, Arc<Session>>>> = LazyLock::new(RwLock::default);
static NEXT: AtomicI64 = AtomicI64::new(1);

/// Gives a session its number.
pub(crate) fn add(session: Session) -> i64 {
    let handle = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut open = OPEN.write().unwrap_or_else(PoisonError::into_inner);
    open.insert(handle, Arc::new(session));
    handle
}

/// The session of a number, for starting a call or closing it.
pub(crate) fn get_open(handle: i64) -> Result<Arc<Session>, Failure> {
    get(handle).filter(|session| session.is_open()).ok_or_else(Failure::closed)
}

/// The session of a number, for fetching answers: they outlive the closing of the store.
pub(crate) fn get(handle: i64) -> Option<Arc<Session>> {
    let open = OPEN.read().unwrap_or_else(PoisonError::into_inner);
    open.get(&handle).cloned()
}

/// Takes a number out of use.
pub(crate) fn remove(handle: i64) {
    let session = OPEN.write().unwrap_or_else(PoisonError::into_inner).remove(&handle);
    drop(session); // outside the lock: the last one closes the store
}
