//! Objects as bytes: the form at rest, and the form readers share.
//!
//! At rest a value holds no resourceVersion (the row's key is it). A [`Draft`] is a value with the places in it
//! that are needed later; an [`Object`] is the same text with the resourceVersion put in, made once per version
//! and sent to everybody who asks. Its protobuf form is made when somebody asks for that.

mod protobuf;

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};

use super::scan::{Members, key_is, raw_string};
use crate::revision::Revision;

pub use protobuf::Unencodable;

/// `metadata` members that stand before `resourceVersion`, in upstream's declaration order.
const BEFORE_VERSION: [&str; 5] = ["name", "generateName", "namespace", "selfLink", "uid"];
/// `metadata` members that stand after it.
const AFTER_VERSION: [&str; 8] = [
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
];

/// A value at rest, ready to be written or to become an [`Object`].
#[derive(Clone, Debug)]
pub struct Draft {
    /// `namespace NUL name`: the order of bytes is the order of lists.
    key: Box<str>,
    value: Bytes,
    /// `None` if the value cannot be understood; it then lives on as an object that can only be deleted.
    layout: Option<Layout>,
}

/// Offsets into a value at rest. 32 bits suffice: bodies are limited to a few MiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Layout {
    /// Where `"metadata"` begins, if `kind` and `apiVersion` stand before it; what a list item starts with.
    body: u32,
    /// Where `"resourceVersion":"…"` goes in.
    slot: u32,
    /// A comma is due: before the new member, after it, or not at all.
    comma: Comma,
    /// The labels object, or an empty span.
    labels: (u32, u32),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Comma {
    #[default]
    None,
    Before,
    After,
}

impl Draft {
    /// Encodes an object for storage: kind, apiVersion and metadata first, metadata in upstream's order, without
    /// resourceVersion, managedFields last.
    pub fn encode(namespace: &str, name: &str, object: &Map<String, Value>) -> Self {
        let value = Bytes::from(encode_at_rest(object));
        Self::parse(namespace, name, value)
    }

    /// Finds its way in a stored value. Never fails: what cannot be understood is kept as it is.
    pub fn parse(namespace: &str, name: &str, value: Bytes) -> Self {
        let layout = Layout::find(&value);
        Self { key: joined_key(namespace, name), value, layout }
    }

    /// Like [`Draft::parse`] for bytes nobody has validated yet.
    pub fn parse_untrusted(namespace: &str, name: &str, value: Bytes) -> Self {
        let layout = match serde_json::from_slice::<serde::de::IgnoredAny>(&value) {
            Ok(_) => Layout::find(&value),
            Err(_) => None,
        };
        Self { key: joined_key(namespace, name), value, layout }
    }

    /// The bytes at rest.
    pub fn value(&self) -> &Bytes {
        &self.value
    }

    /// The shared form of this version.
    pub fn into_object(self, revision: Revision) -> Object {
        let Some(layout) = self.layout else {
            return Object::new(revision, self.key, self.value, None);
        };
        let (json, layout) = layout.put_version(&self.value, revision);
        Object::new(revision, self.key, json, Some(layout))
    }
}

/// One version of an object as everybody reads it: JSON text with resourceVersion.
#[derive(Clone)]
pub struct Object {
    revision: Revision,
    key: Box<str>,
    json: Bytes,
    layout: Option<Layout>,
    /// See [`Object::protobuf`].
    protobuf: OnceLock<Bytes>,
}

/// A stored value that is not an object this server can read.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the stored value of \"{name}\" (namespace \"{namespace}\", revision {revision}) cannot be decoded")]
pub struct Undecodable {
    pub namespace: String,
    pub name: String,
    pub revision: Revision,
}

impl Object {
    fn new(revision: Revision, key: Box<str>, json: Bytes, layout: Option<Layout>) -> Self {
        Self { revision, key, json, layout, protobuf: OnceLock::new() }
    }

    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Empty for cluster-scoped objects.
    pub fn namespace(&self) -> &str {
        self.key.split_once('\0').map_or("", |(namespace, _)| namespace)
    }

    pub fn name(&self) -> &str {
        self.key.split_once('\0').map_or(&*self.key, |(_, name)| name)
    }

    /// `namespace NUL name`; its byte order is the order of lists.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The whole object as JSON, without a line end.
    pub fn json(&self) -> Result<&Bytes, Undecodable> {
        self.layout.map(|_| &self.json).ok_or_else(|| self.undecodable())
    }

