//! Bytes to objects and back: JSON, and the form at rest.

pub mod depth;
pub mod object;
pub mod scan;
