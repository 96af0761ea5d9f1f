//! Subresources, and what is sent to be done rather than stored: a file for each.

pub(in crate::api) mod action;
pub(in crate::api) mod binding;
pub mod connect;
pub(in crate::api) mod eviction;
pub(in crate::api) mod rescale;
pub mod reviews;
pub mod scale;
pub mod token_request;
