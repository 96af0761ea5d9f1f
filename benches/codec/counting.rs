//! The server's allocator, with counters.

#![allow(unsafe_code, reason = "an allocator that counts is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicU64, Ordering};

use mimalloc::MiMalloc;

pub struct Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);
static TAKEN: AtomicU64 = AtomicU64::new(0);
static FREED: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on to mimalloc unchanged; the counters do not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller fulfils the contract of this method.
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller fulfils the contract of this method.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        FREED.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller fulfils the contract of this method.
        unsafe { MiMalloc.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        FREED.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller fulfils the contract of this method.
        unsafe { MiMalloc.dealloc(pointer, layout) }
    }
}

fn count(bytes: usize) {
    CALLS.fetch_add(1, Ordering::Relaxed);
    TAKEN.fetch_add(bytes as u64, Ordering::Relaxed);
}

/// The number of allocations so far, and their bytes.
pub fn allocations() -> (u64, u64) {
    (CALLS.load(Ordering::Relaxed), TAKEN.load(Ordering::Relaxed))
}

/// The number of bytes that have not been freed.
pub fn held() -> u64 {
    TAKEN.load(Ordering::Relaxed) - FREED.load(Ordering::Relaxed)
}
