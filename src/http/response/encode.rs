//! Encodes the objects of an answer: unchanged, as metadata only, or as a Table.
//!
//! The most frequent form, stored JSON without changes, is copied and never parsed. The protobuf form of an object is
//! made only once.

mod protobuf;

use std::sync::Arc;

use bytes::Bytes;

use super::negotiate::{MetaVersion, Negotiated, Transform};
use super::status::Failure;
use super::table;
use super::table::{Columns, IncludeObject, RowOptions};
use crate::api::Answer;
use crate::api::error::Error;
use crate::api::options::watch::INITIAL_EVENTS_END;
use crate::api::resource::Resource;
use crate::api::verbs::list::List;
use crate::api::verbs::watch::WatchEvent;
use crate::cache::event::{Event, EventType, FrameEncoding};
use crate::codec::media_type::MediaType;
use crate::codec::object::{Object, Undecodable};
use crate::codec::yaml;
use crate::json::text::{write_indented, write_json, write_string};
use crate::kinds::behavior::columns::{EmptyRows, TablePrinter};
use crate::pieces;
use crate::revision::Revision;
use crate::tree::{Value, json};
use crate::wall_clock::WallClock;

pub use protobuf::{Item, enveloped};

/// The negotiated form of the answer's objects.
pub struct Encoder {
    resource: Arc<Resource>,
    form: Form,
    pub media: MediaType,
    pub pretty: bool,
}

/// The facts that the form of an answer follows from.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    pub negotiated: &'a Negotiated,
    /// The query parameter `includeObject`, which only Tables use.
    pub include: Option<&'a str>,
    /// The clock by which Tables show ages.
    pub clock: &'a WallClock,
}

enum Form {
    Object,
    Metadata(MetaVersion),
    Table {
        printer: TablePrinter,
        version: MetaVersion,
        include: IncludeObject,
        clock: WallClock,
        /// The object of a list that is the default.
        default: Option<String>,
    },
}

impl Form {
    fn of(
        Asked { negotiated, include, clock }: Asked<'_>,
        printer: impl FnOnce() -> TablePrinter,
    ) -> Result<Self, Error> {
        Ok(match negotiated.transform {
            None | Some(Transform::ApiGroupDiscoveryList) => Self::Object,
            Some(
                Transform::PartialObjectMetadata(version) | Transform::PartialObjectMetadataList(version),
            ) => Self::Metadata(version),
            Some(Transform::Table(version)) => {
                let include = IncludeObject::parse(include)?;
                Self::Table { printer: printer(), version, include, clock: clock.clone(), default: None }
            }
        })
    }

    /// The form of one object; only the first event of a watch has a Table's columns.
    fn apply(&self, object: Value, columns: Columns) -> Value {
        match self {
            Self::Object => object,
            Self::Metadata(version) => table::partial_object_metadata(*version, &object),
            Self::Table { printer, version, include, clock, .. } => {
                let row = table::row(printer, &object, &row_options(*version, *include, clock));
                table::table(*version, printer, columns, table::object_metadata(&object), vec![row])
            }
        }
    }
}

/// The whole answer with a Scale of the resource.
pub fn scale(resource: &Resource, scale: Value, asked: Asked<'_>, pretty: bool) -> Result<Vec<u8>, Error> {
    let form = Form::of(asked, || resource.behavior.columns.of_scale())?;
    encode(&form.apply(scale, Columns::Shown), asked.negotiated.media, pretty)
}

impl Encoder {
    pub fn new(resource: Arc<Resource>, asked: Asked<'_>, pretty: bool) -> Result<Self, Error> {
        let form = Form::of(asked, || resource.behavior.columns.clone())?;
        let encoder = Self { resource, form, media: asked.negotiated.media, pretty };
        if encoder.media == MediaType::Protobuf && matches!(encoder.form, Form::Object) {
            encoder.resource.note_protobuf_reader();
        }
        Ok(encoder)
    }

    /// The same form of objects as compact JSON.
    pub fn into_json_encoder(self) -> Self {
        Self { media: MediaType::Json, pretty: false, ..self }
    }

    /// The whole answer with one object.
    pub fn answer(&self, answer: &Answer) -> Result<Vec<u8>, Error> {
        match answer {
            Answer::Stored(object) => self.object(object),
            Answer::Unstored(object) => {
                encode(&self.formed(Value::Object(object.clone())), self.media, self.pretty)
            }
        }
    }

    /// The answer with one object as a value, whatever it is encoded in.
    pub fn value(&self, answer: &Answer) -> Result<Value, Error> {
        Ok(self.formed(match answer {
            Answer::Stored(object) => self.decode(object)?,
            Answer::Unstored(object) => Value::Object(object.clone()),
        }))
    }

