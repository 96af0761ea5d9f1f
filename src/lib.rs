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
pub mod kinds;
pub mod patch;

pub mod cache;
pub mod encryption;
pub mod storage;

pub mod codec;
pub mod schema;

pub mod causes;
pub mod expression;
pub mod fields;
pub mod grpc;
pub mod identity;
pub mod long_work;
pub mod metrics;
pub mod pieces;
pub mod private_files;
pub mod protowire;
pub mod random;
pub mod relay;
pub mod revision;
pub mod runtime;
pub mod server_trust;
pub mod tasks;
pub mod user;
pub mod wall_clock;
pub mod warnings;
pub mod watched_file;
pub mod webhook;

#[cfg(test)]
mod layers;

pub use rowplane_values::{gotext, json, jsonpath, quantity, regexp, tree};
pub use server::Server;
