//! The fast reader: it turns JSON text into a tree if the text is spelled plainly, as almost all texts are. Parsing is
//! a fifth of the cost of a write.
//!
//! The result is the same as `serde_json`'s, or none: text that is invalid, very deep, or has complicated strings or
//! numbers is left to `serde_json`.

use super::Parsed;
use crate::json::scan;
use crate::tree::{Map, Number, Text, Value};

/// How deep this reader goes. `serde_json` reads 127 levels, and a bit set of 128 bits has one for each level.
const LEVELS: usize = 120;

/// The position of a value, as far as it matters for the sets of managers, which stay text (`codec::managed`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManagedPosition {
    /// A position outside of an object's `managedFields`, or in a text where these do not matter.
    Anywhere,
    Object,
    Metadata,
    Entries,
    Entry,
    /// A set, which stays text.
    Set,
}

impl ManagedPosition {
    fn member(self, name: &str) -> Self {
        match (self, name) {
            (Self::Object, "metadata") => Self::Metadata,
            (Self::Metadata, "managedFields") => Self::Entries,
            (Self::Entry, "fieldsV1") => Self::Set,
            _ => Self::Anywhere,
        }
    }

    fn element(self) -> Self {
        if self == Self::Entries { Self::Entry } else { Self::Anywhere }
    }
}

/// Reads a whole text, whose value is at `place`.
pub fn read(text: &str, place: ManagedPosition) -> Option<Parsed> {
    let mut reader = Reader { text, at: 0, repeated: false };
    let value = reader.value(place, LEVELS)?;
    reader.blanks();
    (reader.at == text.len()).then_some(Parsed { value, repeated: reader.repeated })
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    repeated: bool,
}

/// A string that has been read.
struct Quoted<'t> {
    /// The text between the quotes.
    inner: &'t str,
    with_quotes: &'t str,
    escapes: Escapes,
}

#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Escapes {
    None,
    /// Only escapes of one letter.
    Short,
    /// Also escapes with a number, which may be half a character.
    Numbers,
}