    /// The object as an item of a typed list: without kind and apiVersion, and without the opening brace.
    pub fn json_item(&self) -> Result<&[u8], Undecodable> {
        let layout = self.layout.ok_or_else(|| self.undecodable())?;
        Ok(&self.json[layout.body as usize..])
    }

    /// Parses the object; costs what a parse costs.
    pub fn to_map(&self) -> Result<Map<String, Value>, Undecodable> {
        self.json().and_then(|json| serde_json::from_slice(json).map_err(|_| self.undecodable()))
    }

    /// The version the object is encoded in.
    pub fn api_version(&self) -> Option<&str> {
        self.layout?;
        raw_string(&self.json, &super::scan::member(&self.json, 0, "apiVersion")?)
    }

    /// The raw text of one label's value, without building a map. Valid label values need no escapes.
    pub fn label(&self, name: &str) -> Option<&str> {
        let (start, end) = self.layout?.labels;
        if start == end {
            return None;
        }
        let text = &self.json[..end as usize];
        let span = super::scan::member(text, start as usize, name)?;
        raw_string(text, &span)
    }

    /// Whether a member of this name occurs anywhere in the object: a cheap no to "is it being deleted?" or "has it
    /// owners?" that needs no parse.
    pub fn mentions(&self, name: &str) -> bool {
        let found = memchr::memmem::find_iter(&self.json, name.as_bytes());
        let quoted =
            |at: usize| at > 0 && self.json[at - 1] == b'"' && self.json.get(at + name.len()) == Some(&b'"');
        found.into_iter().any(quoted)
    }

    /// The same content under another revision: what a DELETED event carries.
    pub fn at_revision(&self, revision: Revision) -> Object {
        let Some(map) = self.to_map().ok() else {
            return Object { revision, protobuf: OnceLock::new(), ..self.clone() };
        };
        Draft::encode(self.namespace(), self.name(), &map).into_object(revision)
    }

    /// Bytes of memory this version holds, without its place in any map and without what is made on demand: the same
    /// number at any time.
    pub fn size(&self) -> usize {
        size_of::<Self>() + self.json.len() + self.key.len()
    }

    fn undecodable(&self) -> Undecodable {
        Undecodable {
            namespace: self.namespace().to_owned(),
            name: self.name().to_owned(),
            revision: self.revision,
        }
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}@{}", self.namespace(), self.name(), self.revision)
    }
}

/// `namespace NUL name`.
pub fn joined_key(namespace: &str, name: &str) -> Box<str> {
    let mut key = String::with_capacity(namespace.len() + 1 + name.len());
    key.push_str(namespace);
    key.push('\0');
    key.push_str(name);
    key.into_boxed_str()
}

impl Layout {
    fn find(value: &[u8]) -> Option<Self> {
        let mut members = Members::new(value, 0)?;
        let mut body = None;
        while let Some(member) = members.step()? {
            if key_is(value, &member.key, "metadata") {
                let body = body.unwrap_or(member.key.start);
                return Self::in_metadata(value, body, &member.value);
            }
            let typed = key_is(value, &member.key, "kind") || key_is(value, &member.key, "apiVersion");
            if !typed {
                body.get_or_insert(member.key.start);
            }
        }
        None
    }

    fn in_metadata(value: &[u8], body: usize, metadata: &Range<usize>) -> Option<Self> {
        let mut members = Members::new(value, metadata.start)?;
        let mut slot = metadata.start + 1;
        let mut comma = Comma::None;
        let mut passed = false;
        let mut labels = (0, 0);
        while let Some(member) = members.step()? {
            let before = BEFORE_VERSION.iter().any(|name| key_is(value, &member.key, name));
            if before && !passed {
                (slot, comma) = (member.value.end, Comma::Before);
            } else {
                passed = true;
                if comma == Comma::None {
                    comma = Comma::After;
                }
            }
            if key_is(value, &member.key, "labels") {
                labels = (u32::try_from(member.value.start).ok()?, u32::try_from(member.value.end).ok()?);
            }
        }
        Some(Self { body: u32::try_from(body).ok()?, slot: u32::try_from(slot).ok()?, comma, labels })
    }

    fn put_version(self, value: &[u8], revision: Revision) -> (Bytes, Self) {
        let slot = self.slot as usize;
        let member = match self.comma {
            Comma::None => format!("\"resourceVersion\":\"{revision}\""),
            Comma::Before => format!(",\"resourceVersion\":\"{revision}\""),
            Comma::After => format!("\"resourceVersion\":\"{revision}\","),
        };
        let mut json = Vec::with_capacity(value.len() + member.len());
        json.extend_from_slice(&value[..slot]);
        json.extend_from_slice(member.as_bytes());
        json.extend_from_slice(&value[slot..]);
        let shift = |at: u32| if at as usize >= slot && at > 0 { at + member.len() as u32 } else { at };
        let labels = (shift(self.labels.0), shift(self.labels.1));
        (Bytes::from(json), Self { labels, ..self })
    }
}

