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

use bytes::Bytes;

use self::kept::ExactBytes;
use self::layout::Layout;
use self::protobuf::Slot;
use super::at_rest;
use super::managed;
use super::protobuf::with_version;
use super::sealed;
use crate::json::scan;
use crate::revision::Revision;
use crate::tree::Map;

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

    /// The object's uid.
    pub fn uid(&self) -> Option<&str> {
        self.layout?;
        let metadata = scan::member(&self.json, 0, "metadata")?;
        let text = &self.json[..metadata.end];
        scan::raw_string(text, &scan::member(text, metadata.start, "uid")?)
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

    /// The object as a stored value, in JSON; a value that cannot be read as it is.
    pub fn to_stored(&self) -> Bytes {
        match self.layout {
            Some(layout) => at_rest::of_json(&layout.without_version(&self.json, self.revision)),
            None => Bytes::copy_from_slice(&self.json),
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
