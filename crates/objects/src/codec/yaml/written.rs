//! Documents that `emit` has written, read back: no aliases, no tags, one document, plain scalars that are JSON or plainly
//! strings. The reader neither recurses nor has the limits of clients' documents: keys of earlier releases are of any length
//! on one line.

use std::borrow::Cow;

use granit_parser::{Event, Parser, ScalarStyle};

use super::scalar::is_a_string;
use crate::tree::{Map, Text, Value};

/// The depth that the decoder of JSON takes, too; stored values nest less deeply (`codec::depth::MAX_DEPTH`).
const MAX_DEPTH: usize = 127;

/// A collection that has not ended.
enum Open {
    Array(Vec<Value>),
    /// With the key whose value is next.
    Object(Map, Option<Text>),
}

/// `None` for a document that `emit` would not have written.
pub fn read(document: &str) -> Option<Value> {
    let options = granit_parser::options! {
        // A key may be as long as the document.
        simple_key_max_lookahead: document.len().saturating_add(1),
    };
    let mut open: Vec<Open> = Vec::new();
    let mut whole = None;
    for next in Parser::new_from_str_with_options(document, options) {
        let (event, _) = next.ok()?;
        let value = match event {
            Event::StreamStart | Event::StreamEnd | Event::DocumentStart(..) | Event::DocumentEnd => continue,
            Event::SequenceStart(_, 0, None) if open.len() < MAX_DEPTH => {
                open.push(Open::Array(Vec::new()));
                continue;
            }
            Event::MappingStart(_, 0, None) if open.len() < MAX_DEPTH => {
                open.push(Open::Object(Map::new(), None));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop()? {
                Open::Array(items) => Value::Array(items),
                Open::Object(members, None) => Value::Object(members),
                Open::Object(_, Some(_)) => return None,
            },
            Event::Scalar(text, style, 0, None) => scalar(text, style)?,
            _ => return None,
        };
        match open.last_mut() {
            None if whole.is_some() => return None,
            None => whole = Some(value),
            Some(collection) => collection.add(value)?,
        }
    }
    whole
}

impl Open {
    fn add(&mut self, value: Value) -> Option<()> {
        match self {
            Open::Array(items) => items.push(value),
            Open::Object(members, key) => match (key.take(), value) {
                (None, Value::String(text)) => *key = Some(text),
                (None, _) => return None,
                (Some(key), _) if members.contains_key(&key) => return None,
                (Some(key), value) => drop(members.insert(key, value)),
            },
        }
        Some(())
    }
}

fn scalar(text: Cow<'_, str>, style: ScalarStyle) -> Option<Value> {
    if style == ScalarStyle::Plain && !is_a_string(&text) {
        return serde_json::from_str(&text).ok();
    }
    Some(Value::String((&*text).into()))
}
