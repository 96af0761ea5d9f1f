//! Bytes that are kept for as long as the object is.

use std::alloc::System;

use allocator_api2::boxed::Box;
use allocator_api2::vec::Vec;

/// Nobody shares them but through the object, so they need no count of their own, which would be one more place in
/// memory to visit for each item of a list.
pub type Kept = Box<[u8], System>;

/// The pieces one after the other, in memory of just that size. The allocator of everything else rounds up to classes
/// that are a quarter apart, 400 bytes for an object of 2.1 KB, which is good for what comes and goes.
pub fn keep(pieces: &[&[u8]]) -> Kept {
    let mut bytes = Vec::with_capacity_in(pieces.iter().map(|piece| piece.len()).sum(), System);
    for piece in pieces {
        bytes.extend_from_slice(piece);
    }
    bytes.into_boxed_slice()
}
