//! mimalloc, with requests rounded so that it serves them fast.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};

use mimalloc::MiMalloc;

/// The table of a small map is 52 bytes, to be aligned to 16. mimalloc's blocks for that are of 56, of which every other
/// one is aligned, so that it takes a larger one and leaves a part of it empty, on a slow path. In blocks of a multiple
/// of the alignment all are aligned.
pub struct Allocator;

/// Returns to the system what this thread has freed, and what others have. mimalloc does so later, when somebody frees
/// more, which may be long on a server that has nothing to do.
pub fn give_back() {
    // SAFETY: it takes no pointers, and any thread may call it at any time.
    unsafe { libmimalloc_sys::mi_collect(true) }
}

// SAFETY: every call goes on to mimalloc, which needs no layout to free; more than was asked for is as good.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of this very method.
        unsafe { MiMalloc.alloc(layout.pad_to_align()) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of this very method.
        unsafe { MiMalloc.alloc_zeroed(layout.pad_to_align()) }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps the contract of this very method.
        unsafe { MiMalloc.realloc(pointer, layout, size) }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of this very method.
        unsafe { MiMalloc.dealloc(pointer, layout) }
    }
}
