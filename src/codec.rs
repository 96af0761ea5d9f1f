//! Bytes to objects and back: JSON, protobuf, and the form at rest.

pub mod at_rest;
pub mod depth;
pub mod managed;
pub mod media_type;
pub mod object;
pub mod protobuf;
pub mod yaml;
