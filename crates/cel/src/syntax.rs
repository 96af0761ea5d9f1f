//! From text to a tree: tokens, grammar, macros.

pub mod ast;
pub mod lexer;
mod macros;
pub mod mismatch;
pub mod parser;
mod unescape;