    /// The whole answer with one stored object.
    pub fn object(&self, object: &Object) -> Result<Vec<u8>, Error> {
        if self.media == MediaType::Protobuf {
            return self.protobuf_object(object);
        }
        if self.is_verbatim(object) && self.media == MediaType::Json && !self.pretty {
            let json = object.json()?;
            let mut out = Vec::with_capacity(json.len() + 1);
            out.extend_from_slice(json);
            out.push(b'\n');
            return Ok(out);
        }
        encode(&self.formed(self.decode(object)?), self.media, self.pretty)
    }

    /// The text of a JSON list before its first item.
    pub fn list_head(&self, list: &List) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        if self.is_sorted() {
            out.extend_from_slice(b"{\"apiVersion\":");
            write_string(&mut out, self.resource.definition.api_version());
            out.extend_from_slice(b",\"items\":");
            return out;
        }
        let head = self.list_value(list);
        write_json(&mut out, &head);
        // The empty list at the end is opened again. For some kinds, a Table without rows has null instead.
        let cut = [&b"[]}"[..], b"null}"].into_iter().find_map(|end| out.strip_suffix(end).map(<[u8]>::len));
        out.truncate(cut.unwrap_or(out.len()));
        out
    }

    /// Everything behind the items.
    pub fn list_tail(&self, list: &List) -> Vec<u8> {
        let mut out = Vec::new();
        if self.is_sorted() {
            out.extend_from_slice(b",\"kind\":");
            write_string(&mut out, &self.resource.definition.list_kind);
            out.extend_from_slice(b",\"metadata\":");
            let mut metadata =
                json!({"continue": list.continue_token, "resourceVersion": list.revision.to_string()});
            if let Some(remaining) = list.remaining {
                metadata["remainingItemCount"] = remaining.into();
            }
            metadata.sort_all();
            write_json(&mut out, &metadata);
        }
        out.extend_from_slice(b"}\n");
        out
    }

    /// Whether objects are printed as upstream's maps are, which is how it holds custom ones: sorted at every level.
    fn is_sorted(&self) -> bool {
        matches!(self.form, Form::Object) && self.resource.definition.is_custom()
    }

    /// The list without items.
    fn list_value(&self, list: &List) -> Value {
        let definition = &self.resource.definition;
        let metadata = list_metadata(list);
        match &self.form {
            Form::Object => {
                json!({"kind": &*definition.list_kind, "apiVersion": definition.api_version().as_str(),
                    "metadata": metadata, "items": []})
            }
            Form::Metadata(version) => {
                json!({"kind": "PartialObjectMetadataList", "apiVersion": version.api_version(),
                    "metadata": metadata, "items": []})
            }
            Form::Table { printer, version, .. } => {
                table::table(*version, printer, Columns::Shown, metadata, Vec::new())
            }
        }
    }

    /// The end of a list without items, in place of the items.
    pub fn empty_items(&self) -> &'static [u8] {
        match &self.form {
            Form::Table { printer, .. } if printer.empty() == EmptyRows::Null => b"null",
            _ => b"[]",
        }
    }

    /// Writes one item of a list.
    pub fn item(&self, out: &mut Vec<u8>, object: &Object) -> Result<(), Error> {
        match &self.form {
            Form::Object if self.resource.serves_as_stored(object) => {
                out.push(b'{');
                pieces::append(out, object.json_item()?);
            }
            Form::Object if self.is_sorted() => write_json(out, &self.formed(self.decode(object)?)),
            Form::Object => {
                let mut map = self.resource.decode(object)?;
                map.shift_remove("kind");
                map.shift_remove("apiVersion");
                write_json(out, &map);
            }
            Form::Metadata(_) => write_json(out, &self.formed(self.decode(object)?)),
            Form::Table { printer, version, include, clock, default } => {
                let mut row =
                    table::row(printer, &self.decode(object)?, &row_options(*version, *include, clock));
                if default.as_deref() == Some(object.name()) {
                    row["cells"][0] = format!("{} (default)", object.name()).into();
                }
                write_json(out, &row);
            }
        }
        Ok(())
    }

    /// Whether the items differ from the stored objects, so that these must be decoded.
    pub fn makes_items(&self) -> bool {
        !matches!(self.form, Form::Object)
    }

    /// Whether rows depend on what else is in the list.
    pub fn needs_all(&self) -> bool {
        matches!(&self.form, Form::Table { printer, .. } if printer.order().is_some() || printer.default().is_some())
    }

    /// Takes note of the default among a list's objects.
    pub fn note_default(&mut self, objects: &[Value]) {
        if let Form::Table { printer, default, .. } = &mut self.form {
            *default = printer.default().and_then(|of| of(objects)).map(str::to_owned);
        }
    }

    /// The order of the items, if it differs from that of the list.
    pub fn order(&self) -> Option<fn(&Value, &Value) -> std::cmp::Ordering> {
        match &self.form {
            Form::Table { printer, .. } => printer.order(),
            _ => None,
        }
    }

    /// The frame of a watch event. Only the first event contains a Table's columns.
    pub fn event(&self, event: &WatchEvent, columns: Columns) -> Result<Bytes, Error> {
        if self.media == MediaType::Protobuf {
            return self.protobuf_event(event);
        }
        match event {
            WatchEvent::State(object) if self.is_verbatim(object) => {
                Ok(json_frame(EventType::Added, object)?)
            }
            WatchEvent::Change { event, kind } if self.is_verbatim_event(event, *kind) => {
                let frame = event.frame(*kind, FrameEncoding::Json, |object| json_frame(*kind, object));
                Ok(frame.ok_or_else(Error::event_without_object)??)
            }
            WatchEvent::State(object) => {
                Ok(frame(EventType::Added.as_str(), &self.watched(self.decode(object)?, columns)))
            }
            WatchEvent::Change { event, kind } => {
                let object = event.object(*kind).ok_or_else(Error::event_without_object)?;
                Ok(frame(kind.as_str(), &self.watched(self.decode(object)?, columns)))
            }
            WatchEvent::Bookmark { revision, end_of_state } => {
                let object = self.bookmark(*revision, *end_of_state);
                Ok(frame("BOOKMARK", &self.watched(object, columns)))
            }
            WatchEvent::Error(error) => Ok(frame("ERROR", &Failure::from(error).body)),
        }
    }

    fn is_verbatim(&self, object: &Object) -> bool {
        matches!(self.form, Form::Object) && self.resource.serves_as_stored(object)
    }

    /// Whether the frame contains the stored object unchanged, so that all watchers can share it.
    fn is_verbatim_event(&self, event: &Event, kind: EventType) -> bool {
        let object = if kind == EventType::Deleted { &event.previous } else { &event.current };
        object.as_ref().is_some_and(|object| self.is_verbatim(object))
    }

    fn decode(&self, object: &Object) -> Result<Value, Error> {
        self.resource.decode(object).map(Value::Object)
    }

    fn bookmark(&self, revision: Revision, end_of_state: bool) -> Value {
        let definition = &self.resource.definition;
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if end_of_state {
            metadata["annotations"] = json!({INITIAL_EVENTS_END: "true"});
        }
        json!({"kind": definition.kind_name().as_str(), "apiVersion": definition.api_version().as_str(),
            "metadata": metadata})
    }

    fn formed(&self, object: Value) -> Value {
        self.watched(object, Columns::Shown)
    }

    fn watched(&self, mut object: Value, columns: Columns) -> Value {
        if self.is_sorted() {
            object.sort_all();
        }
        self.form.apply(object, columns)
    }
}

