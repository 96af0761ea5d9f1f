//! OpenAPI v2 and v3, derived from a [`Registry`] and from the types of its kinds.
//!
//! The operations are those of the definitions. Kinds without a type are objects that may hold anything. Documents are
//! large and many servers are never asked for them, so each form is made when it is first asked for, and kept in gzip.
//! Documents of group versions in which nothing has changed are the same in the next generation.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use bytes::Bytes;

use super::document::Document;
use crate::api::followers::api_services::openapi::OpenApiParts;
use crate::schema::registry::Registry;
use crate::schema::resource::Origin;
use crate::wall_clock::WallClock;

mod converted;
mod custom;
mod dialect;
mod entries;
mod extended;
mod gnostic;
mod names;
mod operation;
mod operations;
mod overview;
mod packed;
mod parameters;
mod schemas;
mod shared;
mod texts;
mod v2;
mod v3;
mod wording;

use converted::Converted;
use custom::CustomVersion;
use packed::Packed;
use schemas::Library;
use v2::Swagger;

/// The forms of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Json,
    /// gnostic's message.
    Protobuf,
}

/// The names by which the forms of a version go, in the order in which they are tried.
pub type Names = [(&'static str, Form); 3];

pub const V2_NAMES: Names = [
    ("json", Form::Json),
    ("com.github.proto-openapi.spec.v2@v1.0+protobuf", Form::Protobuf),
    ("com.github.proto-openapi.spec.v2.v1.0+protobuf", Form::Protobuf),
];
pub const V3_NAMES: Names = [
    ("json", Form::Json),
    ("com.github.proto-openapi.spec.v3.v1.0+protobuf", Form::Protobuf),
    ("com.github.proto-openapi.spec.v3@v1.0+protobuf", Form::Protobuf),
];

/// The Content-Types of [`Form::Json`] and, by version, of [`Form::Protobuf`].
pub const CONTENT_TYPE: &str = "application/json";
pub const V2_PROTOBUF_CONTENT_TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
pub const V3_PROTOBUF_CONTENT_TYPE: &str = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";

/// kube-aggregator names none for the index, and Go takes JSON for text.
pub const V3_INDEX_CONTENT_TYPE: &str = "text/plain; charset=utf-8";

/// Value of `Vary` on documents of v3.
pub const VARY: &str = "Accept";
/// Value of `Vary` on that of v2, which may be compressed.
pub const V2_VARY: &str = "Accept, Accept-Encoding";
/// `Cache-Control` of a v3 document that was asked for with the right `?hash=`.
pub const HASHED_CACHE_CONTROL: &str = "public, immutable";

/// A new registry needs a new `OpenApi`, which takes over what is the same.
#[derive(Debug)]
pub struct OpenApi {
    registry: Arc<Registry>,
    v2: OnceLock<V2>,
    /// The documents of everything built in, which are the same in all generations.
    built_in: Arc<OnceLock<BuiltIn>>,
    /// The documents of custom resources by their paths without leading slash: `apis/ex.io/v1`.
    custom: BTreeMap<String, Arc<CustomVersion>>,
    /// The documents that are made for extension servers, by the same paths.
    converted: BTreeMap<String, Arc<Converted>>,
    v3_index: OnceLock<(Document, SystemTime)>,
    /// The documents of extension servers.
    extensions: Arc<OpenApiParts>,
    /// The clock, which tells when documents were made, and until when one may be kept.
    pub clock: WallClock,
}

#[derive(Debug)]
struct V2 {
    modified: SystemTime,
    document: Made,
}

#[derive(Debug)]
struct BuiltIn {
    modified: SystemTime,
    /// The documents by their paths without leading slash: `api/v1`, `apis/apps/v1`.
    by_path: BTreeMap<String, Made>,
}

/// A document, of which the protobuf form is made of the other.
#[derive(Debug)]
struct Made {
    hash: String,
    json: Packed,
    protobuf: OnceLock<Packed>,
}

/// A form of a document as it is kept.
#[derive(Clone, Copy, Debug)]
pub struct Kept<'a> {
    /// Upper-case hex, the same for both forms. Of a document of built-in kinds it is the SHA-512 of the JSON, of one of
    /// custom resources that of what it is made from.
    pub hash: &'a str,
    /// When the document was made.
    pub modified: SystemTime,
    packed: &'a Packed,
}

impl Kept<'_> {
    pub fn body(&self) -> Bytes {
        self.packed.body()
    }

    pub fn gzip(&self) -> Bytes {
        self.packed.gzip.clone()
    }
}

