//! The served kinds: definitions, types and defaults.

pub mod builtin;
pub mod kind;
pub mod names;
pub mod registry;
pub mod resource;
pub mod structural;
pub mod types;
