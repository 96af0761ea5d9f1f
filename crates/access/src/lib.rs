//! Authentication and authorization, priority and fairness of requests when not all can run, and the audit of what was done.
//!
//! A module imports only from modules below it in this list. Nothing here knows verbs or HTTP bodies.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::unwrap_used))]

pub mod audit;
pub mod flow_control;

pub mod auth;

use rowplane_objects::{causes, codec, expression, fields, kinds, revision, schema, user};
use rowplane_store::{
    cache, egress, failpoints, grpc, metrics, private_files, runtime, storage, tasks, wall_clock, webhook,
};
use rowplane_values::{gotext, json, tree};
use rowplane_x509 as x509;
