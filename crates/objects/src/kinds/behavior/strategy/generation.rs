//! `metadata.generation`: who counts, and what counts as a change.

use crate::fields;
use crate::fields::ObjectMap;
use crate::tree::{Map, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// The server never sets it; create keeps what was sent.
    Untouched,
    /// 1 for ever.
    CreateOnly,
    /// Grows when anything but metadata and status changes; absent and empty lists are the same.
    Content,
    /// Like `Content`, from 1 at the first change; create keeps what was sent.
    FromFirstChange,
    /// Like `Content`, and with this part of the metadata.
    ContentAnd(&'static str),
    /// Custom resources: any difference counts; `status` too, unless it is a subresource.
    Custom { status: bool },
}

impl Generation {
    pub fn create(self, object: &mut ObjectMap) {
        if !matches!(self, Generation::Untouched | Generation::FromFirstChange) {
            fields::object_mut(object, "metadata").insert("generation", 1.into());
        }
    }

    pub fn update(self, new: &mut ObjectMap, old: &ObjectMap) {
        fields::restore_metadata(new, old, "generation");
        if self.changed(new, old) {
            let before = fields::at(old, &["metadata", "generation"]).and_then(Value::as_i64).unwrap_or(0);
            let after = before.saturating_add(1).into();
            fields::object_mut(new, "metadata").insert("generation", after);
        }
    }

    fn changed(self, new: &ObjectMap, old: &ObjectMap) -> bool {
        let same_part = |part| pairs(new, part) == pairs(old, part);
        match self {
            Generation::Untouched | Generation::CreateOnly => false,
            Generation::Content | Generation::FromFirstChange => !same_content(new, old),
            Generation::ContentAnd(part) => !same_content(new, old) || !same_part(part),
            Generation::Custom { status } => {
                let counts = |key: &str| key != "metadata" && (status || key != "status");
                differs(new, old, counts) || differs(old, new, counts)
            }
        }
    }
}

fn same_content(new: &ObjectMap, old: &ObjectMap) -> bool {
    let counts = |key: &str| !matches!(key, "apiVersion" | "kind" | "metadata" | "status");
    let gone = old.keys().filter(|key| !new.contains_key(key));
    new.keys().chain(gone).filter(|key| counts(key)).all(|key| same(new.get(key), old.get(key)))
}

/// Is there a key of `left` that `right` has not or has otherwise?
fn differs(left: &ObjectMap, right: &ObjectMap, counts: impl Fn(&str) -> bool) -> bool {
    left.iter().any(|(key, value)| counts(key) && right.get(key) != Some(value))
}

/// Labels or annotations; none and empty are the same.
fn pairs<'a>(object: &'a ObjectMap, part: &str) -> Option<&'a ObjectMap> {
    let pairs = fields::at(object, &["metadata", part]).and_then(Value::as_object);
    pairs.filter(|pairs| !pairs.is_empty())
}

/// Upstream's `apiequality.Semantic` as far as it can be without types: nulls and empty lists are nothing. Empty
/// objects are something, because `emptyDir: {}` is.
fn same(left: Option<&Value>, right: Option<&Value>) -> bool {
    match (present(left), present(right)) {
        (None, None) => true,
        (Some(left), Some(right)) if fields::identical(left, right) => true,
        (Some(Value::Object(left)), Some(Value::Object(right))) => same_objects(left, right),
        (Some(Value::Array(left)), Some(Value::Array(right))) => {
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| same(Some(l), Some(r)))
        }
        (left, right) => left == right,
    }
}

fn present(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_null() && value.as_array().is_none_or(|items| !items.is_empty()))
}

fn same_objects(left: &Map, right: &Map) -> bool {
    left.iter().all(|(key, value)| same(Some(value), right.get(key)))
        && right.keys().all(|key| left.contains_key(key) || same(None, right.get(key)))
}
