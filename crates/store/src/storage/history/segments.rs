//! Segments: superseded versions of one object in one compressed frame, of which each version takes a twentieth of its row.
//!
//! - A version goes into a segment some time after it was superseded, and never before watches can no longer be resumed
//!   there: whoever reads the present, or the feed, finds it in `objects` alone.
//! - A segment is what its object was from its first version's revision until its end, the revision that superseded its
//!   last one. The rows of a key are moved oldest first, and a deletion's row stays. So the state at a revision has a key
//!   either in `objects`, by the newest row there at or before it, or in the one segment that holds it, never in both.
//! - Values are the stored ones, unpacked. Encrypted ones do not become smaller and stay, with all later rows of their key.

pub(in super::super) mod shared;

use std::borrow::Cow;
use std::collections::HashSet;

use bytes::Bytes;
use prost::Message;

use super::super::{Error, Key, Scan};
use crate::codec::at_rest::{self, ValueFormat};
use crate::codec::sealed::ENCRYPTED;
use crate::revision::Revision;
use crate::storage::stale::PROTOBUF;

/// The most versions of a segment, and the most bytes of all their values but the first one's.
const MOST_VERSIONS: usize = 64;
const MOST_BYTES: usize = 128 << 10;
/// The number of superseded rows of a live object that are worth a new segment. Those of a deleted one always are.
const ENOUGH: usize = 8;
/// zstd's own default.
const LEVEL: i32 = 3;

/// The parts that all versions of a segment have in common: their object and their encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Common {
    pub uid: String,
    pub stored_version: String,
    /// 0 for JSON or YAML, 1 for protobuf.
    pub format: i16,
}

/// Consecutive versions of one object.
#[derive(Clone, Debug)]
pub struct Segment {
    pub common: Common,
    pub end: Revision,
    versions: Vec<Kept>,
}

/// One version of an object.
#[derive(Clone, PartialEq, Message)]
pub struct Kept {
    #[prost(uint64, tag = "1")]
    pub revision: u64,
    #[prost(bytes = "bytes", tag = "2")]
    pub value: Bytes,
}

/// The content of a frame: versions, oldest first.
#[derive(Clone, PartialEq, Message)]
struct Frame {
    #[prost(message, repeated, tag = "1")]
    versions: Vec<Kept>,
}

impl Segment {
    /// The segment of a frame that was written by [`Segment::frame`].
    pub fn open(common: Common, end: Revision, frame: &[u8]) -> Result<Self, Error> {
        let damaged = |error: String| Error::Corrupt(format!("segments.value: {error}").into());
        let raw = zstd::decode_all(frame).map_err(|error| damaged(error.to_string()))?;
        let Frame { versions } =
            Frame::decode(Bytes::from(raw)).map_err(|error| damaged(error.to_string()))?;
        match versions.is_empty() {
            true => Err(damaged("no version".to_owned())),
            false => Ok(Self { common, end, versions }),
        }
    }

    /// The compressed versions.
    pub fn frame(&self) -> Result<Vec<u8>, Error> {
        let frame = Frame { versions: self.versions.clone() };
        // Only memory can be lacking.
        zstd::bulk::compress(&frame.encode_to_vec(), LEVEL)
            .map_err(|error| Error::Unavailable(error.to_string().into()))
    }

    pub fn first(&self) -> Revision {
        self.versions.first().map_or(self.end, |version| Revision(version.revision))
    }

    /// The versions, oldest first.
    pub fn versions(&self) -> &[Kept] {
        &self.versions
    }

    /// The version that was live at a revision, which must be the first one's or a later one.
    pub fn at(&self, at: Revision) -> Option<&Kept> {
        self.versions.iter().rev().find(|version| version.revision <= at.0)
    }

    fn has_room(&self, value: &[u8]) -> bool {
        let bytes: usize = self.versions.iter().map(|version| version.value.len()).sum();
        self.versions.len() < MOST_VERSIONS && bytes + value.len() <= MOST_BYTES
    }
}

/// A row of `objects`.
#[derive(Clone, Debug)]
pub struct VersionRow {
    pub revision: Revision,
    pub deleted: bool,
    pub uid: String,
    pub stored_version: String,
    pub value: Bytes,
}

impl VersionRow {
    fn is_sealed(&self) -> bool {
        self.value.starts_with(ENCRYPTED)
    }

    fn common(&self) -> Common {
        Common {
            uid: self.uid.clone(),
            stored_version: self.stored_version.clone(),
            format: i16::from(self.value.starts_with(PROTOBUF)),
        }
    }

