//! Storage of objects: the store on SQL or in memory, values sealed at rest, and the watch cache; beneath them services
//! that every part of a server is handed, and calls of hooks and key services.
//!
//! A module imports only from modules below it in this list.
#![deny(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::unwrap_used))]
#![cfg_attr(
    not(all(feature = "postgres", feature = "sqlite")),
    allow(
        dead_code,
        unused_macros,
        unused_imports,
        reason = "the databases share parts that nothing else needs"
    )
)]

pub mod cache;

pub mod encryption;

pub mod storage;

pub mod relay;

pub mod webhook;

pub mod answers;

pub mod traces;

pub mod runtime;

pub mod egress;

pub mod metrics;

pub mod config_file;

pub mod failpoints;
pub mod grpc;
pub mod identity;
pub mod layered;
pub mod private_files;
pub mod random;
pub mod scheduling;
pub mod server_trust;
pub mod tasks;
pub mod wall_clock;
pub mod watched_file;

use rowplane_objects::{causes, codec, fields, revision, schema, user};
use rowplane_values::{gotext, tree};
use rowplane_x509 as x509;
