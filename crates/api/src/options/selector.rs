//! Label and field selectors: grammar, texts of refusal, matching.

pub mod attributes;
pub mod field;
pub mod label;
