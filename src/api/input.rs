//! Input of clients as values: bodies, parameters of the query, selectors, tokens of pages.

pub mod continue_token;
pub mod decode;
pub mod options;
pub mod selector;
pub mod strictness;
