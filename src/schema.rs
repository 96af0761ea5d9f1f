//! What the served kinds are: definitions and (later) types, for built-in kinds and CRDs alike.

pub mod builtin;
pub mod names;
pub mod registry;
pub mod resource;