impl<'t> Reader<'t> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.byte(self.at) {
            self.at += 1;
        }
    }

    /// The next byte that is not blank.
    fn peek(&mut self) -> Option<u8> {
        self.blanks();
        self.byte(self.at)
    }

    /// Reads this byte, which must come next.
    fn pass(&mut self, byte: u8) -> Option<()> {
        let found = self.peek()? == byte;
        self.at += 1;
        found.then_some(())
    }

    /// Reads behind a member or element. Returns whether another one follows.
    fn goes_on(&mut self, end: u8) -> Option<bool> {
        let next = self.peek()?;
        self.at += 1;
        match next {
            b',' => Some(true),
            next if next == end => Some(false),
            _ => None,
        }
    }

    /// Reads the start of an object or array. Returns whether it has content.
    fn enter(&mut self, end: u8) -> Option<bool> {
        self.at += 1;
        let is_empty = self.peek()? == end;
        self.at += usize::from(is_empty);
        Some(!is_empty)
    }

    fn value(&mut self, place: ManagedPosition, levels: usize) -> Option<Value> {
        if place == ManagedPosition::Set {
            return self.set(levels);
        }
        match self.peek()? {
            b'"' => self.string().map(Value::String),
            b'{' => self.object(place, levels.checked_sub(1)?).map(Value::Object),
            b'[' => self.array(place, levels.checked_sub(1)?).map(Value::Array),
            b't' => self.literal("true").map(|()| true.into()),
            b'f' => self.literal("false").map(|()| false.into()),
            b'n' => self.literal("null").map(|()| Value::Null),
            b'-' | b'0'..=b'9' => self.number().map(Value::Number),
            _ => None,
        }
    }

    fn object(&mut self, place: ManagedPosition, levels: usize) -> Option<Map> {
        let mut object = Map::new();
        let mut more = self.enter(b'}')?;
        while more {
            let name = self.key()?;
            let value = self.value(place.member(&name), levels)?;
            self.repeated |= object.insert(name, value).is_some();
            more = self.goes_on(b'}')?;
        }
        Some(object)
    }

    fn key(&mut self) -> Option<Text> {
        self.blanks();
        let key = self.string()?;
        self.pass(b':')?;
        Some(key)
    }

    fn array(&mut self, place: ManagedPosition, levels: usize) -> Option<Vec<Value>> {
        let mut array = Vec::new();
        let mut more = self.enter(b']')?;
        while more {
            array.push(self.value(place.element(), levels)?);
            more = self.goes_on(b']')?;
        }
        Some(array)
    }

    fn literal(&mut self, literal: &str) -> Option<()> {
        let found = self.text.as_bytes()[self.at..].starts_with(literal.as_bytes());
        self.at += literal.len();
        found.then_some(())
    }

    fn number(&mut self) -> Option<Number> {
        let rest = &self.text.as_bytes()[self.at..];
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let length = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        let spelling = &self.text[self.at..self.at + length];
        self.at += length;
        match spelling.as_bytes() {
            // Numbers of this length without a leading zero fit in i64.
            [b'1'..=b'9', digits @ ..] if digits.len() < 18 && digits.iter().all(u8::is_ascii_digit) => {
                spelling.parse::<i64>().ok().map(Number::from)
            }
            b"0" => Some(0.into()),
            _ => serde_json::from_str(spelling).ok(),
        }
    }

    fn string(&mut self) -> Option<Text> {
        let quoted = self.quoted()?;
        match quoted.escapes {
            Escapes::None => Some(Text::new(quoted.inner)),
            _ => serde_json::from_str(quoted.with_quotes).ok(),
        }
    }

    /// Reads a string.
    fn quoted(&mut self) -> Option<Quoted<'t>> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        if *bytes.get(start)? != b'"' {
            return None;
        }
        let mut escapes = Escapes::None;
        let mut at = start + 1;
        loop {
            at = scan::run(bytes, at);
            match *bytes.get(at)? {
                b'"' => {
                    self.at = at + 1;
                    let (inner, with_quotes) = (&self.text[start + 1..at], &self.text[start..=at]);
                    return Some(Quoted { inner, with_quotes, escapes });
                }
                b'\\' => {
                    let found = match bytes.get(at + 1)? {
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Escapes::Short,
                        b'u' => Escapes::Numbers,
                        _ => return None,
                    };
                    escapes = if found > escapes { found } else { escapes };
                    at += 2;
                }
                _ => return None,
            }
        }
    }

    fn set(&mut self, levels: usize) -> Option<Value> {
        self.blanks();
        let start = self.at;
        self.skip(levels)?;
        match &self.text[start..self.at] {
            "null" => Some(Value::Null),
            text => Some(text.into()),
        }
    }

    /// Skips a value, which must be valid JSON.
    fn skip(&mut self, levels: usize) -> Option<()> {
        let (mut depth, mut objects) = (0, 0_u128);
        loop {
            match self.peek()? {
                first @ (b'{' | b'[') => {
                    if depth == levels {
                        return None;
                    }
                    (depth, objects) = (depth + 1, objects << 1 | u128::from(first == b'{'));
                    self.at += 1;
                    let next = self.peek()?;
                    if !matches!((first, next), (b'{', b'}') | (b'[', b']')) {
                        if first == b'{' {
                            self.skip_key()?;
                        }
                        continue;
                    }
                }
                b'"' => self.skip_string()?,
                _ => _ = self.value(ManagedPosition::Anywhere, 0)?,
            }
            // After a value ends, containers around it may end, too.
            loop {
                if depth == 0 {
                    return Some(());
                }
                let next = self.peek()?;
                self.at += 1;
                match (next, objects & 1) {
                    (b'}', 1) | (b']', 0) => (depth, objects) = (depth - 1, objects >> 1),
                    (b',', 1) => {
                        self.blanks();
                        self.skip_key()?;
                        break;
                    }
                    (b',', _) => break,
                    _ => return None,
                }
            }
        }
    }

    fn skip_key(&mut self) -> Option<()> {
        self.skip_string()?;
        self.pass(b':')
    }

    fn skip_string(&mut self) -> Option<()> {
        (self.quoted()?.escapes < Escapes::Numbers).then_some(())
    }
}

#[cfg(test)]
mod tests;
