//! What the served kinds are: definitions, types and defaults.

pub mod defaults;
pub mod names;
pub mod registry;
pub mod resource;
pub mod types;
