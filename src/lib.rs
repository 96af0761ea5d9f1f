//! rowplane: the Kubernetes API on SQL.
//!
//! A module imports only from modules below it in this list; `ARCHITECTURE.md` is the map.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::unwrap_used))]

#[cfg(feature = "cli")]
pub mod cli;

pub mod server;

pub mod http;

pub mod controllers;

pub use rowplane_access::{audit, auth, flow_control};
pub use rowplane_api as api;
pub use rowplane_macros::test;
pub use rowplane_objects::{
    causes, codec, expression, fields, kinds, long_work, patch, pieces, protowire, revision, schema, user,
    warnings,
};
pub use rowplane_store::{
    cache, egress, encryption, failpoints, grpc, identity, layered, metrics, private_files, random, relay,
    runtime, scheduling, server_trust, storage, tasks, traces, wall_clock, watched_file, webhook,
};
pub use rowplane_values::{gotext, json, jsonpath, quantity, regexp, tree};
pub use rowplane_x509 as x509;
pub use server::{Process, Server, testing};
