//! mimalloc, with requests rounded to sizes that it serves fast.

#![allow(unsafe_code, reason = "GlobalAlloc is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::time::{Duration, Instant};

use mimalloc::MiMalloc;

/// Rounds sizes to multiples of their alignment. The table of a small map, for example, has 52 bytes aligned to 16.
/// mimalloc's size class for that has blocks of 56 bytes, of which only every other one is aligned, so it would use a
/// larger block on a slow path. Blocks whose size is a multiple of the alignment are all aligned.
pub struct Allocator;

/// Returns the calling thread's freed memory to the system. mimalloc alone does that only on later frees, which may not come
/// for long on an idle server.
pub fn give_back() {
    // SAFETY: the function takes no pointers, and may be called by any thread at any time.
    unsafe { libmimalloc_sys::mi_collect(true) }
}

/// How often a thread looks through its memory.
const TIDY: Duration = Duration::from_secs(10);

/// Gives back what is free of the memory of the calling thread, now and then. Work moves from thread to thread, and mimalloc
/// notices what other threads have freed only where this one allocates blocks of the same size again; so each thread would
/// keep as much as it once needed.
pub fn tidy() {
    thread_local! {
        static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
    }
    let now = Instant::now();
    LAST.with(|last| match last.get() {
        Some(before) if now - before < TIDY => {}
        _ => {
            last.set(Some(now));
            give_back();
        }
    });
}

/// Lets all threads share one heap of the system's allocator, in which the bytes of objects are kept. With a heap for each
/// thread, which is the default, memory that was freed in one is lost to the others, and what is kept moves from one to the next.
/// To be called before there are other threads.
pub fn share() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the function takes no pointers.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

// SAFETY: every call is passed on to mimalloc, which needs no layout to free; a larger block than requested is allowed.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller fulfils the contract of this method.
        unsafe { MiMalloc.alloc(layout.pad_to_align()) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller fulfils the contract of this method.
        unsafe { MiMalloc.alloc_zeroed(layout.pad_to_align()) }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller fulfils the contract of this method.
        unsafe { MiMalloc.realloc(pointer, layout, size) }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller fulfils the contract of this method.
        unsafe { MiMalloc.dealloc(pointer, layout) }
    }
}
