//! Values on their way into the database and out of it.

use bytes::Bytes;
use serde_json::{Map, Value};

use super::kept::keep;
use super::layout::Layout;
use super::{Object, joined_key, tree};
use crate::codec::at_rest::StorageMediaType;
use crate::codec::protobuf::{self, Envelope, with_version};
use crate::codec::yaml;
use crate::revision::Revision;

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
}

impl Draft {
    /// Encodes an object for storage; a resourceVersion in it is left out. What a kind has no types for, or what is
    /// not of its types, is JSON in every case.
    pub fn encode(
        namespace: &str,
        name: &str,
        mut object: Map<String, Value>,
        media: StorageMediaType,
    ) -> Self {
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.shift_remove("resourceVersion");
        }
        // Whatever the media type, the object becomes what upstream's types make of it.
        let Ok((value, (json, message))) = typed(&object) else {
            return Self::of_json(namespace, name, tree::encode(&object).into());
        };
        let value = match media {
            StorageMediaType::Protobuf => value,
            StorageMediaType::Json => json.clone(),
            StorageMediaType::Yaml => match serde_json::from_slice(&json) {
                Ok(object) => yaml::write(&object).into(),
                Err(_) => json.clone(),
            },
        };
        let layout = Layout::find(&json);
        Self { key: joined_key(namespace, name), value, json, layout, message: Some(message) }
    }

    /// A stored value of any kind, which nobody has validated. Never fails: what cannot be understood is kept as it is.
    pub fn parse(namespace: &str, name: &str, value: Bytes) -> Self {
        if Envelope::recognizes(&value) {
            return match open(&value) {
                Ok((json, _)) => Self::of_value(namespace, name, value, json),
                Err(_) => Self::undecodable(namespace, name, value),
            };
        }
        if serde_json::from_slice::<serde::de::IgnoredAny>(&value).is_ok() {
            return Self::of_json(namespace, name, value);
        }
        match yaml::parse(&value) {
            Ok(Value::Object(object)) if object.get("metadata").is_some_and(Value::is_object) => {
                // YAML is sorted; what has types is printed in their order.
                let typed = typed(&object).map(|(_, (json, _))| json);
                let json = typed.unwrap_or_else(|_| tree::encode(&object).into());
                Self::of_value(namespace, name, value, json)
            }
            _ => Self::undecodable(namespace, name, value),
        }
    }

    /// A value that is JSON, as written by this program or validated.
    pub fn of_json(namespace: &str, name: &str, value: Bytes) -> Self {
        Self::of_value(namespace, name, value.clone(), value)
    }

    fn of_value(namespace: &str, name: &str, value: Bytes, json: Bytes) -> Self {
        let layout = Layout::find(&json);
        let json = if layout.is_some() { json } else { value.clone() };
        Self { key: joined_key(namespace, name), value, json, layout, message: None }
    }

    fn undecodable(namespace: &str, name: &str, value: Bytes) -> Self {
        Self { key: joined_key(namespace, name), json: value.clone(), value, layout: None, message: None }
    }

    /// Drops the protobuf form, so that the [`Object`] holds JSON alone until somebody asks for the other.
    pub fn without_message(self) -> Self {
        Self { message: None, ..self }
    }

    /// The bytes at rest.
    pub fn value(&self) -> &Bytes {
        &self.value
    }

    /// The shared form of this version.
    pub fn into_object(self, revision: Revision) -> Object {
        let Some(layout) = self.layout else {
            return Object::new(revision, self.key, keep(&[&self.json]), None);
        };
        let (json, layout) = layout.put_version(&self.json, revision);
        let object = Object::new(revision, self.key, json, Some(layout));
        if let Some(message) = self.message.and_then(|message| with_version(&message, revision)) {
            let _ = object.protobuf.set(keep(&[&message]));
        }
        object
    }
}

/// An object in its envelope, and what [`open`] makes of that.
fn typed(object: &Map<String, Value>) -> Result<(Bytes, (Bytes, Bytes)), protobuf::Error> {
    let text = |name| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let value = Bytes::from(protobuf::envelop(text("apiVersion"), text("kind"), object)?);
    let opened = open(&value)?;
    Ok((value, opened))
}

/// The JSON of a value in an envelope, and its message.
fn open(value: &Bytes) -> Result<(Bytes, Bytes), protobuf::Error> {
    let envelope = Envelope::parse(value)?;
    let json = protobuf::print(&envelope.api_version, &envelope.kind, envelope.raw)?;
    Ok((json.into(), value.slice_ref(envelope.raw)))
}
