//! The forms of objects in protobuf. Tables are not among them; negotiation does not offer these.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;

use super::Encoder;
use super::Form;
use crate::api::error::Error;
use crate::api::verbs::list::List;
use crate::api::verbs::watch::WatchEvent;
use crate::cache::event::{EventType, FrameEncoding};
use crate::codec::object::{Message, Object, Unencodable};
use crate::codec::protobuf::{self, Envelope, watch_frame};
use crate::http::response::status::Failure;
use crate::http::response::table::Columns;
use crate::schema::builtin;
use crate::schema::kind::Kind;
use crate::schema::names::Gvk;
use crate::tree::{Map, Value};

/// The message of a list item.
pub enum Item {
    /// The message of a stored object, which all readers share.
    Shared(Message),
    Made(Vec<u8>),
}

impl Item {
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Shared(message) => message,
            Self::Made(bytes) => bytes,
        }
    }
}

/// A list without items, and the field number of its items.
pub struct ListHead {
    kind: Kind,
    message: Vec<u8>,
    pub items_number: i32,
}

impl ListHead {
    /// The bytes before items that have this total length, tags and lengths included.
    pub fn before(&self, items: usize) -> Vec<u8> {
        let mut bytes = Envelope::head(&self.kind.gvk, self.message.len() + items);
        bytes.extend_from_slice(&self.message);
        bytes
    }
}

/// A value in its envelope. The value must contain its kind.
pub fn enveloped(value: &Value) -> Result<Vec<u8>, Error> {
    let kind = kind_of(value)?;
    Ok(Envelope::wrap(&kind.gvk, &message(&kind, value)?))
}

impl Encoder {
    pub(super) fn protobuf_object(&self, object: &Object) -> Result<Vec<u8>, Error> {
        let gvk = self.gvk();
        if self.is_verbatim(object) {
            return Ok(Envelope::wrap(&gvk, &object.protobuf()?));
        }
        Ok(Envelope::wrap(&gvk, &self.protobuf_message(object)?))
    }

    /// One item of a list.
    pub fn protobuf_item(&self, object: Arc<Object>) -> Result<Item, Error> {
        if self.is_verbatim(&object) {
            return Ok(Item::Shared(object.protobuf()?));
        }
        self.protobuf_message(&object).map(Item::Made)
    }

    /// The message of an object that is transformed or converted.
    fn protobuf_message(&self, object: &Object) -> Result<Vec<u8>, Error> {
        let value = self.formed(self.decode(object)?);
        message(&kind_of(&value)?, &value)
    }

    pub fn protobuf_list_head(&self, list: &List) -> Result<ListHead, Error> {
        self.resource.note_protobuf_list();
        let value = self.list_value(list);
        let kind = kind_of(&value)?;
        let items_number = protobuf::items_number(&kind).map_err(|why| failed(&kind.gvk, &why))?;
        let message = message(&kind, &value)?;
        Ok(ListHead { kind, message, items_number })
    }

    pub(super) fn protobuf_event(&self, event: &WatchEvent) -> Result<Bytes, Error> {
        let stored = |kind: EventType, object: &Object| -> Result<Bytes, Unencodable> {
            Ok(watch_frame(kind.as_str(), &self.gvk(), &object.protobuf()?).into())
        };
        match event {
            WatchEvent::State(object) if self.is_verbatim(object) => Ok(stored(EventType::Added, object)?),
            WatchEvent::Change { event, kind } if self.is_verbatim_event(event, *kind) => {
                let frame = event.frame(*kind, FrameEncoding::Protobuf, |object| stored(*kind, object));
                Ok(frame.ok_or_else(Error::event_without_object)??)
            }
            WatchEvent::State(object) => self.protobuf_frame(EventType::Added.as_str(), self.decode(object)?),
            WatchEvent::Change { event, kind } => {
                let object = event.object(*kind).ok_or_else(Error::event_without_object)?;
                self.protobuf_frame(kind.as_str(), self.decode(object)?)
            }
            WatchEvent::Bookmark { revision, end_of_state } => {
                self.protobuf_frame("BOOKMARK", self.bookmark(*revision, *end_of_state))
            }
            WatchEvent::Error(error) => frame("ERROR", &Failure::from(error).body),
        }
    }

    fn protobuf_frame(&self, event: &str, object: Value) -> Result<Bytes, Error> {
        frame(event, &self.watched(object, Columns::Omitted))
    }

    /// The kind of the answer's objects.
    fn gvk(&self) -> Cow<'_, Gvk> {
        match &self.form {
            Form::Metadata(version) => Cow::Owned(Gvk::fixed(version.api_version(), "PartialObjectMetadata")),
            Form::Table { .. } | Form::Object => Cow::Borrowed(self.resource.definition.gvk()),
        }
    }
}

fn frame(event: &str, value: &Value) -> Result<Bytes, Error> {
    let kind = kind_of(value)?;
    Ok(watch_frame(event, &kind.gvk, &message(&kind, value)?).into())
}

fn message(kind: &Kind, value: &Value) -> Result<Vec<u8>, Error> {
    protobuf::encode(kind, members(value)?).map_err(|why| failed(&kind.gvk, &why))
}

/// The kind that a value contains. The oldest discovery documents have no apiVersion.
fn kind_of(value: &Value) -> Result<Kind, Error> {
    let gvk = Gvk::of(members(value)?).map_err(|why| Error::Internal(why.to_string()))?;
    builtin::kind(&gvk).ok_or_else(|| failed(&gvk, &protobuf::Error::UnknownKind(gvk.clone())))
}

fn members(value: &Value) -> Result<&Map, Error> {
    value.as_object().ok_or_else(|| Error::Internal("not an object".to_owned()))
}

fn failed(gvk: &Gvk, why: &protobuf::Error) -> Error {
    Error::Internal(format!("a {} has no protobuf form: {why}", gvk.kind))
}
