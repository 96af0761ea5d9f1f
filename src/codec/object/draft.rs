//! Values on their way into the database and out of it.

use bytes::Bytes;

use super::kept::keep;
use super::layout::Layout;
use super::{Mark, Object, joined_key, tree};
use crate::codec::at_rest::{self, Opened, StorageMediaType, ValueFormat};
use crate::codec::protobuf::{self, with_version};
use crate::codec::{managed, yaml};
use crate::json::scan;
use crate::revision::Revision;
use crate::schema::builtin;
use crate::schema::kind::Kind;
use crate::schema::names::Gvk;
use crate::tree::{Map, Value};

/// A value at rest, ready to be written or to become an [`Object`].
#[derive(Clone, Debug)]
pub struct Draft {
    /// `namespace NUL name`: the order of bytes is the order of lists.
    key: Box<str>,
    value: Bytes,
    /// The object as JSON without resourceVersion; the value itself where it cannot be understood.
    json: Bytes,
    /// `None` if the value cannot be understood; it then lives on as an object that can only be deleted.
    layout: Option<Layout>,
    /// The object as protobuf without resourceVersion, if it was made for the value.
    message: Option<Bytes>,
    settled: Mark,
}

impl Draft {
    /// Encodes an object for storage, closed or open; a resourceVersion in it is left out. What a kind has no types for,
    /// or what is not of its types, is JSON in every case.
    pub fn encode(namespace: &str, name: &str, mut object: Map, media: StorageMediaType) -> Self {
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.shift_remove("resourceVersion");
        }
        // Whatever the media type, the object becomes what upstream's types make of it.
        let typed = claimed(&object).and_then(|kind| Some((typed(&kind, &object)?, kind)));
        let Some((Typed { message, json }, kind)) = typed else {
            managed::open(&mut object);
            return Self::of_json(namespace, name, tree::encode(object).into());
        };
        let value = match media {
            StorageMediaType::Protobuf => at_rest::of_message(&kind.gvk, &message),
            StorageMediaType::Json => at_rest::of_json(&json),
            StorageMediaType::Yaml => yaml_of(&json).unwrap_or_else(|| at_rest::of_json(&json)),
        };
        let layout = Layout::find(&json);
        let key = joined_key(namespace, name);
        Self { key, value, json, layout, message: Some(message), settled: Mark::default() }
    }

    /// A stored value of any kind, which nobody has validated. Never fails: what cannot be understood is kept as it is.
    /// An object from before there were the defaults of now gets them here, as upstream's does when it is decoded.
    pub fn parse(namespace: &str, name: &str, value: Bytes) -> Self {
        let complete = at_rest::is_complete(&value);
        let json = match StorageMediaType::of(&value) {
            StorageMediaType::Protobuf if complete => json_of(&value).ok(),
            StorageMediaType::Protobuf => message_of_old(&value),
            StorageMediaType::Json if complete => {
                Some(value.slice(..value.trim_ascii_end().len())).filter(is_json)
            }
            StorageMediaType::Json => json_of_old(&value),
            StorageMediaType::Yaml => yaml_of_any(&value),
        };
        match json {
            Some(json) => Self::of_value(namespace, name, value, json),
            None => Self::undecodable(namespace, name, value),
        }
    }

    /// A value that is JSON, as written by this program or validated.
    pub fn of_json(namespace: &str, name: &str, value: Bytes) -> Self {
        Self::of_value(namespace, name, value.clone(), value)
    }

    fn of_value(namespace: &str, name: &str, value: Bytes, json: Bytes) -> Self {
        let layout = Layout::find(&json);
        let json = if layout.is_some() { json } else { value.clone() };
        let key = joined_key(namespace, name);
        Self { key, value, json, layout, message: None, settled: Mark::default() }
    }

    fn undecodable(namespace: &str, name: &str, value: Bytes) -> Self {
        let (key, json) = (joined_key(namespace, name), value.clone());
        Self { key, value, json, layout: None, message: None, settled: Mark::default() }
    }

    /// Drops the protobuf form, so that the [`Object`] holds JSON alone until somebody asks for the other.
    pub fn without_message(self) -> Self {
        Self { message: None, ..self }
    }

    /// What is known of the object by a schema.
    pub fn settled(self, settled: Mark) -> Self {
        Self { settled, ..self }
    }

    /// The bytes at rest.
    pub fn value(&self) -> &Bytes {
        &self.value
    }

    /// The bytes at rest for readers who know this format and no newer one.
    pub fn value_in(&self, format: ValueFormat) -> Bytes {
        // What was just made can be opened.
        at_rest::in_format(&self.value, format).unwrap_or_else(|_| self.value.clone())
    }

    /// Whether these are its bytes at rest, in whichever format.
    pub fn is_stored_as(&self, found: &[u8]) -> bool {
        found == &self.value[..] || found == &self.value_in(ValueFormat::Plain)[..]
    }

    /// The shared form of this version.
    pub fn into_object(self, revision: Revision) -> Object {
        let Some(layout) = self.layout else {
            return Object::new(revision, self.key, keep(&[&self.json]), None);
        };
        let (json, layout) = layout.put_version(&self.json, revision);
        let object = Object { settled: self.settled, ..Object::new(revision, self.key, json, Some(layout)) };
        if let Some(message) = self.message.and_then(|message| with_version(&message, revision)) {
            let _ = object.protobuf.set(keep(&[&message]));
        }
        object
    }
}

