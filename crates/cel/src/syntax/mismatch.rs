//! Syntax errors, in the words of cel-go's parser: the token that does not fit, and the kinds that would. The first one ends
//! the parse, where ANTLR's parsers try to go on (`docs/differences.md`).

use std::ops::Range;

use super::lexer::{Kind, SIGNS, Token};
use crate::source::Problem;

/// The error of letters that no token begins with.
pub fn unrecognized(text: &str, span: &Range<usize>) -> Problem {
    error(span.start, format!("token recognition error at: '{}'", &text[span.clone()]))
}

/// The error that the first token is of none of the kinds that are expected. Where the outermost expression may end behind it,
/// a sign that closes is missing.
pub fn mismatch(text: &str, tokens: &[Token], expected: &[Kind], is_outermost: bool) -> Problem {
    let (found, next) = (&tokens[0], tokens.get(1));
    let is_end = found.kind == Kind::End;
    let shown = if is_end { "<EOF>".to_owned() } else { escaped(&text[found.span.clone()]) };
    let mut kinds = expected.to_vec();
    // The end of the text comes first.
    kinds.sort_by_key(|kind| (*kind != Kind::End, *kind));
    let names: Vec<String> = kinds.into_iter().map(name).collect();
    let names = if let [one] = &names[..] { one.clone() } else { format!("{{{}}}", names.join(", ")) };
    let is_unclosed = matches!(expected, [Kind::RightParen | Kind::RightBracket]);
    let message = match next {
        _ if is_end && is_outermost && is_unclosed => format!("missing {names} at '{shown}'"),
        Some(next) if expected.contains(&next.kind) => {
            format!("extraneous input '{shown}' expecting {names}")
        }
        _ => format!("mismatched input '{shown}' expecting {names}"),
    };
    error(found.span.start, message)
}

/// The error that no name follows the dot at `dot`.
pub fn no_name(text: &str, dot: u32, found: &Token) -> Problem {
    let message = match found.kind {
        Kind::True | Kind::False | Kind::Null => {
            format!("mismatched input '{}' expecting IDENTIFIER", &text[found.span.clone()])
        }
        _ => format!("no viable alternative at input '{}'", escaped(&text[dot as usize..found.span.end])),
    };
    error(found.span.start, message)
}

fn error(start: usize, message: String) -> Problem {
    Problem::at(start as u32, format!("Syntax error: {message}"))
}

fn escaped(text: &str) -> String {
    text.replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r")
}

/// The name of a kind of tokens in the grammar.
fn name(kind: Kind) -> String {
    let name = match kind {
        Kind::End => "<EOF>",
        Kind::Float => "NUM_FLOAT",
        Kind::Int => "NUM_INT",
        Kind::Uint => "NUM_UINT",
        Kind::String => "STRING",
        Kind::Bytes => "BYTES",
        Kind::Identifier => "IDENTIFIER",
        Kind::Escaped => "ESC_IDENTIFIER",
        Kind::True => "'true'",
        Kind::False => "'false'",
        Kind::Null => "'null'",
        Kind::In => "'in'",
        sign => {
            let text = SIGNS.iter().find(|known| known.1 == sign).map_or("", |known| known.0);
            return format!("'{text}'");
        }
    };
    name.to_owned()
}
