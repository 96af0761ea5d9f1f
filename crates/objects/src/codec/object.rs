//! Objects as bytes: the stored encoding, and the encodings that readers share.
//!
//! A stored value contains no resourceVersion, since its row's key is the resourceVersion. A [`Draft`] holds such a
//! value. An [`Object`] is its JSON with the resourceVersion inserted, made once per version and sent to all readers.
//! An object's protobuf encoding comes from the write that made it, if clients read the kind so, or is made on demand; it is dropped when no list has read it for a while.

mod draft;
mod kept;
mod layout;
mod protobuf;
mod tree;

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::tree::Map;

use self::kept::ExactBytes;
use self::layout::Layout;
use self::protobuf::Slot;
use super::managed;
use super::protobuf::with_version;
use super::sealed;
use crate::json::scan;
use crate::revision::Revision;

pub use self::draft::{Draft, Replaces};
pub use self::protobuf::{Message, Unencodable};

/// One version of an object as all readers share it: JSON text with resourceVersion.
#[derive(Clone)]
pub struct Object {
    revision: Revision,
    key: Box<str>,
    json: ExactBytes,
    layout: Option<Layout>,
    /// The encoding of [`Object::protobuf`]. Most objects never have one.
    message: Slot,
    settled: Mark,
}

/// The answer of [`Object::is_settled_by`] for one [structural schema](crate::schema::structural), whose number the caller
/// gives. [`Mark::default`] holds no answer.
#[derive(Debug, Default)]
pub struct Mark(AtomicU32);

impl Clone for Mark {
    fn clone(&self) -> Self {
        Self(AtomicU32::new(self.0.load(Ordering::Relaxed)))
    }
}

impl Mark {
    const DIFFERS: u32 = 1 << 31;

    /// The object is just as the schema of this number has it.
    pub fn settled(schema: u32) -> Self {
        Self(AtomicU32::new(schema & !Self::DIFFERS))
    }
}

/// A stored value that this server cannot read as an object.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "the stored value of \"{name}\" (namespace \"{namespace}\", revision {revision}) cannot be decoded{}",
    why.as_deref().map(|why| format!(": {why}")).unwrap_or_default()
)]
pub struct Undecodable {
    pub namespace: String,
    pub name: String,
    pub revision: Revision,
    /// Known if the value could not be decrypted.
    pub why: Option<Box<str>>,
}

impl Object {
    fn new(revision: Revision, key: Box<str>, json: ExactBytes, layout: Option<Layout>) -> Self {
        Self { revision, key, json, layout, message: Slot::default(), settled: Mark::default() }
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
    pub fn json(&self) -> Result<&[u8], Undecodable> {
        self.layout.map(|_| &*self.json).ok_or_else(|| self.undecodable())
    }

    /// The object as an item of a typed list: its JSON without kind, apiVersion and the opening brace.
    pub fn json_item(&self) -> Result<&[u8], Undecodable> {
        let layout = self.layout.ok_or_else(|| self.undecodable())?;
        Ok(&self.json[layout.body as usize..])
    }

    /// Parses the object; costs what a parse costs.
    pub fn to_map(&self) -> Result<Map, Undecodable> {
        self.json().and_then(|json| serde_json::from_slice(json).map_err(|_| self.undecodable()))
    }

    /// Like [`Object::to_map`], but [closed](crate::codec::managed): the sets of managers are not parsed.
    pub fn to_closed_map(&self) -> Result<Map, Undecodable> {
        self.json().and_then(|json| managed::read(json).map_err(|_| self.undecodable()))
    }

    /// Whether the object is just as a schema has it, so that its bytes may go out as they are. `look` finds out, once
    /// for the schema that was asked for last.
    pub fn is_settled_by(&self, schema: u32, look: impl FnOnce() -> bool) -> bool {
        let known = self.settled.0.load(Ordering::Relaxed);
        if known & !Mark::DIFFERS == schema {
            return known & Mark::DIFFERS == 0;
        }
        let settled = look();
        let mark = if settled { schema } else { schema | Mark::DIFFERS };
        self.settled.0.store(mark, Ordering::Relaxed);
        settled
    }

    /// The apiVersion in which the object is encoded.
    pub fn api_version(&self) -> Option<&str> {
        self.layout?;
        scan::raw_string(&self.json, &scan::member(&self.json, 0, "apiVersion")?)
    }

    /// The raw text of one label's value, without building a map. Valid label values need no escapes.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.layout?.label(&self.json, name)
    }

    /// Whether a member of this name may occur anywhere in the object. A cheap test for "is it being deleted?" or "has
    /// it owners?": no parse is needed if the answer is no.
    pub fn mentions(&self, name: &str) -> bool {
        let found = memchr::memmem::find_iter(&self.json, name.as_bytes());
        let quoted =
            |at: usize| at > 0 && self.json[at - 1] == b'"' && self.json.get(at + name.len()) == Some(&b'"');
        found.into_iter().any(quoted)
    }

