//! Syntax errors as ANTLR's parser reports them: by its default strategy of recovery, on the automaton that it makes of
//! cel-go's grammar (`parser/gen/CEL.g4`).
//!
//! Only texts that the parser has refused come here. Predictions look ahead as far as it takes to tell branches apart; a
//! loop is preferred to its end, and an earlier branch to a later one.

mod automaton;
mod recovery;

use std::ops::Range;

use super::lexer::{Kind, Token};
use crate::source::Problem;
use recovery::Recovery;

/// Letters that no token begins with.
pub fn unrecognized(text: &str, span: &Range<usize>) -> Problem {
    let lost = &text[span.clone()];
    Problem::at(span.start as u32, format!("Syntax error: token recognition error at: '{lost}'"))
}

/// The syntax errors in the tokens.
pub fn complaints(text: &str, tokens: &[Token]) -> Vec<Problem> {
    Recovery::new(text, tokens).run()
}

fn escaped(text: &str) -> String {
    text.replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r")
}

/// A set of kinds of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Kinds(u64);

impl Kinds {
    fn of(kinds: &[Kind]) -> Self {
        Self(kinds.iter().fold(0, |all, kind| all | 1 << *kind as u32))
    }

    fn has(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u32) != 0
    }

    fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The names of the kinds, as messages list them: the end of the text first.
    fn names(self) -> String {
        let last = [(Kind::End, "<EOF>")];
        let known: Vec<&str> =
            last.iter().chain(&NAMES).filter(|(kind, _)| self.has(*kind)).map(|(_, name)| *name).collect();
        if let [one] = known[..] { one.to_owned() } else { format!("{{{}}}", known.join(", ")) }
    }
}

const NAMES: [(Kind, &str); 35] = [
    (Kind::Equals, "'=='"),
    (Kind::NotEquals, "'!='"),
    (Kind::In, "'in'"),
    (Kind::Less, "'<'"),
    (Kind::LessEquals, "'<='"),
    (Kind::GreaterEquals, "'>='"),
    (Kind::Greater, "'>'"),
    (Kind::And, "'&&'"),
    (Kind::Or, "'||'"),
    (Kind::LeftBracket, "'['"),
    (Kind::RightBracket, "']'"),
    (Kind::LeftBrace, "'{'"),
    (Kind::RightBrace, "'}'"),
    (Kind::LeftParen, "'('"),
    (Kind::RightParen, "')'"),
    (Kind::Dot, "'.'"),
    (Kind::Comma, "','"),
    (Kind::Minus, "'-'"),
    (Kind::Exclamation, "'!'"),
    (Kind::Question, "'?'"),
    (Kind::Colon, "':'"),
    (Kind::Plus, "'+'"),
    (Kind::Star, "'*'"),
    (Kind::Slash, "'/'"),
    (Kind::Percent, "'%'"),
    (Kind::True, "'true'"),
    (Kind::False, "'false'"),
    (Kind::Null, "'null'"),
    (Kind::Float, "NUM_FLOAT"),
    (Kind::Int, "NUM_INT"),
    (Kind::Uint, "NUM_UINT"),
    (Kind::String, "STRING"),
    (Kind::Bytes, "BYTES"),
    (Kind::Identifier, "IDENTIFIER"),
    (Kind::Escaped, "ESC_IDENTIFIER"),
];