/// Encodes a whole answer, whose value must contain its kind.
pub fn encode(value: &Value, media: MediaType, pretty: bool) -> Result<Vec<u8>, Error> {
    match media {
        MediaType::Protobuf => enveloped(value),
        MediaType::Json => Ok(encode_json(value, pretty)),
        MediaType::Yaml => Ok(yaml::write(value).into_bytes()),
    }
}

/// JSON as the object encoder writes it: compact with a line end, or indented without one.
pub fn encode_json(value: &Value, pretty: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    if pretty {
        write_indented(&mut out, value);
        return out;
    }
    write_json(&mut out, value);
    out.push(b'\n');
    out
}

fn list_metadata(list: &List) -> Value {
    let token = Some(list.continue_token.as_str()).filter(|token| !token.is_empty());
    table::list_metadata(&list.revision.to_string(), token, list.remaining)
}

fn row_options(version: MetaVersion, include: IncludeObject, clock: &WallClock) -> RowOptions {
    RowOptions { version, include, now: clock.timestamp() }
}

fn frame(kind: &str, object: &Value) -> Bytes {
    let mut json = Vec::with_capacity(1024);
    write_json(&mut json, object);
    raw_frame(kind, &json)
}

fn json_frame(kind: EventType, object: &Object) -> Result<Bytes, Undecodable> {
    Ok(raw_frame(kind.as_str(), object.json()?))
}

/// The frame `{"type":…,"object":…}` with a line end.
fn raw_frame(kind: &str, json: &[u8]) -> Bytes {
    let mut frame = Vec::with_capacity(json.len() + 40);
    frame.extend_from_slice(b"{\"type\":\"");
    frame.extend_from_slice(kind.as_bytes());
    frame.extend_from_slice(b"\",\"object\":");
    frame.extend_from_slice(json);
    frame.extend_from_slice(b"}\n");
    frame.into()
}
