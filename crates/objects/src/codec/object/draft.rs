//! Stored values: made from objects for writing, and turned into objects after reading.

use bytes::Bytes;

use super::kept::keep;
use super::layout::Layout;
use super::protobuf::Slot;
use super::{Mark, Object, joined_key, tree};
use crate::codec::at_rest::{self, Opened, StorageMediaType};
use crate::codec::protobuf::{self, with_version};
use crate::codec::sealed;
use crate::codec::yaml;
use crate::json::scan;
use crate::revision::Revision;
use crate::schema::builtin;
use crate::schema::kind::Kind;
use crate::schema::names::Gvk;
use crate::tree::{Map, Value};

/// A stored value, ready to be written or to become an [`Object`].
#[derive(Clone, Debug)]
pub struct Draft {
    /// `namespace NUL name`; its byte order is the order of lists.
    key: Box<str>,
    value: Bytes,
    /// The object as JSON without resourceVersion; if the value cannot be read, the value itself.
    json: Bytes,
    /// `None` if the value cannot be read. It is then kept as an object that can only be deleted.
    layout: Option<Layout>,
    /// The object's message without resourceVersion, if it was made for the value.
    message: Option<Bytes>,
    settled: Mark,
    /// The number of bytes of the value before it was packed or encrypted.
    length: usize,
    replaces: Replaces,
}

/// The version whose place a [`Draft`] takes, as far as a limit of lengths is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replaces {
    /// None, or one that the limit does not spare.
    Nothing,
    /// A version with [so long a JSON text](Object::json_length).
    Json(usize),
    /// A version that may become longer, too: a deletion marks it, or a migration writes it again.
    Anything,
}

impl Draft {
    /// Encodes an object, closed or open, for storage; its resourceVersion is left out. Objects without a Go type, and
    /// objects that do not conform to theirs, are stored as JSON in any case.
    pub fn encode(namespace: &str, name: &str, mut object: Map, media: StorageMediaType) -> Self {
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.shift_remove("resourceVersion");
        }
        // Whatever the media type is, the object is stored as upstream's Go types would print it.
        let typed = claimed(&object).and_then(|kind| Some((typed(&kind, &object)?, kind)));
        let Some((Typed { message, json }, kind)) = typed else {
            return Self::of_json(namespace, name, tree::encode(object).into());
        };
        let value = match media {
            StorageMediaType::Protobuf => at_rest::of_message(&kind.gvk, &message),
            StorageMediaType::Json => at_rest::of_json(&json),
            StorageMediaType::Yaml => yaml_of(&json).unwrap_or_else(|| at_rest::of_json(&json)),
        };
        let length = value.len().max(message.len());
        let layout = Layout::find(&json);
        let message = Some(message);
        Self { json, layout, message, length, ..Self::undecodable(namespace, name, value) }
    }

    /// Reads a stored value that has not been validated. Never fails: a value that cannot be read is kept as it is. An
    /// object from before the present defaults gets them here, as upstream defaults an object when it decodes it.
    pub fn parse(namespace: &str, name: &str, value: Bytes) -> Self {
        let complete = at_rest::is_complete(&value);
        let json = match StorageMediaType::of(&value) {
            StorageMediaType::Protobuf if complete => json_of(&value).ok(),
            StorageMediaType::Protobuf => message_of_old(&value),
            StorageMediaType::Json if complete => {
                Some(value.slice(..value.trim_ascii_end().len())).filter(is_json)
            }
            StorageMediaType::Json => json_of_old(&value),
            StorageMediaType::Yaml if sealed::is_encrypted(&value) => None,
            StorageMediaType::Yaml => yaml_of_any(&value),
        };
        match json {
            Some(json) => Self::of_value(namespace, name, value, json),
            None => Self::undecodable(namespace, name, value),
        }
    }

    /// A draft of a JSON value that this program has written or validated.
    pub fn of_json(namespace: &str, name: &str, value: Bytes) -> Self {
        Self::of_value(namespace, name, value.clone(), value)
    }

    fn of_value(namespace: &str, name: &str, value: Bytes, json: Bytes) -> Self {
        let layout = Layout::find(&json);
        let json = if layout.is_some() { json } else { value.clone() };
        Self { json, layout, ..Self::undecodable(namespace, name, value) }
    }

    fn undecodable(namespace: &str, name: &str, value: Bytes) -> Self {
        let (key, json, length) = (joined_key(namespace, name), value.clone(), value.len());
        let (settled, replaces) = (Mark::default(), Replaces::Nothing);
        Self { key, value, json, layout: None, message: None, settled, length, replaces }
    }

    /// Drops the message, so that the [`Object`] holds only JSON until a client asks for protobuf.
    pub fn without_message(self) -> Self {
        Self { message: None, ..self }
    }

    /// Stores these bytes, which are the encrypted value. The [`Object`] is the same.
    pub fn sealed(self, value: Bytes) -> Self {
        Self { value, ..self }
    }

    /// The draft with this mark, which its [`Object`] gets.
    pub fn settled(self, settled: Mark) -> Self {
        Self { settled, ..self }
    }

    /// The version whose place the draft takes.
    pub fn replacing(self, replaces: Replaces) -> Self {
        Self { replaces, ..self }
    }

    /// The number of bytes of the encoded object, unpacked and not encrypted.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The [length](Draft::length) that a limit counts: 0 if the object is shorter than the version that it
    /// [replaces](Replaces), or may be of any length.
    pub fn limited_length(&self) -> usize {
        let is_spared = match self.replaces {
            Replaces::Nothing => false,
            Replaces::Json(length) => self.json.len() < length,
            Replaces::Anything => true,
        };
        if is_spared { 0 } else { self.length }
    }

    /// The bytes to store.
    pub fn value(&self) -> &Bytes {
        &self.value
    }

    /// The object that readers share.
    pub fn into_object(self, revision: Revision) -> Object {
        let Some(layout) = self.layout else {
            return Object::new(revision, self.key, keep(&[&self.json]), None);
        };
        let (json, layout) = layout.put_version(&self.json, revision);
        let message = self.message.and_then(|message| with_version(&message, revision));
        Object {
            settled: self.settled,
            message: Slot::holding(message),
            ..Object::new(revision, self.key, json, Some(layout))
        }
    }
}