    /// The same content with another revision, as a DELETED event carries it.
    pub fn at_revision(&self, revision: Revision) -> Object {
        let Some(layout) = self.layout else {
            return Object { revision, ..self.clone() };
        };
        let (json, layout) = layout.replace_version(&self.json, self.revision, revision);
        Object {
            settled: self.settled.clone(),
            message: Slot::holding(self.message.get().and_then(|message| with_version(&message, revision))),
            ..Object::new(revision, self.key.clone(), json, Some(layout))
        }
    }

    /// The memory of this version in bytes, without that of maps that contain it and of encodings made on demand. The
    /// number never changes.
    pub fn size(&self) -> usize {
        size_of::<Self>() + self.json.len() + self.key.len()
    }

    /// The number of bytes of the object's JSON text without its resourceVersion; of the value itself if it cannot be
    /// read.
    pub fn json_length(&self) -> usize {
        let version = self.layout.map_or(0, |layout| layout.version_length(self.revision));
        self.json.len() - version
    }

    /// The size in bytes of the encodings that are held beside the JSON now.
    pub fn made_size(&self) -> usize {
        self.message.len()
    }

    fn undecodable(&self) -> Undecodable {
        Undecodable {
            namespace: self.namespace().to_owned(),
            name: self.name().to_owned(),
            revision: self.revision,
            why: sealed::why_refused(&self.json).map(Box::from),
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::codec::at_rest::StorageMediaType;
    use crate::schema::builtin;
    use crate::schema::names::Gvk;
    use crate::tree::{Value, json};

    fn object(value: Value, revision: u64) -> Object {
        let map = value.as_object().expect("object").clone();
        Draft::encode("ns", "a", map, StorageMediaType::default()).into_object(Revision(revision))
    }

    fn complete(pod: &Map) -> Map {
        let kind = builtin::kind(&Gvk::fixed("v1", "Pod")).expect("a kind");
        kind.complete(pod.clone()).expect("a Pod")
    }

    const MEDIA: [StorageMediaType; 3] =
        [StorageMediaType::Json, StorageMediaType::Yaml, StorageMediaType::Protobuf];

    #[test]
    fn members_and_version_stand_where_upstream_prints_them() {
        let value = json!({"data": {"k": "<v>"}, "metadata": {"labels": {"l": "1"}, "uid": "u",
            "resourceVersion": "3", "name": "a", "namespace": "ns"}, "apiVersion": "v1", "kind": "ConfigMap"});
        let mut untyped = value.clone();
        untyped["kind"] = "Unknown".into();
        let typed = concat!(
            r#"{"kind":"ConfigMap","apiVersion":"v1","#,
            r#""metadata":{"name":"a","namespace":"ns","uid":"u","resourceVersion":"42","labels":{"l":"1"}},"#,
            r#""data":{"k":"\u003cv\u003e"}}"#
        );
        let sorted = concat!(
            r#"{"apiVersion":"v1","data":{"k":"\u003cv\u003e"},"kind":"Unknown","#,
            r#""metadata":{"labels":{"l":"1"},"name":"a","namespace":"ns","resourceVersion":"42","uid":"u"}}"#
        );
        for (value, expected, item) in
            [(value, typed, r#""metadata":{"#), (untyped, sorted, r#""apiVersion":"v1","data""#)]
        {
            let object = object(value, 42);
            assert_eq!(object.json().expect("decodable"), expected.as_bytes());
            assert_eq!(object.label("l"), Some("1"));
            assert_eq!(object.label("m"), None);
            assert!(object.json_item().expect("decodable").starts_with(item.as_bytes()));
            let moved = object.at_revision(Revision(7)).at_revision(Revision(42));
            assert_eq!(moved.json().expect("decodable"), expected.as_bytes());
        }
    }

    #[test]
    fn what_a_schema_makes_of_an_object_is_looked_up_once() {
        let object = object(json!({"kind": "K", "metadata": {"name": "a"}}), 7);
        assert!(object.is_settled_by(3, || true) && object.is_settled_by(3, || unreachable!()));
        assert!(object.at_revision(Revision(8)).is_settled_by(3, || unreachable!()));
        assert!(!object.is_settled_by(4, || false) && !object.is_settled_by(4, || unreachable!()));
        let draft = Draft::parse("ns", "a", Bytes::from_static(b"{\"metadata\":{}}"));
        let object = draft.settled(Mark::settled(5)).into_object(Revision(9));
        assert!(object.is_settled_by(5, || unreachable!()));
    }

    #[test]
    fn an_object_is_the_same_out_of_every_form_at_rest() {
        let pod = json!({"kind": "Pod", "apiVersion": "v1", "unknown": 1,
            "metadata": {"name": "a", "labels": {"on": "yes", "n": "1"}},
            "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "0.5"}}}]}});
        let pod = complete(pod.as_object().expect("object"));
        // An object that is long enough to be packed.
        let mut long = pod.clone();
        long["metadata"]["annotations"] = json!({"long": "again and ".repeat(200)});
        for pod in [pod, long] {
            is_the_same_out_of_every_form(&pod);
        }
    }

    fn is_the_same_out_of_every_form(pod: &Map) {
        let draft = |media| Draft::encode("ns", "a", pod.clone(), media);
        let packed = draft(StorageMediaType::Protobuf).value().len() < 1024;
        assert!(packed, "short, or packed");
        let want = draft(StorageMediaType::Protobuf).into_object(Revision(7));
        let json = want.json().expect("decodable");
        let amounts = br#""resources":{"limits":{"cpu":"500m"},"requests":{"cpu":"500m"}}"#;
        assert!(json.windows(amounts.len()).any(|part| part == amounts), "{json:?}");
        let message = want.protobuf().expect("typed");
        for media in MEDIA {
            let draft = draft(media);
            assert_eq!(StorageMediaType::of(draft.value()), media);
            let read = Draft::parse("ns", "a", draft.value().clone()).into_object(Revision(7));
            assert_eq!(read.json().expect("decodable"), json);
            assert_eq!(read.protobuf().expect("typed"), message);
            let written = draft.without_message().into_object(Revision(7));
            assert_eq!(written.json().expect("decodable"), json);
            assert_eq!(written.made_size(), 0);
            assert_eq!(written.protobuf().expect("typed"), message);
            assert_eq!(written.made_size(), message.len());
        }
    }

    #[test]
    fn what_was_stored_before_there_were_defaults_gets_them() {
        let old = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"},
            "spec": {"containers": [{"name": "c"}]}});
        let old = old.as_object().expect("object");
        let new = complete(old);
        let want = Draft::encode("ns", "a", new, StorageMediaType::Protobuf).into_object(Revision(7));
        for media in MEDIA {
            let value = Draft::encode("ns", "a", old.clone(), media).value().clone();
            // The value as earlier releases wrote it, without a level behind the object.
            let value = match media {
                StorageMediaType::Protobuf => value.slice(..value.len() - 2),
                _ => value.slice(..value.trim_ascii_end().len()),
            };
            assert_eq!(StorageMediaType::of(&value), media);
            let read = Draft::parse("ns", "a", value).into_object(Revision(7));
            assert_eq!(read.json().expect("decodable"), want.json().expect("decodable"));
            assert_eq!(read.protobuf().expect("typed"), want.protobuf().expect("typed"));
        }
        // Values of this release are used unchanged.
        for media in [StorageMediaType::Json, StorageMediaType::Protobuf] {
            let value = Draft::encode("ns", "a", old.clone(), media).value().clone();
            let read = Draft::parse("ns", "a", value).into_object(Revision(7));
            assert!(!read.mentions("schedulerName"), "{media:?}");
        }
    }

    #[test]
    fn what_is_not_of_its_types_stays_as_it_is() {
        let misfit = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}, "spec": "none"});
        for media in MEDIA {
            let draft = Draft::encode("ns", "a", misfit.as_object().expect("object").clone(), media);
            assert_eq!(StorageMediaType::of(draft.value()), StorageMediaType::Json);
            let object = draft.into_object(Revision(7));
            assert_eq!(object.to_map().expect("decodable")["spec"], "none");
            assert!(object.protobuf().is_err());
        }
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
        for value in [
            "",
            "[]",
            "{\"kind\":\"K\"}",
            "{\"metadata\":{\"name\"",
            "\u{0}",
            "k8s\0",
            "k8s\0\u{12}",
            "k8s\0\u{12}\u{5}\u{1}\0\0\0\0\u{1a}\u{3}lz4",
            "- a",
            "a: b",
        ] {
            let draft = Draft::parse("ns", "a", Bytes::from_static(value.as_bytes()));
            let object = draft.into_object(Revision(9));
            let error = object.json().expect_err("not decodable");
            assert!(error.to_string().contains("\"a\"") && error.to_string().contains('9'), "{error}");
        }
    }

    #[test]
    fn content_moves_to_another_revision() {
        let object = object(json!({"kind": "K", "metadata": {"name": "a", "labels": {"x": "y"}}}), 7);
        for at in [1, 8, 12345] {
            let moved = object.at_revision(Revision(at));
            let mut want = object.to_map().expect("decodable");
            want["metadata"]["resourceVersion"] = at.to_string().into();
            assert_eq!(moved.to_map().expect("decodable"), want);
            assert_eq!(moved.label("x"), Some("y"));
        }
    }
}