fn encode_at_rest(object: &Map<String, Value>) -> Vec<u8> {
    let mut out = Vec::with_capacity(2048);
    out.push(b'{');
    let mut writer = MemberWriter { out: &mut out, first: true };
    for name in ["kind", "apiVersion"] {
        writer.copy(object, name);
    }
    let empty = Map::new();
    let metadata = object.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
    writer.name("metadata");
    encode_metadata(writer.out, metadata);
    for (name, value) in object {
        if !matches!(name.as_str(), "kind" | "apiVersion" | "metadata") {
            writer.member(name, value);
        }
    }
    out.push(b'}');
    out.shrink_to_fit();
    out
}

fn encode_metadata(out: &mut Vec<u8>, metadata: &Map<String, Value>) {
    out.push(b'{');
    let mut writer = MemberWriter { out, first: true };
    for name in BEFORE_VERSION.iter().chain(&AFTER_VERSION) {
        writer.copy(metadata, name);
    }
    for (name, value) in metadata {
        let placed = BEFORE_VERSION.contains(&name.as_str()) || AFTER_VERSION.contains(&name.as_str());
        if !placed && name != "resourceVersion" {
            writer.member(name, value);
        }
    }
    out.push(b'}');
}

struct MemberWriter<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
}

impl MemberWriter<'_> {
    fn copy(&mut self, from: &Map<String, Value>, name: &str) {
        if let Some(value) = from.get(name) {
            self.member(name, value);
        }
    }

    fn member(&mut self, name: &str, value: &Value) {
        self.name(name);
        write_json(self.out, value);
    }

    fn name(&mut self, name: &str) {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        write_json(self.out, name);
        self.out.push(b':');
    }
}

/// Appends the JSON of a value whose map keys are strings, which cannot fail on a `Vec`.
pub fn write_json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(out, value).expect("JSON values with string keys serialize into memory");
}

/// Shared by map, log, lists and watchers.
pub type SharedObject = Arc<Object>;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value, revision: u64) -> Object {
        let map = value.as_object().expect("object").clone();
        Draft::encode("ns", "a", &map).into_object(Revision(revision))
    }

    #[test]
    fn puts_members_in_upstream_order_and_the_version_after_uid() {
        let object = object(
            json!({"data": {"k": "v"}, "metadata": {"labels": {"l": "1"}, "uid": "u", "resourceVersion": "3",
                "name": "a", "namespace": "ns"}, "apiVersion": "v1", "kind": "ConfigMap"}),
            42,
        );
        let expected = concat!(
            r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"ns","uid":"u","#,
            r#""resourceVersion":"42","labels":{"l":"1"}},"data":{"k":"v"}}"#
        );
        assert_eq!(object.json().expect("decodable"), expected);
        assert_eq!(object.label("l"), Some("1"));
        assert_eq!(object.label("m"), None);
        assert!(object.json_item().expect("decodable").starts_with(br#""metadata":{"#));
    }

    #[test]
    fn every_metadata_shape_stays_valid_json() {
        for metadata in
            [json!({}), json!({"labels": {}}), json!({"name": "a"}), json!({"name": "a", "labels": {}})]
        {
            let object = object(json!({"kind": "K", "metadata": metadata}), 7);
            let parsed: Value = serde_json::from_slice(object.json().expect("decodable")).expect("valid");
            assert_eq!(parsed["metadata"]["resourceVersion"], "7");
        }
    }

    #[test]
    fn a_value_that_is_not_an_object_is_kept_and_named() {
        for value in ["", "[]", "{\"kind\":\"K\"}", "{\"metadata\":{\"name\"", "\u{0}"] {
            let draft = Draft::parse_untrusted("ns", "a", Bytes::from_static(value.as_bytes()));
            let object = draft.into_object(Revision(9));
            let error = object.json().expect_err("not decodable");
            assert!(error.to_string().contains("\"a\"") && error.to_string().contains('9'), "{error}");
        }
    }

    #[test]
    fn content_moves_to_another_revision() {
        let object = object(json!({"kind": "K", "metadata": {"name": "a", "labels": {"x": "y"}}}), 7);
        let moved = object.at_revision(Revision(12345));
        assert_eq!(moved.to_map().expect("decodable")["metadata"]["resourceVersion"], "12345");
        assert_eq!(moved.label("x"), Some("y"));
    }
}
