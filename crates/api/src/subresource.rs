//! Subresources, and requests that are answered and never stored, such as reviews and evictions: a file for each.

pub(crate) mod action;
pub(crate) mod binding;
pub mod connect;
pub(crate) mod eviction;
pub(crate) mod rescale;
pub mod reviews;
pub mod token_request;
