//! mimalloc, with requests rounded so that it serves them fast.

use std::alloc::{GlobalAlloc, Layout};

use mimalloc::MiMalloc;

/// The table of a small map is 52 bytes, to be aligned to 16. mimalloc's blocks for that are of 56, of which every other
/// one is aligned, so that it takes a larger one and leaves a part of it empty, on a slow path. In blocks of a multiple
/// of the alignment all are aligned.
pub struct Allocator;

// SAFETY: every call goes on to mimalloc, which needs no layout to free; more than was asked for is as good.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        unsafe { MiMalloc.alloc(layout.pad_to_align()) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        unsafe { MiMalloc.alloc_zeroed(layout.pad_to_align()) }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        unsafe { MiMalloc.realloc(pointer, layout, size) }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { MiMalloc.dealloc(pointer, layout) }
    }
}
