//! The exact reader: it passes on every token of a JSON text as it is spelled, and reports errors in the words of Go's
//! scanner (`encoding/json`).

use crate::gotext;

/// The deepest nesting that Go reads.
const MAX_DEPTH: usize = 10_000;
const END: &str = "unexpected end of JSON input";

/// Go's first error in a text; `None` if it is valid JSON for Go.
pub fn complaint(text: &[u8]) -> Option<String> {
    scan(text, MAX_DEPTH, &mut ()).err()
}

/// Receives the tokens of a text. Spans are spelled as in the text, strings with their quotes.
pub(super) trait Tokens {
    fn begin(&mut self, _container: Container) {}
    fn key(&mut self, _spelling: &[u8]) {}
    fn scalar(&mut self, _spelling: &[u8]) {}
    fn end(&mut self) {}
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Container {
    Object,
    Array,
}

/// Ignores all tokens, for callers that need only the errors.
impl Tokens for () {}

/// Passes on the tokens of a text until its end or its first error. Containers nest at most `max_depth` deep.
pub(super) fn scan(text: &[u8], max_depth: usize, tokens: &mut impl Tokens) -> Result<(), String> {
    Scanner { text, at: 0, max_depth, tokens }.whole()
}

struct Scanner<'a, T> {
    text: &'a [u8],
    at: usize,
    max_depth: usize,
    tokens: &'a mut T,
}

/// The part of a text that may come next inside a container, or behind the whole value.
enum Expected {
    Value,
    /// A key of an object.
    Key,
    After,
}

impl<T: Tokens> Scanner<'_, T> {
    fn whole(&mut self) -> Result<(), String> {
        // The closing brackets that are still expected.
        let mut open: Vec<u8> = Vec::new();
        let mut expected = Expected::Value;
        loop {
            let byte = self.skip_space();
            match expected {
                Expected::Value => match byte {
                    Some(b'{') => {
                        self.push(Container::Object, &mut open)?;
                        expected = self.first_key(&mut open)?;
                    }
                    Some(b'[') => {
                        self.push(Container::Array, &mut open)?;
                        expected = Expected::Value;
                        if self.skip_space() == Some(b']') {
                            self.close(&mut open);
                            expected = Expected::After;
                        }
                    }
                    _ => {
                        self.scalar()?;
                        expected = Expected::After;
                    }
                },
                Expected::Key => {
                    self.key()?;
                    expected = Expected::Value;
                }
                Expected::After => match (byte, open.last()) {
                    (None, None) => return Ok(()),
                    (Some(_), None) => return Err(self.bad("after top-level value")),
                    (Some(b','), Some(b'}')) => {
                        self.at += 1;
                        expected = Expected::Key;
                    }
                    (Some(b','), Some(_)) => {
                        self.at += 1;
                        expected = Expected::Value;
                    }
                    (Some(byte), Some(close)) if byte == *close => self.close(&mut open),
                    (_, Some(b'}')) => return Err(self.bad("after object key:value pair")),
                    (_, Some(_)) => return Err(self.bad("after array element")),
                },
            }
        }
    }

    fn push(&mut self, container: Container, open: &mut Vec<u8>) -> Result<(), String> {
        self.at += 1;
        open.push(if container == Container::Object { b'}' } else { b']' });
        if open.len() > self.max_depth {
            return Err("exceeded max depth".to_owned());
        }
        self.tokens.begin(container);
        Ok(())
    }

    fn close(&mut self, open: &mut Vec<u8>) {
        self.at += 1;
        open.pop();
        self.tokens.end();
    }

    fn first_key(&mut self, open: &mut Vec<u8>) -> Result<Expected, String> {
        if self.skip_space() == Some(b'}') {
            self.close(open);
            return Ok(Expected::After);
        }
        Ok(Expected::Key)
    }

    fn key(&mut self) -> Result<(), String> {
        if self.skip_space() != Some(b'"') {
            return Err(self.bad("looking for beginning of object key string"));
        }
        let start = self.at;
        self.string()?;
        self.tokens.key(&self.text[start..self.at]);
        if self.skip_space() != Some(b':') {
            return Err(self.bad("after object key"));
        }
        self.at += 1;
        Ok(())
    }

    fn scalar(&mut self) -> Result<(), String> {
        let start = self.at;
        match self.peek() {
            Some(b'"') => self.string()?,
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.literal("true")?,
            Some(b'f') => self.literal("false")?,
            Some(b'n') => self.literal("null")?,
            _ => return Err(self.bad("looking for beginning of value")),
        }
        self.tokens.scalar(&self.text[start..self.at]);
        Ok(())
    }

    fn literal(&mut self, word: &str) -> Result<(), String> {
        for want in word.bytes() {
            if self.peek() != Some(want) {
                return Err(self.bad(&format!("in literal {word} (expecting {})", quoted(want))));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn string(&mut self) -> Result<(), String> {
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.escape()?;
                }
                Some(0x20..) => self.at += 1,
                _ => return Err(self.bad("in string literal")),
            }
        }
    }

    fn escape(&mut self) -> Result<(), String> {
        match self.peek() {
            Some(b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                        return Err(self.bad("in \\u hexadecimal character escape"));
                    }
                    self.at += 1;
                }
            }
            _ => return Err(self.bad("in string escape code")),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), String> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return Err(self.bad("in numeric literal")),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.some_digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.some_digits("in exponent of numeric literal")?;
        }
        Ok(())
    }

    fn some_digits(&mut self, place: &str) -> Result<(), String> {
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return Err(self.bad(place));
        }
        self.digits();
        Ok(())
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn skip_space(&mut self) -> Option<u8> {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        self.peek()
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn bad(&self, place: &str) -> String {
        match self.peek() {
            Some(byte) => format!("invalid character {} {place}", quoted(byte)),
            None => END.to_owned(),
        }
    }
}

fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => r#"'"'"#.to_owned(),
        byte => {
            let quoted = gotext::quote(char::from(byte).encode_utf8(&mut [0; 4]));
            format!("'{}'", quoted.trim_matches('"'))
        }
    }
}
