//! The verbs, one generic path for every resource.

pub mod continue_token;
pub mod convert;
pub mod deletion;
pub mod error;
pub mod fields;
pub mod meta;
pub mod options;
pub mod reviews;
pub mod scale;
pub mod selector;
pub mod strategy;
