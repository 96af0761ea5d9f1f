//! What the served kinds are: definitions and (later) types, for built-in kinds and CRDs alike.

pub mod names;
pub mod resource;
