//! The rules of `metadata`, as functions over its JSON object.
//!
//! They treat an absent, null or wrongly typed field as empty; for bodies that no schema has checked, [`types::check`]
//! runs before. The order of the fields is left to the encoder.

pub mod create;
pub(crate) mod managers;
pub mod owners;
pub mod types;
pub mod update;

use rand::Rng;
use rand::RngExt;

use crate::ObjectMap;
use crate::causes::Causes;
use crate::error::Error;
use crate::kinds::behavior::rules::object_meta;
use crate::schema::resource::Scope;
use crate::tree::{Map, Value};

/// The JSON object under `metadata`.
pub type Metadata = Map;

const GENERATED_PREFIX_MAX: usize = 58;

const GENERATED_SUFFIX: usize = 5;

/// The letters of generated names: no vowels and no look-alikes (apimachinery `rand.String`).
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Makes a name from a `generateName`: the prefix, cut to 58 bytes, and five random characters.
pub fn generate_name(prefix: &str, rng: &mut (impl Rng + ?Sized)) -> String {
    let mut name = prefix[..prefix.floor_char_boundary(GENERATED_PREFIX_MAX)].to_owned();
    for _ in 0..GENERATED_SUFFIX {
        name.push(char::from(ALPHABET[rng.random_range(0..ALPHABET.len())]));
    }
    name
}

/// Fills in the namespace of the URL; 400 if the body names another. `namespace` is `None` for cluster-scoped
/// resources.
pub fn ensure_namespace(metadata: &mut Metadata, namespace: Option<&str>) -> Result<(), Error> {
    match (text(metadata, "namespace"), namespace) {
        (same, Some(namespace)) if same == namespace => {}
        ("", Some(namespace)) => {
            metadata.insert("namespace", namespace.into());
        }
        (_, None) => {
            metadata.shift_remove("namespace");
        }
        _ => {
            let mismatch =
                "the namespace of the provided object does not match the namespace sent on the request";
            return Err(Error::bad_request(mismatch));
        }
    }
    Ok(())
}

/// 400 unless the body's name is the URL's.
pub fn check_name(metadata: &Metadata, name: &str) -> Result<(), Error> {
    match text(metadata, "name") {
        same if same == name => Ok(()),
        "" => Err(Error::BadRequest(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        ))),
        other => Err(Error::BadRequest(format!(
            "the name of the object ({other}) does not match the name on the URL ({name})"
        ))),
    }
}

/// A text field; empty if absent.
pub fn text<'a>(metadata: &'a Metadata, field: &str) -> &'a str {
    metadata.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The entries of `labels` or `annotations`.
pub fn pairs<'a>(metadata: &'a Metadata, field: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let entries = metadata.get(field).and_then(Value::as_object).into_iter().flatten();
    entries.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}

/// The value of a label, for [`crate::options::selector::label::LabelSelector::matches`].
pub fn label<'a>(metadata: &'a Metadata, key: &str) -> Option<&'a str> {
    metadata.get("labels")?.get(key).map(|value| value.as_str().unwrap_or_default())
}

pub fn finalizers(metadata: &Metadata) -> impl Iterator<Item = &str> {
    metadata.get("finalizers").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

pub fn is_terminating(metadata: &Metadata) -> bool {
    is_set(metadata, "deletionTimestamp")
}

/// Drops empty fields as upstream's types do: every field of `ObjectMeta` is `omitempty`.
pub fn drop_empty(metadata: &mut Metadata) {
    metadata.retain(|field, value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(entries) => !entries.is_empty(),
        // The other numbers are pointers in Go, so a 0 is printed.
        Value::Number(number) => field != "generation" || number.as_i64() != Some(0),
        Value::Bool(_) => true,
    });
}

fn is_set(metadata: &Metadata, field: &str) -> bool {
    metadata.get(field).is_some_and(|value| !value.is_null())
}

/// Rules of stored metadata that hold for every verb, in upstream's order (apimachinery `ValidateObjectMeta`).
fn validate_common(metadata: &Metadata, scope: Scope, causes: &mut Causes) {
    object_meta::namespace(metadata, scope, causes);
    object_meta::generation(metadata, causes);
    object_meta::labels(metadata, causes);
    object_meta::annotations(metadata, causes);
    object_meta::owners(metadata, causes);
    managers::validate(metadata, causes);
    object_meta::finalizers(metadata, causes);
}

/// The `metadata` of an object. Inserted if it is missing, so that callers can write to it.
pub fn metadata_mut(object: &mut ObjectMap) -> &mut Metadata {
    let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    match metadata {
        Value::Object(metadata) => metadata,
        _ => unreachable!("made an object above"),
    }
}

/// The `metadata` of an object, if there is one.
pub fn metadata(object: &ObjectMap) -> Option<&Metadata> {
    object.get("metadata").and_then(Value::as_object)
}

#[cfg(test)]
mod tests;
