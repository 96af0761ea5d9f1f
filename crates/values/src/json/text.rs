//! JSON text as Go's `encoding/json` writes it: compact, with characters escaped that HTML could misread.

use std::io;

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

/// The number of bytes that are tested together, since most need no escape.
const BLOCK: usize = 32;
/// The same near the end, and for short texts.
const WORD: usize = 8;

/// Appends the JSON of a value with string keys. Writing to a `Vec` cannot fail.
pub fn write_json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    write(out, value, CompactFormatter);
}

/// Like [`write_json`], indented by two blanks.
pub fn write_indented<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    write(out, value, PrettyFormatter::new());
}

fn write<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T, layout: impl Formatter) {
    let mut serializer = Serializer::with_formatter(out, GoText { layout });
    value.serialize(&mut serializer).expect("JSON values with string keys serialize into memory");
}

/// Appends a string with its quotes.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    escape(out, text.as_bytes());
    out.push(b'"');
}

/// Appends JSON as `encoding/json` embeds what is JSON already: without blanks between its tokens, so that it has no line
/// ends, and with the same escapes in its strings. The text has to be JSON.
pub fn write_compact(out: &mut Vec<u8>, json: &[u8]) {
    let mut rest = json;
    while let Some(quote) = memchr::memchr(b'"', rest) {
        out.extend(rest[..quote].iter().filter(|byte| !byte.is_ascii_whitespace()));
        let text = &rest[quote..];
        let (string, after) = text.split_at(string_length(text));
        write_embedded(out, string);
        rest = after;
    }
    out.extend(rest.iter().filter(|byte| !byte.is_ascii_whitespace()));
}

/// The length of the string that the text begins with, with its quotes.
fn string_length(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(found) = text.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if text[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    text.len()
}

/// Appends a string that is JSON already. Quotes and backslashes stay as they are.
fn write_embedded(out: &mut Vec<u8>, string: &[u8]) {
    let mut rest = string;
    while let Some(special) = rest.iter().position(|byte| matches!(byte, b'<' | b'>' | b'&' | 0xe2)) {
        out.extend_from_slice(&rest[..special]);
        rest = &rest[special..];
        let length = escaped(rest).map_or(1, |(_, length)| length);
        escape(out, &rest[..length]);
        rest = &rest[length..];
    }
    out.extend_from_slice(rest);
}

/// A layout of `serde_json`'s, with Go's additional escapes.
struct GoText<F> {
    layout: F,
}

/// Methods that are forwarded to the layout.
macro_rules! laid_out {
    ($($method:ident($($argument:ident: $kind:ty)?)),* $(,)?) => {
        $(fn $method<W: io::Write + ?Sized>(&mut self, writer: &mut W $(, $argument: $kind)?) -> io::Result<()> {
            self.layout.$method(writer $(, $argument)?)
        })*
    };
}

impl<F: Formatter> Formatter for GoText<F> {
    laid_out! {
        begin_array(), end_array(), begin_array_value(first: bool), end_array_value(),
        begin_object(), end_object(), begin_object_key(first: bool), begin_object_value(), end_object_value(),
    }

    fn write_f64<W: io::Write + ?Sized>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(float(value).as_bytes())
    }

    fn write_string_fragment<W: io::Write + ?Sized>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        if fragment.bytes().all(|byte| !is_special(byte)) {
            return writer.write_all(fragment.as_bytes());
        }
        let mut escaped = Vec::with_capacity(fragment.len() + 16);
        escape(&mut escaped, fragment.as_bytes());
        writer.write_all(&escaped)
    }
}

/// Digits alone from 1e-6 up to 1e21, and no fraction where there is none.
fn float(value: f64) -> String {
    if value == 0.0 || (1e-6..1e21).contains(&value.abs()) {
        return value.to_string();
    }
    let text = format!("{value:e}");
    if text.contains("e-") { text } else { text.replace('e', "e+") }
}

