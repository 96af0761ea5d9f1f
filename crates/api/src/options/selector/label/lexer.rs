//! Tokens of the label selector grammar.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// A key or value; never empty.
    Word(&'a str),
    In,
    NotIn,
    Not,
    Equals,
    DoubleEquals,
    NotEquals,
    GreaterThan,
    LessThan,
    Open,
    Close,
    Comma,
    End,
}

impl<'a> Token<'a> {
    /// The token's text as a key or value. `in` and `notin` are keywords only in the place of an operator.
    pub fn identifier(self) -> Option<&'a str> {
        match self {
            Token::Word(text) => Some(text),
            Token::In => Some("in"),
            Token::NotIn => Some("notin"),
            _ => None,
        }
    }
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Token::Word(text) => text,
            Token::In => "in",
            Token::NotIn => "notin",
            Token::Not => "!",
            Token::Equals => "=",
            Token::DoubleEquals => "==",
            Token::NotEquals => "!=",
            Token::GreaterThan => ">",
            Token::LessThan => "<",
            Token::Open => "(",
            Token::Close => ")",
            Token::Comma => ",",
            Token::End => "",
        })
    }
}

/// Tokens up to the end of the text, or to a NUL, which upstream treats as the end.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut rest = text;
    let mut tokens = Vec::new();
    while let Some((token, after)) = next(rest) {
        tokens.push(token);
        rest = after;
    }
    tokens
}

fn next(text: &str) -> Option<(Token<'_>, &str)> {
    let text = text.trim_start_matches(is_blank);
    let first = text.chars().next().filter(|c| *c != '\0')?;
    Some(if is_special(first) { symbol(first, text) } else { word(text) })
}

/// The longest symbol at the start; only `==` and `!=` have two characters.
fn symbol(first: char, text: &str) -> (Token<'_>, &str) {
    for (pair, token) in [("==", Token::DoubleEquals), ("!=", Token::NotEquals)] {
        if let Some(rest) = text.strip_prefix(pair) {
            return (token, rest);
        }
    }
    let token = match first {
        '=' => Token::Equals,
        '!' => Token::Not,
        '(' => Token::Open,
        ')' => Token::Close,
        ',' => Token::Comma,
        '>' => Token::GreaterThan,
        _ => Token::LessThan,
    };
    (token, &text[1..])
}

fn word(text: &str) -> (Token<'_>, &str) {
    let end = text.find(|c| c == '\0' || is_special(c) || is_blank(c)).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let token = match word {
        "in" => Token::In,
        "notin" => Token::NotIn,
        _ => Token::Word(word),
    };
    // Upstream skips a NUL behind a word.
    (token, rest.strip_prefix('\0').unwrap_or(rest))
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn is_special(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}
