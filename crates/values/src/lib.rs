//! JSON values as rowplane holds them: [`tree`]s in memory, exact text ([`json`]), paths into values ([`jsonpath`]), Go's
//! text forms ([`gotext`]) and [`quantity`].
//!
//! Nothing here depends on Kubernetes' kinds. It is a crate of its own so that it is compiled once, in parallel with
//! others.
#![forbid(unsafe_code)]

pub mod gotext;
pub mod json;
pub mod jsonpath;
pub mod quantity;
pub mod regexp;
pub mod tree;