/// Whether a byte is escaped, or starts one of the line separators U+2028 and U+2029.
///
/// Comparisons are joined by `|`: the compiler then tests a block with a few vector instructions. With a pattern it
/// used a table, which took fifteen times as long (measured).
fn is_special(byte: u8) -> bool {
    (byte < 0x20)
        | (byte == b'"')
        | (byte == b'\\')
        | (byte == b'<')
        | (byte == b'>')
        | (byte == b'&')
        | (byte == 0xe2)
}

fn escape(out: &mut Vec<u8>, mut text: &[u8]) {
    loop {
        let (plain, special) = text.split_at(plain_length(text));
        out.extend_from_slice(plain);
        let Some(first) = special.first() else { return };
        text = match escaped(special) {
            Some((escaped, length)) => {
                out.extend_from_slice(&escaped[..if escaped[1] == b'u' { 6 } else { 2 }]);
                &special[length..]
            }
            None => {
                out.push(*first);
                &special[1..]
            }
        };
    }
}

/// The number of bytes before the first special one.
fn plain_length(text: &[u8]) -> usize {
    let mut rest = text;
    while let Some((block, after)) = rest.split_first_chunk::<BLOCK>()
        && is_plain(block)
    {
        rest = after;
    }
    while let Some((block, after)) = rest.split_first_chunk::<WORD>()
        && is_plain(block)
    {
        rest = after;
    }
    let last = rest.iter().position(|byte| is_special(*byte)).unwrap_or(rest.len());
    text.len() - rest.len() + last
}

/// Whether no byte of a block is special. Its length is fixed, so that the compiler uses vector instructions.
fn is_plain<const LENGTH: usize>(block: &[u8; LENGTH]) -> bool {
    !block.iter().fold(false, |found, byte| found | is_special(*byte))
}

/// The escape of the first character, and the number of bytes that it replaces; `None` for characters that are not
/// escaped.
fn escaped(text: &[u8]) -> Option<([u8; 6], usize)> {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let short = |letter| Some(([b'\\', letter, 0, 0, 0, 0], 1));
    match text {
        [b'"', ..] => short(b'"'),
        [b'\\', ..] => short(b'\\'),
        [b'\n', ..] => short(b'n'),
        [b'\r', ..] => short(b'r'),
        [b'\t', ..] => short(b't'),
        [0x08, ..] => short(b'b'),
        [0x0c, ..] => short(b'f'),
        [byte @ (..0x20 | b'<' | b'>' | b'&'), ..] => {
            let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
            Some(([b'\\', b'u', b'0', b'0', digits[0], digits[1]], 1))
        }
        [0xe2, 0x80, last @ (0xa8 | 0xa9), ..] => {
            Some(([b'\\', b'u', b'2', b'0', b'2', last - 0xa8 + b'8'], 3))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Value;

    fn both(text: &str) -> String {
        let (mut string, mut value) = (Vec::new(), Vec::new());
        write_string(&mut string, text);
        write_json(&mut value, &Value::from(text));
        assert_eq!(string, value, "{text:?}");
        String::from_utf8(string).expect("UTF-8")
    }

    #[test]
    fn strings_are_escaped_as_go_escapes_them() {
        let long = "a".repeat(BLOCK * 2 - 1);
        for (text, want) in [
            ("", ""),
            ("plain/\u{7f}é", "plain/\u{7f}é"),
            ("\"\\\n\r\t\u{8}\u{c}\u{1}\u{1f}", "\\\"\\\\\\n\\r\\t\\b\\f\\u0001\\u001f"),
            ("<a&b>", "\\u003ca\\u0026b\\u003e"),
            ("\u{2028}\u{2029}\u{202a}â", "\\u2028\\u2029\u{202a}â"),
        ] {
            assert_eq!(both(text), format!("\"{want}\""));
            assert_eq!(both(&format!("{long}{text}{long}")), format!("\"{long}{want}{long}\""));
        }
    }
}
