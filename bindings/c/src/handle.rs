//! Tables of what C holds by number.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Numbers of all tables come from here, so that a handle of one kind is no handle of another, and
/// none is given out twice. 0 is never one.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Objects by handle.
pub(crate) struct Table<T> {
    objects: OnceLock<Mutex<HashMap<u64, Arc<T>>>>,
}

impl<T> Table<T> {
    pub const fn new() -> Self {
        Self { objects: OnceLock::new() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<T>>> {
        let objects = self.objects.get_or_init(Mutex::default);
        // Nothing panics while it holds the lock but for want of memory, which leaves the map
        // whole.
        objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an object and answers its handle.
    pub fn insert(&self, object: Arc<T>) -> u64 {
        let handle = NEXT.fetch_add(1, Ordering::Relaxed);
        self.lock().insert(handle, object);
        handle
    }

    /// The object of a handle, if it is one.
    pub fn get(&self, handle: u64) -> Option<Arc<T>> {
        self.lock().get(&handle).map(Arc::clone)
    }

    /// Takes the object of a handle out: from now on it is none. The lock is not held any more when
    /// the object is dropped.
    pub fn remove(&self, handle: u64) -> Option<Arc<T>> {
        self.lock().remove(&handle)
    }

    /// How many there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.lock().len()
    }
}
