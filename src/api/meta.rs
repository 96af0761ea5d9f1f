//! `metadata`: formats of names and keys.

pub mod format;
