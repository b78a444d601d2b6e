//! An allocator that fails once, when it is told to.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

#[global_allocator]
static ALLOCATOR: Failing = Failing;

/// Allocations until the one that fails; 0 when none does.
static LEFT: AtomicU64 = AtomicU64::new(0);

struct Failing;

/// The `k`-th allocation from now on fails, whatever thread asks.
pub fn fail_at(k: u64) {
    LEFT.store(k, Ordering::SeqCst);
}

/// Whether it has happened.
pub fn has_failed() -> bool {
    LEFT.load(Ordering::SeqCst) == 0
}

fn is_due() -> bool {
    let left = LEFT.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
    left == Ok(1)
}

// SAFETY: everything is the system allocator's; a null pointer is how an allocation fails.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_due() { std::ptr::null_mut() } else { unsafe { System.alloc(layout) } }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if is_due() {
            std::ptr::null_mut()
        } else {
            unsafe { System.realloc(pointer, layout, size) }
        }
    }
}
