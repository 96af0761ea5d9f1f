//! Bytes to objects and back: JSON, protobuf, and the form at rest.

pub mod depth;
pub mod json;
pub mod object;
pub mod protobuf;
pub mod scan;
pub mod yaml;
