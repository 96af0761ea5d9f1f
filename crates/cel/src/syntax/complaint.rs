//! placeholder
use std::ops::Range;
use super::lexer::Token;
use crate::source::Problem;
pub fn unrecognized(text: &str, span: &Range<usize>) -> Problem {
    let lost = text[span.clone()].replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r");
    Problem::at(span.start as u32, format!("Syntax error: token recognition error at: '{lost}'"))
}
pub fn complaints(_text: &str, _tokens: &[Token]) -> Vec<Problem> { vec![Problem::of_all("Syntax error".into())] }
