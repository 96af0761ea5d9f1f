//! Intervals of keys, as requests give them: a key, and the end of a range.

use std::ops::Bound;

use bytes::Bytes;

/// The end of a range that has none.
const OPEN: &[u8] = b"\0";

/// Two bounds among keys.
pub type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// One key, or the keys from one up to before another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    key: Bytes,
    /// Empty: only the key; NUL: all keys from it on.
    end: Bytes,
}

impl Interval {
    pub fn new(key: &Bytes, end: &Bytes) -> Self {
        Self { key: key.clone(), end: end.clone() }
    }

    /// The interval of a watch, for which no key stands for the least one.
    pub fn watched(key: &Bytes, end: &Bytes) -> Self {
        if key.is_empty() { Self::new(&Bytes::from_static(OPEN), end) } else { Self::new(key, end) }
    }

    /// The key, if the interval is only one.
    pub fn as_key(&self) -> Option<&Bytes> {
        self.end.is_empty().then_some(&self.key)
    }

    pub fn is_everything(&self) -> bool {
        self.end == OPEN && self.key <= OPEN
    }

    /// Whether the interval has no keys, since its end is not behind its start.
    pub fn is_empty(&self) -> bool {
        !self.end.is_empty() && self.end != OPEN && self.key >= self.end
    }

    pub fn contains(&self, key: &[u8]) -> bool {
        self.bounds().is_some_and(|(start, end)| {
            let after = match start {
                Bound::Included(start) => key >= start,
                _ => true,
            };
            after
                && match end {
                    Bound::Included(end) => key <= end,
                    Bound::Excluded(end) => key < end,
                    Bound::Unbounded => true,
                }
        })
    }

    /// The bounds among keys; `None` if the interval is empty.
    pub fn bounds(&self) -> Option<Bounds<'_>> {
        let start = Bound::Included(&self.key[..]);
        match &self.end[..] {
            _ if self.is_empty() => None,
            [] => Some((start, Bound::Included(&self.key[..]))),
            OPEN => Some((start, Bound::Unbounded)),
            end => Some((start, Bound::Excluded(end))),
        }
    }

    /// The part of the interval from a key of it on.
    pub fn from(&self, key: &Bytes) -> Self {
        Self::new(key, &self.end)
    }

    /// The first key of the interval, and the first behind it, if it has an end.
    pub fn edges(&self) -> (Bytes, Option<Bytes>) {
        let end = match &self.end[..] {
            // The next key after one is the one with NUL appended.
            [] => Some([&self.key[..], &[0]].concat().into()),
            OPEN => None,
            _ => Some(self.end.clone()),
        };
        (self.key.clone(), end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(key: &'static str, end: &'static str) -> Interval {
        Interval::new(&key.into(), &end.into())
    }

    #[test]
    fn an_interval_has_the_keys_of_etcd() {
        let has = |interval: &Interval| {
            ["\0", "a", "a\0", "b", "c"]
                .into_iter()
                .filter(|key| interval.contains(key.as_bytes()))
                .collect::<Vec<_>>()
        };
        assert_eq!(has(&interval("a", "")), ["a"]);
        assert_eq!(has(&interval("a", "c")), ["a", "a\0", "b"]);
        assert_eq!(has(&interval("b", "\0")), ["b", "c"]);
        assert_eq!(has(&interval("\0", "\0")), ["\0", "a", "a\0", "b", "c"]);
        assert!(has(&interval("c", "a")).is_empty());
        assert!(
            interval("c", "a").is_empty() && interval("a", "a").is_empty() && !interval("a", "").is_empty()
        );
        assert!(interval("\0", "\0").is_everything() && !interval("a", "\0").is_everything());
    }

    #[test]
    fn a_watch_without_a_key_begins_with_the_least_one() {
        assert_eq!(Interval::watched(&Bytes::new(), &"b".into()), interval("\0", "b"));
    }
}