/// An object as YAML; `None` if parsing the text would not yield the same object. YAML has so many rules that this is
/// tested each time; an object that fails is stored as JSON.
fn yaml_of(json: &Bytes) -> Option<Bytes> {
    let object: Value = serde_json::from_slice(json).ok()?;
    let text = yaml::write(&object);
    (yaml::parse_stored(text.as_bytes()).as_ref() == Ok(&object)).then(|| text.into())
}

fn is_json(text: &Bytes) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok()
}

/// The completed message of an older value; `None` if it does not conform to its Go type.
fn message_of_old(value: &Bytes) -> Option<Bytes> {
    let Opened { gvk, message } = at_rest::open(value).ok()?;
    let kind = builtin::kind(&gvk)?;
    let members = protobuf::decode(&kind, &message).ok()?;
    let completed = kind.complete(members).and_then(|members| {
        let message = protobuf::encode(&kind, &members).ok()?;
        protobuf::print(&kind, &message).ok()
    });
    completed.or_else(|| protobuf::print(&kind, &message).ok()).map(Bytes::from)
}

/// The completed JSON of an older value; `None` if it has no Go type, or does not conform to it.
fn json_of_old(value: &Bytes) -> Option<Bytes> {
    let claim = |name| scan::raw_string(value, &scan::member(value, 0, name)?);
    let gvk = Gvk::parse(claim("apiVersion").unwrap_or_default(), claim("kind").unwrap_or_default());
    if gvk.ok().and_then(|gvk| builtin::kind(&gvk)).is_none() {
        return Some(value.clone()).filter(is_json);
    }
    let object = serde_json::from_slice(value).ok()?;
    Some(completed(object).unwrap_or_else(|| value.clone()))
}

/// The JSON of a YAML value, whose members are sorted; printed by its Go type if it has one.
fn yaml_of_any(value: &Bytes) -> Option<Bytes> {
    let Ok(Value::Object(object)) = yaml::parse_stored(value) else { return None };
    object.get("metadata").filter(|metadata| metadata.is_object())?;
    Some(completed(object.clone()).unwrap_or_else(|| tree::encode(object).into()))
}

/// The JSON of an object with its defaults; `None` if the kind has no Go type.
fn completed(object: Map) -> Option<Bytes> {
    let kind = claimed(&object)?;
    let object = kind.complete(object)?;
    typed(&kind, &object).map(|typed| typed.json)
}

/// An object in both encodings.
struct Typed {
    message: Bytes,
    json: Bytes,
}

/// Encodes the object; `None` if it does not conform to its Go type.
fn typed(kind: &Kind, object: &Map) -> Option<Typed> {
    let message = protobuf::encode(kind, object).ok()?;
    let json = protobuf::print_encoded(kind, &message).ok()?.into();
    Some(Typed { message: message.into(), json })
}

/// The kind that the object claims to have.
fn claimed(object: &Map) -> Option<Kind> {
    builtin::kind(&Gvk::of(object).ok()?)
}

/// The JSON of a protobuf value.
fn json_of(value: &[u8]) -> Result<Bytes, protobuf::Error> {
    let Opened { gvk, message } = at_rest::open(value)?;
    let kind = builtin::kind(&gvk).ok_or(protobuf::Error::UnknownKind(gvk))?;
    Ok(protobuf::print(&kind, &message)?.into())
}
