//! Objects: the types of kinds as data; objects in JSON, YAML and protobuf and as they are stored; patches and server-side
//! apply; and rowplane's knowledge of each kind beyond its type.
//!
//! A module imports only from modules below it in this list. Nothing here reads or writes anything but values.
// `codec::yaml::events` says why it needs it.
#![deny(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::unwrap_used))]

pub mod kinds;

pub mod patch;

pub mod expression;

pub mod codec;

pub mod schema;

pub mod fields;

pub mod protowire;

pub mod causes;
pub mod long_work;
pub mod pieces;
pub mod revision;
pub mod user;
pub mod warnings;

pub use rowplane_values::{gotext, json, jsonpath, quantity, regexp, tree};
pub use rowplane_x509 as x509;
