//! From text to a tree: tokens, grammar, macros.

pub mod ast;
pub mod complaint;
pub mod lexer;
mod macros;
pub mod parser;
mod unescape;
