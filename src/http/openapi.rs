//! OpenAPI v2 and v3, derived from a [`Registry`] and from the types of its kinds.
//!
//! The operations are those of the definitions, without the deprecated `/watch/` paths. Kinds without a type are
//! objects that may hold anything. Of v3 there is only the JSON form.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde::Serialize;

use super::document::{Document, hash};
use crate::schema::registry::Registry;

mod entries;
mod gnostic;
mod names;
mod operations;
mod overview;
mod packed;
mod parameters;
mod schemas;
mod texts;
mod v2;
mod v3;

use packed::Packed;
use texts::Texts;

/// Content type of every [`Document`] built here.
pub const CONTENT_TYPE: &str = "application/json";
/// Content type of [`OpenApi::v2_protobuf`], as it is answered.
pub const V2_PROTOBUF_CONTENT_TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/// Another name by which clients ask for the same.
pub const V2_PROTOBUF_ALIAS: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
/// Value of `Vary` on documents of v3.
pub const VARY: &str = "Accept";
/// Value of `Vary` on that of v2, which may be compressed.
pub const V2_VARY: &str = "Accept, Accept-Encoding";
/// `Cache-Control` of a v3 document that was asked for with the right `?hash=`.
pub const HASHED_CACHE_CONTROL: &str = "public, immutable";

/// Documents are large and many servers are never asked for them, so they are built on first use. A new
/// registry needs a new `OpenApi`.
#[derive(Debug)]
pub struct OpenApi {
    registry: Arc<Registry>,
    v2: OnceLock<V2>,
    v3: OnceLock<V3>,
}

#[derive(Debug)]
struct V2 {
    hash: String,
    json: Packed,
    protobuf: Packed,
}

#[derive(Debug)]
struct V3 {
    index: Document,
    /// By path without leading slash: `api/v1`, `apis/apps/v1`.
    by_path: BTreeMap<String, (String, Packed)>,
}

/// A document as it is kept: its hash (that of the JSON form), and its bytes in gzip.
#[derive(Clone, Copy, Debug)]
pub struct Kept<'a> {
    /// SHA-512 in upper-case hex.
    pub hash: &'a str,
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

impl OpenApi {
    pub fn new(registry: Arc<Registry>) -> Self {
        Self { registry, v2: OnceLock::new(), v3: OnceLock::new() }
    }

    /// `/openapi/v2`.
    pub fn v2(&self) -> Kept<'_> {
        let v2 = self.both_v2();
        Kept { hash: &v2.hash, packed: &v2.json }
    }

    /// `/openapi/v2` for [`V2_PROTOBUF_CONTENT_TYPE`].
    pub fn v2_protobuf(&self) -> Kept<'_> {
        let v2 = self.both_v2();
        Kept { hash: &v2.hash, packed: &v2.protobuf }
    }

    /// `/openapi/v3`.
    pub fn v3_index(&self) -> &Document {
        &self.all_v3().index
    }

    /// `/openapi/v3/<path>`, where `path` is for instance `api/v1`, `apis/<group>/<version>` or `version`.
    pub fn v3(&self, path: &str) -> Option<Kept<'_>> {
        let (hash, packed) = self.all_v3().by_path.get(path)?;
        Some(Kept { hash, packed })
    }

    /// Where a request with a wrong `?hash=` is sent, and what the index says.
    pub fn v3_url(path: &str, hash: &str) -> String {
        format!("/openapi/v3/{path}?hash={hash}")
    }

    fn both_v2(&self) -> &V2 {
        self.v2.get_or_init(|| {
            let document = v2::document(&self.registry, &Texts::load());
            let protobuf = Packed::new(&gnostic::encode(&document));
            let (hash, json) = pack(&document);
            V2 { hash, json, protobuf }
        })
    }

    fn all_v3(&self) -> &V3 {
        self.v3.get_or_init(|| {
            let texts = Texts::load();
            let documents = v3::documents(&self.registry, &texts);
            let by_path: BTreeMap<String, (String, Packed)> =
                documents.map(|(path, document)| (path, pack(&document))).collect();
            let hashes = by_path.iter().map(|(path, (hash, _))| (path, hash));
            V3 { index: Document::compact(&v3::index(hashes)), by_path }
        })
    }
}

fn pack(document: &impl Serialize) -> (String, Packed) {
    let text = serde_json::to_string(document).expect("documents are JSON values with texts for names");
    (hash(&text), Packed::new(text.as_bytes()))
}

#[cfg(test)]
mod tests;
