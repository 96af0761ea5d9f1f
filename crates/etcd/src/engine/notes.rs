//! Notes: rows of the server beside keys and leases, by name. They take no revision.

use bytes::Bytes;

use super::lags::Sequence;
use super::rows::{append_number, read_number};

/// The number of the cluster.
pub const CLUSTER: &str = "cluster";
/// How often the clock has been moved ahead.
pub const TERM: &str = "term";
/// The revision before which states are gone.
pub const COMPACTION: &str = "compaction";

/// The term of a cluster whose clock has never been moved ahead.
pub const FIRST_TERM: u64 = 2;

/// A note, with the place of its write, by which a later one can expect it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub sequence: Sequence,
    pub value: Bytes,
}

/// A number in a note.
pub fn number(note: &[u8]) -> Option<u64> {
    read_number(&mut &*note)
}

pub fn of_number(number: u64) -> Bytes {
    let mut out = Vec::new();
    append_number(&mut out, number);
    out.into()
}
