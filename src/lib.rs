//! rowplane: the Kubernetes API on SQL.
//!
//! A module imports only from modules below it in this list; `ARCHITECTURE.md` is the map.
#![forbid(unsafe_code)]

pub mod cli;

pub mod server;

pub mod http;

pub mod auth;
pub mod controllers;

pub mod api;
pub mod audit;
pub mod flow_control;

pub mod cache;
pub mod encryption;
pub mod storage;

pub mod failpoints;

pub mod grpc;
pub mod identity;
pub mod metrics;
pub mod private_files;
pub mod random;
pub mod relay;
pub mod runtime;
pub mod server_trust;
pub mod tasks;
pub mod wall_clock;
pub mod watched_file;
pub mod webhook;

#[cfg(test)]
mod layers;

pub use rowplane_objects::{
    causes, codec, expression, fields, kinds, long_work, patch, pieces, protowire, revision, schema, user,
    warnings,
};
pub use rowplane_values::{gotext, json, jsonpath, quantity, regexp, tree};
pub use server::Server;
