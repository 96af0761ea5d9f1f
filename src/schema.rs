//! What the served kinds are: definitions and types.

pub mod builtin;
pub mod names;
pub mod registry;
pub mod resource;
pub mod types;