/// An object as YAML; `None` if it would not be read back as it is. YAML has so many rules that this is tried out each
/// time, and what fails is stored as JSON.
fn yaml_of(json: &Bytes) -> Option<Bytes> {
    let object: Value = serde_json::from_slice(json).ok()?;
    let text = yaml::write(&object);
    (yaml::parse_stored(text.as_bytes()).as_ref() == Ok(&object)).then(|| text.into())
}

fn is_json(text: &Bytes) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok()
}

/// What is not of its types stays as it is.
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

/// What has no types, or is not of them, stays as it is.
fn json_of_old(value: &Bytes) -> Option<Bytes> {
    let claim = |name| scan::raw_string(value, &scan::member(value, 0, name)?);
    let gvk = Gvk::parse(claim("apiVersion").unwrap_or_default(), claim("kind").unwrap_or_default());
    if gvk.ok().and_then(|gvk| builtin::kind(&gvk)).is_none() {
        return Some(value.clone()).filter(is_json);
    }
    let object = serde_json::from_slice(value).ok()?;
    Some(completed(object).unwrap_or_else(|| value.clone()))
}

/// YAML is sorted; what has types is printed in their order.
fn yaml_of_any(value: &Bytes) -> Option<Bytes> {
    let Ok(Value::Object(object)) = yaml::parse_stored(value) else { return None };
    object.get("metadata").filter(|metadata| metadata.is_object())?;
    Some(completed(object.clone()).unwrap_or_else(|| tree::encode(object).into()))
}

/// An object with its defaults as it is printed; `None` if it is none of a kind that has types.
fn completed(object: Map) -> Option<Bytes> {
    let kind = claimed(&object)?;
    let object = kind.complete(object)?;
    typed(&kind, &object).map(|typed| typed.json)
}

/// An object in both forms.
struct Typed {
    message: Bytes,
    json: Bytes,
}

/// `None` if the object is not of the kind's types.
fn typed(kind: &Kind, object: &Map) -> Option<Typed> {
    let message = protobuf::encode(kind, object).ok()?;
    let json = protobuf::print_encoded(kind, &message).ok()?.into();
    Some(Typed { message: message.into(), json })
}

/// The kind that an object says it is of.
fn claimed(object: &Map) -> Option<Kind> {
    builtin::kind(&Gvk::of(object).ok()?)
}

/// The JSON of a value in an envelope.
fn json_of(value: &[u8]) -> Result<Bytes, protobuf::Error> {
    let Opened { gvk, message } = at_rest::open(value)?;
    let kind = builtin::kind(&gvk).ok_or(protobuf::Error::UnknownKind(gvk))?;
    Ok(protobuf::print(&kind, &message)?.into())
}
