//! JSON values as rowplane holds them: [`tree`]s in memory, exact text ([`json`]), Go's forms of text ([`gotext`]) and
//! [`quantity`].
//!
//! Nothing here knows of Kubernetes' kinds. A crate of its own, so that it is compiled once and beside others.
#![forbid(unsafe_code)]

pub mod gotext;
pub mod json;
pub mod quantity;
pub mod regexp;
pub mod tree;
