//! Converts bytes to objects and back: JSON, YAML, protobuf, and the encoding of stored values.

pub mod at_rest;
pub mod depth;
pub mod managed;
pub mod media_type;
pub mod object;
pub mod protobuf;
pub mod sealed;
pub mod yaml;
