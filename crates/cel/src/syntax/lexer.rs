//! The tokens of an expression, as the grammar of cel-go (`parser/gen/CEL.g4`) cuts them: the longest one wins.

use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Equals,
    NotEquals,
    In,
    Less,
    LessEquals,
    GreaterEquals,
    Greater,
    And,
    Or,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
    LeftParen,
    RightParen,
    Dot,
    Comma,
    Minus,
    Exclamation,
    Question,
    Colon,
    Plus,
    Star,
    Slash,
    Percent,
    True,
    False,
    Null,
    Float,
    Int,
    Uint,
    String,
    Bytes,
    Identifier,
    Escaped,
    End,
}

#[derive(Clone, Debug)]
pub struct Token {
    pub kind: Kind,
    pub span: Range<usize>,
}

/// Bytes that are no token.
#[derive(Debug)]
pub struct Unrecognized {
    pub span: Range<usize>,
}

/// Words and signs, longer ones before their beginnings.
pub const SIGNS: [(&str, Kind); 25] = [
    ("==", Kind::Equals),
    ("!=", Kind::NotEquals),
    ("<=", Kind::LessEquals),
    (">=", Kind::GreaterEquals),
    ("&&", Kind::And),
    ("||", Kind::Or),
    ("<", Kind::Less),
    (">", Kind::Greater),
    ("[", Kind::LeftBracket),
    ("]", Kind::RightBracket),
    ("{", Kind::LeftBrace),
    ("}", Kind::RightBrace),
    ("(", Kind::LeftParen),
    (")", Kind::RightParen),
    (".", Kind::Dot),
    (",", Kind::Comma),
    ("-", Kind::Minus),
    ("!", Kind::Exclamation),
    ("?", Kind::Question),
    (":", Kind::Colon),
    ("+", Kind::Plus),
    ("*", Kind::Star),
    ("/", Kind::Slash),
    ("%", Kind::Percent),
    ("\u{0}", Kind::End),
];

/// All tokens of the text, the last of which is its end, and what could not be read.
pub fn tokens(text: &str) -> (Vec<Token>, Vec<Unrecognized>) {
    let mut lexer = Lexer { text, bytes: text.as_bytes(), at: 0 };
    let (mut tokens, mut unrecognized) = (Vec::new(), Vec::new());
    while lexer.skip_blanks() {
        match lexer.token() {
            Ok(token) => tokens.push(token),
            Err(span) => unrecognized.push(Unrecognized { span }),
        }
    }
    tokens.push(Token { kind: Kind::End, span: text.len()..text.len() });
    (tokens, unrecognized)
}

struct Lexer<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
}

