//! The verbs, one generic path for every resource.

pub mod continue_token;
pub mod deletion;
pub mod error;
pub mod meta;
pub mod options;
pub mod selector;
pub mod strategy;