    fn kept(&self) -> Kept {
        // What cannot be unpacked is kept as it is.
        let plain = at_rest::in_format(&self.value, ValueFormat::Plain);
        Kept { revision: self.revision.0, value: plain.unwrap_or_else(|_| self.value.clone()) }
    }
}

/// Versions of one key that go into segments.
#[derive(Clone, Debug)]
pub struct Move {
    pub key: Key,
    /// The rows of `objects` that go.
    pub rows: Vec<Revision>,
    /// The segments that are written, the first of them perhaps anew.
    pub segments: Vec<Segment>,
}

impl Move {
    /// The most rows that are moved at once.
    pub const ROWS: i64 = 256;

    /// Whether so many superseded rows of a key, which is deleted or not, are worth a move.
    pub fn is_due(rows: i64, is_deleted: bool) -> bool {
        rows >= ENOUGH as i64 || (rows > 0 && is_deleted)
    }

    /// The move of a key's rows, oldest first, all but the last of which are superseded; `last` is the key's newest segment.
    /// `None` if it is too early.
    pub fn plan(key: Key, rows: &[VersionRow], last: Option<Segment>) -> Option<Self> {
        let (newest, superseded) = rows.split_last()?;
        let sealed = superseded.iter().position(VersionRow::is_sealed).unwrap_or(superseded.len());
        let ready = superseded.get(..sealed)?;
        let live = ready.iter().filter(|row| !row.deleted).count();
        if !Self::is_due(live as i64, newest.deleted) {
            return None;
        }
        let before = last.as_ref().map(|last| last.versions.len());
        let mut segments: Vec<Segment> = last.into_iter().collect();
        for pair in rows.windows(2).take(ready.len()) {
            let [row, next] = pair else { continue };
            if row.deleted {
                continue;
            }
            let (common, kept) = (row.common(), row.kept());
            match segments.last_mut() {
                Some(open)
                    if open.common == common && open.end == row.revision && open.has_room(&kept.value) =>
                {
                    open.versions.push(kept);
                    open.end = next.revision;
                }
                _ => segments.push(Segment { common, end: next.revision, versions: vec![kept] }),
            }
        }
        // The newest segment was full, or of another object.
        if before.is_some_and(|before| segments.first().is_some_and(|first| first.versions.len() == before)) {
            segments.remove(0);
        }
        let rows = ready.iter().filter(|row| !row.deleted).map(|row| row.revision).collect();
        Some(Self { key, rows, segments })
    }
}

/// The moves that are made in one transaction.
#[derive(Debug)]
pub struct Slice {
    /// The number of moves that had been made when it was read.
    pub seen: i64,
    /// The changes up to this one have been looked at.
    pub to: Revision,
    pub moves: Vec<Move>,
    keys: HashSet<Key>,
}

/// A segment as it is stored.
pub struct Stored {
    pub key: Key,
    pub common: Common,
    pub first: Revision,
    pub end: Revision,
    pub versions: usize,
    pub frame: Vec<u8>,
}

impl Slice {
    /// The most changes that are looked at.
    pub const CHANGES: i64 = 2000;

    pub fn new(seen: i64, to: Revision) -> Self {
        Self { seen, to, moves: Vec::new(), keys: HashSet::new() }
    }

    /// Whether a key has not been looked at yet.
    pub fn begin(&mut self, key: &Key) -> bool {
        self.keys.insert(key.clone())
    }

    pub fn push(&mut self, moved: Move) {
        self.moves.push(moved);
    }

    /// Whether it moves as much as a writer may wait for.
    pub fn is_full(&self) -> bool {
        self.rows().count() >= Move::ROWS as usize
    }

    /// The rows of `objects` that go.
    pub fn rows(&self) -> impl Iterator<Item = Revision> {
        self.moves.iter().flat_map(|moved| moved.rows.iter().copied())
    }

    /// The segments, compressed.
    pub fn stored(&self) -> Result<Vec<Stored>, Error> {
        let segments =
            self.moves.iter().flat_map(|moved| moved.segments.iter().map(|segment| (&moved.key, segment)));
        let stored = |(key, segment): (&Key, &Segment)| {
            Ok(Stored {
                key: key.clone(),
                common: segment.common.clone(),
                first: segment.first(),
                end: segment.end,
                versions: segment.versions.len(),
                frame: segment.frame()?,
            })
        };
        segments.map(stored).collect()
    }
}

/// The statement that lists a resource, or one namespace of it: `list_past.sql` says where both begin.
pub fn past_list(all: &'static str, scan: &Scan) -> Cow<'static, str> {
    match scan.namespace {
        None => all.into(),
        Some(_) => ["?", "$"].iter().fold(all.into(), |sql: Cow<'_, str>, bind| {
            let all = format!("(namespace, name) > ({bind}3, {bind}4)");
            sql.replace(&all, &format!("namespace = {bind}3 AND name > {bind}4")).into()
        }),
    }
}

