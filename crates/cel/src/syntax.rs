//! From text to a tree: tokens, grammar, macros.

pub mod ast;
pub mod lexer;
pub mod complaint;
mod macros;
pub mod parser;
mod unescape;
