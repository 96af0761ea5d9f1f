//! Two ways of counting: the store's own, and etcd's.
//!
//! The store gives every change a number of its own, the resourceVersion, called the *sequence* where both ways are spoken
//! of. etcd gives all changes of a transaction one revision, and some changes of a store none (a lease is granted). The
//! *lag* is how many changes have taken no revision so far: at the sequence S, etcd's revision is S - lag. In a store to
//! which nobody speaks etcd's API, the lag is 0 and both ways are the same.

use bytes::{BufMut as _, Bytes, BytesMut};

use super::Error;
use crate::revision::Revision;

/// How a change counts in etcd's terms. A [`Unit`](super::Unit) says it for all of its operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counting {
    /// The change takes a revision of its own, as every write of the Kubernetes API does.
    #[default]
    Own,
    /// The change has the revision of the next change, which is of the same unit, if that takes one. No page of the
    /// changefeed and no state ends between the two.
    Shared,
    /// The change takes no revision.
    None,
}

impl Counting {
    /// The number in the column `changes.uncounted`, the same in both databases.
    pub(super) fn code(self) -> Option<i16> {
        match self {
            Self::Own => None,
            Self::Shared => Some(1),
            Self::None => Some(2),
        }
    }

    pub(super) fn from_code(code: Option<i16>) -> Result<Self, Error> {
        match code {
            None => Ok(Self::Own),
            Some(1) => Ok(Self::Shared),
            Some(2) => Ok(Self::None),
            Some(other) => Err(Error::Corrupt(format!("changes.uncounted is {other}").into())),
        }
    }

    /// The revision of a change in etcd's terms, where `newest` was the newest one before its unit.
    pub(super) fn revision_after(self, newest: i64) -> i64 {
        match self {
            Self::Own | Self::Shared => newest + 1,
            Self::None => newest,
        }
    }

    /// The newest revision in etcd's terms after a change, where `newest` was the one before it.
    pub fn newest_after(self, newest: i64) -> i64 {
        match self {
            Self::Own => newest + 1,
            Self::Shared | Self::None => newest,
        }
    }
}

/// The length of a [stamp](stamped).
const STAMP: usize = size_of::<i64>();

/// A value with the revision of its write, in etcd's terms, before it.
pub(super) fn stamped(revision: i64, value: &[u8]) -> Bytes {
    let mut stored = BytesMut::with_capacity(STAMP + value.len());
    stored.put_i64(revision);
    stored.put_slice(value);
    stored.freeze()
}

/// Splits a stored value whose owner has asked for a stamp ([`Value::stamped`](super::Value::stamped)): the revision of
/// its write in etcd's terms, and the value as it was written. `None` if it is too short.
pub fn split_stamp(stored: &Bytes) -> Option<(i64, Bytes)> {
    let (stamp, _) = stored.split_first_chunk()?;
    Some((i64::from_be_bytes(*stamp), stored.slice(STAMP..)))
}

/// Fails unless a revision in etcd's terms is between that of the watch horizon and the newest one.
pub(super) fn check_counted(revision: i64, oldest: i64, newest: i64) -> Result<(), Error> {
    let told = |revision: i64| Revision(revision.max(0) as u64);
    if revision > newest {
        return Err(Error::Future { requested: told(revision), current: told(newest) });
    }
    if revision < oldest {
        return Err(Error::Compacted { oldest: told(oldest) });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_as_it_was_written() {
        let stored = stamped(-3, b"value");
        assert_eq!(split_stamp(&stored), Some((-3, Bytes::from_static(b"value"))));
        assert_eq!(split_stamp(&Bytes::from_static(b"short")), None);
    }
}