/// Numbers in a list of SQL; one that is no revision where there are none.
pub fn listed(revisions: impl Iterator<Item = Revision>) -> String {
    let list: Vec<String> = revisions.map(|revision| revision.to_string()).collect();
    if list.is_empty() { "-1".to_owned() } else { list.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::ResourceId;

    fn row(revision: u64, uid: &str, value: &str) -> VersionRow {
        VersionRow {
            revision: Revision(revision),
            deleted: uid.is_empty(),
            uid: uid.to_owned(),
            stored_version: "v1".to_owned(),
            value: value.to_owned().into(),
        }
    }

    fn plan(rows: &[VersionRow], last: Option<Segment>) -> Option<Move> {
        Move::plan(Key::new(ResourceId(1), "ns", "a"), rows, last)
    }

    fn spans(moved: &Move) -> Vec<(u64, u64, usize)> {
        moved.segments.iter().map(|s| (s.first().0, s.end.0, s.versions().len())).collect()
    }

    #[test]
    fn few_versions_of_a_live_object_stay_rows() {
        let rows: Vec<_> = (1..=9).map(|revision| row(revision, "u", "x")).collect();
        assert!(plan(&rows[..8], None).is_none());
        let moved = plan(&rows, None).expect("enough");
        assert_eq!((spans(&moved), moved.rows.len()), (vec![(1, 9, 8)], 8));
        let deleted = [row(1, "u", "x"), row(5, "", "")];
        assert_eq!(spans(&plan(&deleted, None).expect("deleted")), [(1, 5, 1)]);
        assert!(plan(&[row(5, "", ""), row(6, "v", "x")], None).is_none());
    }

    #[test]
    fn a_segment_grows_until_it_is_full_and_holds_one_object() {
        let rows: Vec<_> = (1..=9).map(|revision| row(revision * 10, "u", "x")).collect();
        let first = plan(&rows, None).expect("enough").segments.remove(0);
        let more: Vec<_> = (9..=20).map(|revision| row(revision * 10, "u", "x")).collect();
        let moved = plan(&more, Some(first.clone())).expect("enough");
        assert_eq!(spans(&moved), [(10, 200, 19)]);
        assert_eq!(first.at(Revision(34)).map(|version| version.revision), Some(30));

        let mut again: Vec<_> = (9..=12).map(|revision| row(revision * 10, "u", "x")).collect();
        again.extend([row(130, "", ""), row(140, "v", "x"), row(150, "", "")]);
        let moved = plan(&again, Some(first.clone())).expect("deleted");
        assert_eq!(spans(&moved), [(10, 130, 12), (140, 150, 1)]);
        assert_eq!(moved.rows, [90, 100, 110, 120, 140].map(Revision));

        let large: Vec<_> = (9..=20).map(|revision| row(revision * 10, "u", &"y".repeat(60_000))).collect();
        let moved = plan(&large, Some(first)).expect("enough");
        assert_eq!(spans(&moved)[0], (10, 110, 10));
        assert!(moved.segments[1..].iter().all(|segment| segment.versions().len() <= 2));
    }

    #[test]
    fn nothing_after_an_encrypted_version_is_moved() {
        let mut rows: Vec<_> = (1..=20).map(|revision| row(revision, "u", "x")).collect();
        rows[9].value = Bytes::from([ENCRYPTED, b"x"].concat());
        assert_eq!(spans(&plan(&rows, None).expect("enough")), [(1, 10, 9)]);
        rows[0].value = rows[9].value.clone();
        assert!(plan(&rows, None).is_none());
    }

    #[test]
    fn frames_are_read_back_and_damaged_ones_are_refused() {
        let rows: Vec<_> = (1..=65).map(|n| row(n, "u", &format!("{n} {}", "value ".repeat(100)))).collect();
        let segment = plan(&rows, None).expect("enough").segments.remove(0);
        let frame = segment.frame().expect("a frame");
        assert!(frame.len() < 64 * 600 / 20, "{}", frame.len());
        let read = Segment::open(segment.common.clone(), segment.end, &frame).expect("the segment");
        assert_eq!(read.versions(), segment.versions());
        let common = segment.common;
        assert!(Segment::open(common.clone(), Revision(65), &frame[..frame.len() / 2]).is_err());
        assert!(Segment::open(common.clone(), Revision(65), b"").is_err());
        assert!(
            Segment::open(common, Revision(65), &zstd::bulk::compress(b"", LEVEL).expect("fits")).is_err()
        );
    }
}
