//! OpenAPI v2 and v3, derived from a [`Registry`].
//!
//! The schemas say only what is known of every object (apiVersion, kind, metadata) and that unknown fields are
//! kept. The operations are those of the definitions, without the deprecated `/watch/` paths. What clients take
//! from the documents today is whether a kind's PATCH knows `fieldValidation`, and which kinds exist. Of the protobuf forms only a part of v2's is built.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::document::Document;
use crate::schema::registry::Registry;

mod gnostic;
mod names;
mod operations;
mod parameters;
mod schemas;
mod v2;
mod v3;

/// Content type of every [`Document`] built here.
pub const CONTENT_TYPE: &str = "application/json";
/// Content type of [`OpenApi::v2_protobuf`], as it is answered.
pub const V2_PROTOBUF_CONTENT_TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/// Another name by which clients ask for the same.
pub const V2_PROTOBUF_ALIAS: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
/// Value of `Vary` on the documents.
pub const VARY: &str = "Accept";
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
    json: Document,
    protobuf: Bytes,
}

#[derive(Debug)]
struct V3 {
    index: Document,
    /// By path without leading slash: `api/v1`, `apis/apps/v1`.
    by_path: BTreeMap<String, Document>,
}

impl OpenApi {
    pub fn new(registry: Arc<Registry>) -> Self {
        Self { registry, v2: OnceLock::new(), v3: OnceLock::new() }
    }

    /// `/openapi/v2`.
    pub fn v2(&self) -> &Document {
        &self.both_v2().json
    }

    /// `/openapi/v2` for [`V2_PROTOBUF_CONTENT_TYPE`]; the ETag is that of the JSON form.
    pub fn v2_protobuf(&self) -> &Bytes {
        &self.both_v2().protobuf
    }

    /// `/openapi/v3`.
    pub fn v3_index(&self) -> &Document {
        &self.all_v3().index
    }

    /// `/openapi/v3/<path>`, where `path` is `api/v1` or `apis/<group>/<version>`.
    pub fn v3(&self, path: &str) -> Option<&Document> {
        self.all_v3().by_path.get(path)
    }

    /// Where a request with a wrong `?hash=` is sent, and what the index says.
    pub fn v3_url(path: &str, document: &Document) -> String {
        format!("/openapi/v3/{path}?hash={}", document.hash)
    }

    fn both_v2(&self) -> &V2 {
        self.v2.get_or_init(|| {
            let document = v2::document(&self.registry);
            V2 { json: Document::compact(&document), protobuf: gnostic::encode(&document).into() }
        })
    }

    fn all_v3(&self) -> &V3 {
        self.v3.get_or_init(|| {
            let versions = self.registry.groups().iter().flat_map(|group| &group.versions);
            let by_path: BTreeMap<String, Document> = versions
                .map(|version| (version.path(), Document::compact(&v3::document(&self.registry, version))))
                .collect();
            V3 { index: Document::compact(&v3::index(&by_path)), by_path }
        })
    }
}

#[cfg(test)]
mod tests;
