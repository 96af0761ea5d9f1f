//! Offsets of certain members in the JSON of an object.

use super::kept::{ExactBytes, keep};
use super::tree::BEFORE_VERSION;
use crate::json::scan::{self, Members, key_is, raw_string};
use crate::revision::Revision;

/// Offsets into the JSON of an object. 32 bits suffice, since bodies are limited to a few MiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    /// The start of the object as a list item: at `"metadata"`, if `kind` and `apiVersion` stand before it; at the first
    /// member of an object that is sorted.
    pub body: u32,
    /// The place at which `"resourceVersion":"…"` is inserted.
    slot: u32,
    /// The comma that the inserted member needs: before it, behind it, or none.
    comma: Comma,
    /// The range of the labels object; empty if there are none.
    labels: (u32, u32),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Comma {
    #[default]
    None,
    Before,
    After,
}

/// The order of an object's members. Upstream's types print `kind` first, sorted maps `apiVersion`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Declared,
    /// By name; items of lists then keep `kind` and `apiVersion`, as upstream's maps do.
    Sorted,
}

impl Layout {
    pub fn find(value: &[u8]) -> Option<Self> {
        let mut members = Members::new(value, 0)?;
        let (mut body, mut order) = (None, None);
        while let Some(key) = members.key()? {
            let order = *order.get_or_insert(match key_is(value, &key, "apiVersion") {
                true => Order::Sorted,
                false => Order::Declared,
            });
            if key_is(value, &key, "metadata") {
                return Self::in_metadata(value, body.unwrap_or(key.start), members.at(), order);
            }
            let typed = key_is(value, &key, "kind") || key_is(value, &key, "apiVersion");
            if !typed || order == Order::Sorted {
                body.get_or_insert(key.start);
            }
            members.value()?;
        }
        None
    }

    fn in_metadata(value: &[u8], body: usize, metadata: usize, order: Order) -> Option<Self> {
        let mut members = Members::new(value, metadata)?;
        let mut slot = metadata + 1;
        let mut comma = Comma::None;
        let mut passed = false;
        let mut labels = (0, 0);
        while let Some(key) = members.key()? {
            let before = match order {
                Order::Declared => BEFORE_VERSION.iter().any(|name| key_is(value, &key, name)),
                Order::Sorted => raw_string(value, &key).is_some_and(|key| key < "resourceVersion"),
            };
            passed |= !before;
            if passed && comma == Comma::None {
                comma = Comma::After;
            }
            // managedFields are long, and come last in all objects that a server has printed: nothing needed follows.
            if passed && labels != (0, 0) && key_is(value, &key, "managedFields") {
                break;
            }
            let span = members.value()?;
            if !passed {
                (slot, comma) = (span.end, Comma::Before);
            }
            if key_is(value, &key, "labels") {
                labels = (u32::try_from(span.start).ok()?, u32::try_from(span.end).ok()?);
            }
        }
        Some(Self { body: u32::try_from(body).ok()?, slot: u32::try_from(slot).ok()?, comma, labels })
    }

    /// Inserts a resourceVersion into text that has none.
    pub fn put_version(self, json: &[u8], revision: Revision) -> (ExactBytes, Self) {
        self.splice(json, 0, &self.version_member(revision))
    }

    /// Replaces the resourceVersion `from` by `to`.
    pub fn replace_version(self, json: &[u8], from: Revision, to: Revision) -> (ExactBytes, Self) {
        self.splice(json, self.version_member(from).len(), &self.version_member(to))
    }

    /// The text without its resourceVersion.
    pub fn without_version(self, json: &[u8], from: Revision) -> ExactBytes {
        self.splice(json, self.version_member(from).len(), "").0
    }

    /// The raw text of a label's value.
    pub fn label<'j>(&self, json: &'j [u8], name: &str) -> Option<&'j str> {
        let (start, end) = self.labels;
        if start == end {
            return None;
        }
        let text = &json[..end as usize];
        let span = scan::member(text, start as usize, name)?;
        raw_string(text, &span)
    }

    /// The number of bytes that [`Layout::put_version`] has inserted.
    pub fn version_length(&self, revision: Revision) -> usize {
        self.version_member(revision).len()
    }

    fn version_member(&self, revision: Revision) -> String {
        match self.comma {
            Comma::None => format!("\"resourceVersion\":\"{revision}\""),
            Comma::Before => format!(",\"resourceVersion\":\"{revision}\""),
            Comma::After => format!("\"resourceVersion\":\"{revision}\","),
        }
    }

    /// Replaces the `old` bytes at the slot by `member`.
    fn splice(self, json: &[u8], old: usize, member: &str) -> (ExactBytes, Self) {
        let slot = self.slot as usize;
        let spliced = keep(&[&json[..slot], member.as_bytes(), &json[slot + old..]]);
        let shift = |at: u32| match at as usize {
            0 => 0,
            at if at >= slot => (at - old + member.len()) as u32,
            at => at as u32,
        };
        let labels = (shift(self.labels.0), shift(self.labels.1));
        (spliced, Self { labels, ..self })
    }
}
