//! The large parts of a document: many named values, encoded one by one, because trees of all of them would take
//! many times the memory of their text.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// Encoded values by name.
pub(super) type Entries = BTreeMap<String, Box<RawValue>>;

/// A value as its text.
pub(super) fn encoded(value: &Value) -> Box<RawValue> {
    to_raw_value(value).expect("a JSON value can be written")
}

/// The value of a text.
pub(super) fn decoded(text: &RawValue) -> Value {
    serde_json::from_str(text.get()).expect("what was encoded here can be read")
}
