//! The verbs, one generic path for every resource.

pub mod error;
pub mod quote;
