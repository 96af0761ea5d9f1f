//! Comparison of secrets.

use aws_lc_rs::digest::{SHA256, digest};

/// Whether two texts are equal. Their hashes are compared, so that the time it takes says nothing about where they differ.
pub fn is_same(one: &[u8], other: &[u8]) -> bool {
    digest(&SHA256, one).as_ref() == digest(&SHA256, other).as_ref()
}
