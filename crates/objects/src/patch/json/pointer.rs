//! Paths of a JSON patch.

use std::num::{IntErrorKind, ParseIntError};

use crate::gotext::quote;
use crate::tree::{Map, Value};

/// The last step of a path, with the container in which it is taken.
pub enum Target<'a> {
    Member(&'a mut Map, String),
    Element(&'a mut Vec<Value>, String),
}

impl Target<'_> {
    /// The last step.
    pub fn key(&self) -> &str {
        let (Self::Member(_, key) | Self::Element(_, key)) = self;
        key
    }
}

/// Splits a path into the steps to the container, and the last step. The text before the first slash is ignored; a path
/// without a slash names nothing.
fn split(path: &str) -> Option<(impl Iterator<Item = &str>, &str)> {
    let (_, steps) = path.split_once('/')?;
    let (parents, last) = match steps.rsplit_once('/') {
        Some((parents, last)) => (Some(parents), last),
        None => (None, steps),
    };
    Some((parents.into_iter().flat_map(|parents| parents.split('/')), last))
}

/// The result of looking up a path.
pub enum Found<'a> {
    /// Null for an absent member of an object.
    Value(&'a Value),
    NoContainer,
    /// The container is a list without such an element, for this reason.
    NoElement(String),
}

pub fn found<'a>(document: &'a Value, path: &str) -> Found<'a> {
    static ABSENT: Value = Value::Null;
    let Some((mut parents, last)) = split(path) else { return Found::NoContainer };
    let holder = parents.try_fold(document, |at, step| match at {
        Value::Object(object) => object.get(&decode(step)),
        Value::Array(array) => array.get(index(&decode(step), array.len()).ok()?),
        _ => None,
    });
    match holder {
        Some(Value::Object(object)) => Found::Value(object.get(&decode(last)).unwrap_or(&ABSENT)),
        Some(Value::Array(array)) => match index(&decode(last), array.len()) {
            Ok(at) => Found::Value(&array[at]),
            Err(why) => Found::NoElement(why.text()),
        },
        _ => Found::NoContainer,
    }
}

/// The container of the value at `path`.
pub fn container<'a>(document: &'a mut Value, path: &str) -> Option<Target<'a>> {
    let (parents, last) = split(path)?;
    let mut at = document;
    for step in parents {
        at = child(at, &decode(step))?;
    }
    match at {
        Value::Object(object) => Some(Target::Member(object, decode(last))),
        Value::Array(array) => Some(Target::Element(array, decode(last))),
        _ => None,
    }
}

/// Whether `path` leads to `place`, to one of its ancestors, or to one of its descendants.
pub fn meets(path: &str, place: &[&str]) -> bool {
    let Some((_, steps)) = path.split_once('/') else { return true };
    steps.split('/').zip(place).all(|(step, name)| decode(step) == *name)
}

fn child<'a>(value: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    match value {
        Value::Object(object) => object.get_mut(key),
        Value::Array(array) => {
            let at = index(key, array.len()).ok()?;
            array.get_mut(at)
        }
        _ => None,
    }
}

/// Why a step is no index of an element, in the library's words.
pub enum Index {
    Unread(String),
    Outside(String),
}

impl Index {
    pub fn text(self) -> String {
        let (Self::Unread(why) | Self::Outside(why)) = self;
        why
    }
}

/// Parses an index below `length`. Negative ones count from the end; a sign and leading zeros are accepted.
pub fn index(key: &str, length: usize) -> Result<usize, Index> {
    let number: i64 = key.parse().map_err(|error: ParseIntError| {
        let why = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        Index::Unread(format!("strconv.Atoi: parsing {}: {why}", quote(key)))
    })?;
    let from_start = i64::try_from(length).ok().and_then(|length| match number {
        ..0 => number.checked_add(length),
        _ => Some(number),
    });
    let at = from_start.and_then(|at| usize::try_from(at).ok()).filter(|at| *at < length);
    let outside = || format!("Unable to access invalid index: {number}: invalid index referenced");
    at.ok_or_else(|| Index::Outside(outside()))
}

/// Decodes a step in a single pass, so that `~01` becomes `~1`.
fn decode(step: &str) -> String {
    let mut out = String::with_capacity(step.len());
    let mut rest = step;
    while let Some((plain, after)) = rest.split_once('~') {
        out.push_str(plain);
        let (c, skip) = match after.as_bytes().first() {
            Some(b'1') => ('/', 1),
            Some(b'0') => ('~', 1),
            _ => ('~', 0),
        };
        out.push(c);
        rest = &after[skip..];
    }
    out.push_str(rest);
    out
}
