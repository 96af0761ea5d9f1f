//! Finds members in JSON text without building a tree.
//!
//! The text must be valid JSON (serde_json has parsed it once); on other text the functions return `None` and never
//! read out of bounds.

use std::ops::Range;

/// A cursor over the members of one JSON object.
pub struct Members<'a> {
    text: &'a [u8],
    at: usize,
    first: bool,
}

/// One member: the span of its key with the quotes, and the span of its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub key: Range<usize>,
    pub value: Range<usize>,
}

impl<'a> Members<'a> {
    /// The members of the object that starts at or after `at`.
    pub fn new(text: &'a [u8], at: usize) -> Option<Self> {
        let at = skip_blanks(text, at);
        (*text.get(at)? == b'{').then_some(Self { text, at: at + 1, first: true })
    }

    /// Reads the next member; `Some(None)` at the closing brace, `None` if the text is not JSON.
    pub fn step(&mut self) -> Option<Option<Member>> {
        let Some(key) = self.key()? else { return Some(None) };
        Some(Some(Member { key, value: self.value()? }))
    }

    /// Reads the key of the next member, and stops before its value; `Some(None)` at the closing brace.
    pub fn key(&mut self) -> Option<Option<Range<usize>>> {
        let mut at = skip_blanks(self.text, self.at);
        match *self.text.get(at)? {
            b'}' => {
                self.at = at;
                return Some(None);
            }
            b',' if !self.first => at = skip_blanks(self.text, at + 1),
            _ if self.first => {}
            _ => return None,
        }
        self.first = false;
        let key = at..end_of_string(self.text, at)?;
        let colon = skip_blanks(self.text, key.end);
        if *self.text.get(colon)? != b':' {
            return None;
        }
        self.at = skip_blanks(self.text, colon + 1);
        Some(Some(key))
    }

    /// Reads the value of the member whose key was read last.
    pub fn value(&mut self) -> Option<Range<usize>> {
        let value = self.at..end_of_value(self.text, self.at)?;
        self.at = value.end;
        Some(value)
    }

    /// The offset of the next value after `key` has found a key, or of the closing brace after `key` has found that.
    pub fn at(&self) -> usize {
        self.at
    }
}

/// The span of member `name` in the object at `at`. Names with escapes are not found.
pub fn member(text: &[u8], at: usize, name: &str) -> Option<Range<usize>> {
    let mut members = Members::new(text, at)?;
    while let Some(key) = members.key()? {
        let value = members.value()?;
        if key_is(text, &key, name) {
            return Some(value);
        }
    }
    None
}

/// The number of nested levels of objects and arrays in a value; 0 for a scalar.
pub fn nesting(text: &[u8]) -> usize {
    let (mut at, mut depth, mut deepest) = (0, 0usize, 0);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => match end_of_string(text, at) {
                Some(end) => at = end - 1,
                None => break,
            },
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    deepest
}

/// Whether the quoted key at `span` is `name`, spelled without escapes.
pub fn key_is(text: &[u8], span: &Range<usize>, name: &str) -> bool {
    &text[span.start + 1..span.end - 1] == name.as_bytes()
}

/// The raw text between the quotes of a string value.
pub fn raw_string<'a>(text: &'a [u8], span: &Range<usize>) -> Option<&'a str> {
    let inner = text.get(span.clone())?.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    std::str::from_utf8(inner).ok()
}

fn skip_blanks(text: &[u8], mut at: usize) -> usize {
    while matches!(text.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

fn end_of_string(text: &[u8], at: usize) -> Option<usize> {
    if *text.get(at)? != b'"' {
        return None;
    }
    let mut at = at + 1;
    loop {
        at = run(text, at);
        match *text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The offset of the first quote, backslash or control character at or after `at`; the end of the text if there is
/// none.
pub fn run(text: &[u8], mut at: usize) -> usize {
    const ONES: u64 = u64::MAX / 0xff;
    const HIGH: u64 = ONES * 0x80;
    // The highest bit of each byte that is below the limit. Only the bits up to the first one are reliable: a borrow
    // affects the bytes behind it.
    let below = |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word & HIGH;
    let is = |word: u64, byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    while let Some(word) = text.get(at..).and_then(|rest| rest.first_chunk()) {
        let word = u64::from_le_bytes(*word);
        match is(word, b'"') | is(word, b'\\') | below(word, b' ') {
            0 => at += 8,
            found => return at + found.trailing_zeros() as usize / 8,
        }
    }
    let rest = text.get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..b' ')).unwrap_or(rest.len())
}

fn end_of_value(text: &[u8], at: usize) -> Option<usize> {
    match *text.get(at)? {
        b'"' => end_of_string(text, at),
        b'{' | b'[' => end_of_nested(text, at),
        _ => {
            let rest = text[at..]
                .iter()
                .position(|b| matches!(b, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t'));
            Some(rest.map_or(text.len(), |n| at + n))
        }
    }
}

fn end_of_nested(text: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0usize;
    loop {
        match *text.get(at)? {
            b'"' => at = end_of_string(text, at)? - 1,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
}
