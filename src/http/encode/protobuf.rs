//! The same forms in protobuf. There are no Tables among them: negotiation sees to that.

use std::sync::Arc;

use bytes::Bytes;

use super::Encoder;
use super::Form;
use crate::api::error::Error;
use crate::api::list::List;
use crate::api::watch::WatchEvent;
use crate::cache::event::{EventType, FrameEncoding};
use crate::codec::object::{Object, Unencodable};
use crate::codec::protobuf::{self, Envelope, watch_frame};
use crate::http::status::Failure;
use crate::http::table::Columns;
use crate::tree::Value;

/// The message of an item of a list.
pub enum Item {
    /// That of a stored object, which has been made and is shared by everybody.
    Shared(Arc<Object>),
    Made(Vec<u8>),
}

impl Item {
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Shared(object) => object.protobuf().unwrap_or_default(),
            Self::Made(bytes) => bytes,
        }
    }
}

/// A list without its items, and the field they stand in.
pub struct ListHead {
    value: Value,
    message: Vec<u8>,
    pub items_number: i32,
}

impl ListHead {
    /// What stands before items of so many bytes, with their tags and lengths.
    pub fn before(&self, items: usize) -> Vec<u8> {
        let (api_version, kind) = claims(&self.value);
        let mut bytes = Envelope::head(api_version, kind, self.message.len() + items);
        bytes.extend_from_slice(&self.message);
        bytes
    }
}

/// A value that names its kind, in its envelope.
pub fn enveloped(value: &Value) -> Result<Vec<u8>, Error> {
    let (api_version, kind) = claims(value);
    Ok(Envelope::wrap(api_version, kind, &message(value)?))
}

impl Encoder {
    pub(super) fn protobuf_object(&self, object: &Object) -> Result<Vec<u8>, Error> {
        let (api_version, kind) = self.type_meta();
        if self.is_verbatim(object) {
            return Ok(Envelope::wrap(&api_version, kind, object.protobuf()?));
        }
        Ok(Envelope::wrap(&api_version, kind, &self.protobuf_message(object)?))
    }

    /// One item of a list.
    pub fn protobuf_item(&self, object: Arc<Object>) -> Result<Item, Error> {
        if self.is_verbatim(&object) {
            object.protobuf()?;
            return Ok(Item::Shared(object));
        }
        self.protobuf_message(&object).map(Item::Made)
    }

    /// The object in another form, or converted.
    fn protobuf_message(&self, object: &Object) -> Result<Vec<u8>, Error> {
        message(&self.formed(self.decode(object)?))
    }

    pub fn protobuf_list_head(&self, list: &List) -> Result<ListHead, Error> {
        let value = self.list_value(list);
        let (api_version, kind) = claims(&value);
        let items_number = protobuf::items_number(api_version, kind).map_err(|why| failed(kind, &why))?;
        let message = message(&value)?;
        Ok(ListHead { value, message, items_number })
    }

    pub(super) fn protobuf_event(&self, event: &WatchEvent) -> Result<Bytes, Error> {
        let stored = |kind: EventType, object: &Object| -> Result<Bytes, Unencodable> {
            let (api_version, name) = self.type_meta();
            Ok(watch_frame(kind.as_str(), &api_version, name, object.protobuf()?).into())
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

    fn type_meta(&self) -> (String, &str) {
        match &self.form {
            Form::Metadata(version) => (version.api_version().to_owned(), "PartialObjectMetadata"),
            Form::Table { .. } | Form::Object => {
                let definition = &self.resource.definition;
                (definition.api_version(), &definition.kind)
            }
        }
    }
}

fn frame(event: &str, value: &Value) -> Result<Bytes, Error> {
    let (api_version, kind) = claims(value);
    Ok(watch_frame(event, api_version, kind, &message(value)?).into())
}

fn message(value: &Value) -> Result<Vec<u8>, Error> {
    let (api_version, kind) = claims(value);
    let members = value.as_object().ok_or_else(|| Error::Internal("not an object".to_owned()))?;
    protobuf::encode(api_version, kind, members).map_err(|why| failed(kind, &why))
}

/// The oldest discovery documents have no apiVersion.
fn claims(value: &Value) -> (&str, &str) {
    let text = |name: &str| value[name].as_str().unwrap_or_default();
    (text("apiVersion"), text("kind"))
}

fn failed(kind: &str, why: &protobuf::Error) -> Error {
    Error::Internal(format!("a {kind} has no protobuf form: {why}"))
}
