//! The verbs of the Kubernetes API over one cluster.
//!
//! Objects come in and go out as JSON maps in the version of the request, and are stored in the resource's storage version. A
//! module imports only from modules below it in this list, which a test holds (`layers`).
#![forbid(unsafe_code)]

pub mod storage_version;

pub mod subresource;
pub mod verbs;

pub mod write;

mod api;

pub mod concerns;

pub mod admission;

pub mod quota;
pub mod rights;
pub mod services;

pub mod namespace_contents;
pub mod protobuf_messages;

pub mod definitions;

pub mod mutation;

pub mod extensions;

pub mod cluster;

pub mod config;
pub mod followers;
pub mod hidden;
pub mod kubelets;
pub mod unreadable;

pub mod catalog;
pub mod deletion;
pub mod ownership;

pub mod scale;

pub mod decode;

pub mod request;

pub mod conversion;

pub mod resource;

pub mod effects;
pub mod options;
pub mod service_routes;

pub mod meta;

pub mod error;

#[cfg(test)]
mod compared;

use rowplane_access::{audit, auth};
use rowplane_objects::{
    causes, codec, expression, kinds, long_work, patch, revision, schema, user, warnings,
};
use rowplane_store::{
    cache, egress, encryption, failpoints, metrics, random, relay, runtime, server_trust, storage, traces,
    wall_clock, webhook,
};
use rowplane_values::{gotext, json, quantity, tree};
use rowplane_x509 as x509;

pub use api::Api;
pub use cluster::Cluster;
pub use meta::{metadata, metadata_mut};
pub use resource::{Answer, Target};
pub use rowplane_objects::fields::{self, ObjectMap};
