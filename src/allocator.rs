//! mimalloc, with requests rounded to sizes that it serves fast.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};

use mimalloc::MiMalloc;

/// Rounds sizes to multiples of their alignment. The table of a small map, for example, has 52 bytes aligned to 16.
/// mimalloc's size class for that has blocks of 56 bytes, of which only every other one is aligned, so it would use a
/// larger block on a slow path. Blocks whose size is a multiple of the alignment are all aligned.
pub struct Allocator;

/// Returns freed memory of all threads to the system. mimalloc alone does that only on later frees, which may not come
/// for long on an idle server.
pub fn give_back() {
    // SAFETY: the function takes no pointers, and may be called by any thread at any time.
    unsafe { libmimalloc_sys::mi_collect(true) }
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
