//! JSON values as rowplane holds them, and Go's forms of text. Values are [`tree`]s in memory or exact text ([`json`]), paths lead
//! into them ([`jsonpath`]); the forms are those of numbers and times ([`gotext`]) and [`quantity`].
//!
//! Nothing here depends on Kubernetes' kinds. It is a crate of its own so that it is compiled once, in parallel with
//! others.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::unwrap_used))]

pub mod gotext;
pub mod json;
pub mod jsonpath;
pub mod quantity;
pub mod regexp;
pub mod tree;