impl Lexer<'_> {
    /// Whether something follows the blanks and comments.
    fn skip_blanks(&mut self) -> bool {
        loop {
            match self.peek(0) {
                None => return false,
                Some(b' ' | b'\t' | b'\r' | b'\n' | 0x0c) => self.at += 1,
                Some(b'/') if self.peek(1) == Some(b'/') => {
                    let rest = &self.bytes[self.at..];
                    self.at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                }
                Some(_) => return true,
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn token(&mut self) -> Result<Token, Range<usize>> {
        let (start, first) = (self.at, self.bytes[self.at]);
        let found = match first {
            b'0'..=b'9' => Ok(self.number()),
            b'.' if self.peek(1).is_some_and(|byte| byte.is_ascii_digit()) => Ok(self.number()),
            b'"' | b'\'' => self.string(start).map(|end| (Kind::String, end)),
            b'`' => self.escaped(),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => Ok(self.word()),
            _ => self.sign(),
        };
        match found {
            Ok((kind, end)) => {
                self.at = end;
                Ok(Token { kind, span: start..end })
            }
            Err(failed) => {
                // The letter that did not fit is lost with those before it.
                let lost = self.text[failed..].chars().next().map_or(failed, |c| failed + c.len_utf8());
                self.at = lost;
                Err(start..lost)
            }
        }
    }

    /// A sign, or where it stops being one.
    fn sign(&self) -> Result<(Kind, usize), usize> {
        let rest = &self.text[self.at..];
        let known = SIGNS.iter().find(|(sign, kind)| rest.starts_with(sign) && *kind != Kind::End);
        match known {
            Some((sign, kind)) => Ok((*kind, self.at + sign.len())),
            None if rest.starts_with(['=', '&', '|']) => Err(self.at + 1),
            None => Err(self.at),
        }
    }

    fn digits(&self, from: usize) -> usize {
        self.run(from, |byte| byte.is_ascii_digit())
    }

    fn run(&self, from: usize, holds: impl Fn(u8) -> bool) -> usize {
        self.bytes[from..]
            .iter()
            .position(|byte| !holds(*byte))
            .map_or(self.bytes.len(), |length| from + length)
    }

    fn number(&self) -> (Kind, usize) {
        let unsigned = |end: usize| matches!(self.bytes.get(end), Some(b'u' | b'U'));
        let whole = self.digits(self.at);
        let mut end = whole;
        let mut is_float = false;
        if self.bytes.get(end) == Some(&b'.') && self.digits(end + 1) > end + 1 {
            end = self.digits(end + 1);
            is_float = true;
        }
        if matches!(self.bytes.get(end), Some(b'e' | b'E')) {
            let signed = matches!(self.bytes.get(end + 1), Some(b'+' | b'-'));
            let from = end + 1 + usize::from(signed);
            if from <= self.bytes.len() && self.digits(from) > from {
                end = self.digits(from);
                is_float = true;
            }
        }
        if is_float {
            return (Kind::Float, end);
        }
        let mut end = whole;
        if self.text[self.at..].starts_with("0x") {
            let hexadecimal = self.run(self.at + 2, |byte| byte.is_ascii_hexdigit());
            if hexadecimal > self.at + 2 {
                end = hexadecimal;
            }
        }
        if unsigned(end) { (Kind::Uint, end + 1) } else { (Kind::Int, end) }
    }

    fn word(&self) -> (Kind, usize) {
        let end = self.run(self.at, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let word = &self.text[self.at..end];
        let quoted = |at: usize| matches!(self.bytes.get(at), Some(b'"' | b'\''));
        if word.len() <= 2 && quoted(end) {
            let (bytes, raw) = match word {
                "b" | "B" => (true, false),
                "r" | "R" => (false, true),
                "br" | "bR" | "Br" | "BR" => (true, true),
                _ => (false, false),
            };
            let string = if raw { self.raw(end) } else { self.string(end) };
            if let (true, Ok(end)) = (bytes || raw, string) {
                return (if bytes { Kind::Bytes } else { Kind::String }, end);
            }
        }
        let kind = match word {
            "in" => Kind::In,
            "true" => Kind::True,
            "false" => Kind::False,
            "null" => Kind::Null,
            _ => Kind::Identifier,
        };
        (kind, end)
    }

    fn escaped(&self) -> Result<(Kind, usize), usize> {
        let end = self.run(self.at + 1, |byte| byte.is_ascii_alphanumeric() || b"_.-/ ".contains(&byte));
        if end > self.at + 1 && self.bytes.get(end) == Some(&b'`') {
            Ok((Kind::Escaped, end + 1))
        } else {
            Err(end)
        }
    }

    /// The end of the string that starts there; the error is the first letter that does not fit.
    fn string(&self, start: usize) -> Result<usize, usize> {
        let quote = self.bytes[start];
        if self.is_triple(start, quote)
            && let Ok(end) = self.triple(start + 3, quote)
        {
            return Ok(end);
        }
        let mut at = start + 1;
        loop {
            match self.bytes.get(at) {
                Some(byte) if *byte == quote => return Ok(at + 1),
                None | Some(b'\n' | b'\r') => return Err(at),
                Some(b'\\') => at = self.escape(at)?,
                Some(_) => at += 1,
            }
        }
    }

    fn is_triple(&self, start: usize, quote: u8) -> bool {
        self.bytes[start..].starts_with(&[quote; 3])
    }

    fn triple(&self, mut at: usize, quote: u8) -> Result<usize, usize> {
        loop {
            match self.bytes.get(at) {
                Some(_) if self.is_triple(at, quote) => return Ok(at + 3),
                None => return Err(at),
                Some(b'\\') => at = self.escape(at)?,
                Some(_) => at += 1,
            }
        }
    }

    fn raw(&self, start: usize) -> Result<usize, usize> {
        let quote = self.bytes[start];
        if self.is_triple(start, quote) {
            let rest = &self.bytes[start + 3..];
            if let Some(length) = rest.windows(3).position(|three| three == [quote; 3]) {
                return Ok(start + 3 + length + 3);
            }
        }
        let end = self.run(start + 1, |byte| byte != quote && byte != b'\n' && byte != b'\r');
        if self.bytes.get(end) == Some(&quote) { Ok(end + 1) } else { Err(end) }
    }

    fn escape(&self, at: usize) -> Result<usize, usize> {
        let hexadecimal = |count: usize| self.exactly(at + 2, count, |byte| byte.is_ascii_hexdigit());
        match self.bytes.get(at + 1) {
            Some(b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`') => {
                Ok(at + 2)
            }
            Some(b'x' | b'X') => hexadecimal(2),
            Some(b'u') => hexadecimal(4),
            Some(b'U') => hexadecimal(8),
            Some(b'0'..=b'3') => self.exactly(at + 2, 2, |byte| (b'0'..=b'7').contains(&byte)),
            _ => Err(at + 1),
        }
    }

    fn exactly(&self, from: usize, count: usize, holds: impl Fn(u8) -> bool) -> Result<usize, usize> {
        let end = self.run(from.min(self.bytes.len()), holds);
        if end >= from + count { Ok(from + count) } else { Err(end) }
    }
}