impl Made {
    fn new(json: Packed, hash: String) -> Self {
        Self { hash, json, protobuf: OnceLock::new() }
    }

    /// `encode` makes the protobuf form from the other.
    fn kept(&self, form: Form, modified: SystemTime, encode: fn(&[u8]) -> Vec<u8>) -> Kept<'_> {
        let packed = match form {
            Form::Json => &self.json,
            Form::Protobuf => self.protobuf.get_or_init(|| Packed::new(&encode(&self.json.body()))),
        };
        Kept { hash: &self.hash, modified, packed }
    }
}

impl OpenApi {
    pub fn new(
        registry: Arc<Registry>,
        extensions: Arc<OpenApiParts>,
        clock: &WallClock,
        before: Option<&Self>,
    ) -> Self {
        let custom = registry.groups().iter().filter(|group| group.origin == Origin::Custom);
        let custom = custom.flat_map(|group| &group.versions).map(|version| {
            let path = version.path();
            let known = before.and_then(|before| before.custom.get(&path));
            let known = known.filter(|known| known.is_of(version)).cloned();
            (path, known.unwrap_or_else(|| Arc::new(CustomVersion::new(version))))
        });
        let converted = extensions.converted.iter().map(|(path, part)| {
            let known = before.and_then(|before| before.converted.get(path));
            let known = known.filter(|known| Arc::ptr_eq(&known.part, part)).cloned();
            (path.clone(), known.unwrap_or_else(|| Arc::new(Converted::new(part))))
        });
        Self {
            custom: custom.collect(),
            converted: converted.collect(),
            v2: OnceLock::new(),
            built_in: before.map(|before| before.built_in.clone()).unwrap_or_default(),
            v3_index: OnceLock::new(),
            registry,
            extensions,
            clock: clock.clone(),
        }
    }

    /// `/openapi/v2`.
    pub fn v2(&self, form: Form) -> Kept<'_> {
        let V2 { modified, document } = self.v2.get_or_init(|| {
            let (json, hash) =
                Packed::json(&Swagger::new(&self.registry, &Library::load(), &self.extensions.v2));
            V2 { modified: self.clock.now(), document: Made::new(json, hash) }
        });
        document.kept(form, *modified, gnostic::encode_v2)
    }

    /// `/openapi/v3`, and when it was made. No document of a custom resource has to be made for it.
    pub fn v3_index(&self) -> (&Document, SystemTime) {
        let (index, modified) = self.v3_index.get_or_init(|| {
            let built_in = self.built_in().by_path.iter().map(|(path, made)| (path, &*made.hash));
            let custom = self.custom.iter().map(|(path, version)| (path, &*version.hash));
            let converted = self.converted.iter().map(|(path, one)| (path, one.hash(&self.clock)));
            let own =
                built_in.chain(custom).chain(converted).map(|(path, hash)| (path, Self::v3_url(path, hash)));
            let remote = self.extensions.v3.iter().map(|(path, url)| (path, url.to_string()));
            let urls: BTreeMap<&String, String> = own.chain(remote).collect();
            (Document::compact(&v3::index(urls.into_iter())), self.clock.now())
        });
        (index, *modified)
    }

    /// `/openapi/v3/<path>`, where `path` is for instance `api/v1`, `apis/<group>/<version>` or `version`.
    pub fn v3(&self, path: &str, form: Form) -> Option<Kept<'_>> {
        if let Some(converted) = self.converted.get(path) {
            return Some(converted.kept(form, &self.clock));
        }
        if let Some(version) = self.custom.get(path) {
            return Some(version.kept(form, &self.clock));
        }
        let BuiltIn { modified, by_path } = self.built_in();
        by_path.get(path).map(|document| document.kept(form, *modified, gnostic::encode_v3))
    }

    /// The URL of a document of v3, as the index names it: a request with a wrong `?hash=` is redirected there.
    pub fn v3_url(path: &str, hash: &str) -> String {
        format!("/openapi/v3/{path}?hash={hash}")
    }

    fn built_in(&self) -> &BuiltIn {
        self.built_in.get_or_init(|| {
            let library = Library::load();
            let documents = v3::documents(&self.registry, &library);
            let made = |(path, document): (String, v3::Document<'_>)| {
                let (json, hash) = Packed::json(&document);
                (path, Made::new(json, hash))
            };
            BuiltIn { by_path: documents.map(made).collect(), modified: self.clock.now() }
        })
    }
}

#[cfg(test)]
mod tests;
