//! Strings in YAML: plain if YAML 1.1 would read them back as strings, otherwise quoted (go-yaml's `stringv` and
//! `analyze_scalar`).

use std::fmt::Write;

use super::emit::pad;

#[derive(Clone, Copy)]
pub(super) enum ScalarPosition {
    Key,
    /// A value whose further lines are indented by this much.
    Value {
        indent: usize,
    },
}

/// Words that are not strings. go-yaml knows each in three spellings: lower case, upper case, capitalized.
const WORDS: [&str; 10] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n", "~"];

pub(super) fn put(out: &mut String, text: &str, place: ScalarPosition) {
    match place {
        _ if reads_as_another_type(text) => double_quoted(out, text),
        ScalarPosition::Value { indent } if text.contains('\n') && fits_in_a_block(text) => {
            block(out, text, indent)
        }
        _ if !printable(text) || text.contains('\n') => double_quoted(out, text),
        _ if is_plain(text) => out.push_str(text),
        _ => {
            out.push('\'');
            out.push_str(&text.replace('\'', "''"));
            out.push('\'');
        }
    }
}

/// Whether go-yaml reads a plain scalar as a string.
pub(super) fn is_a_string(text: &str) -> bool {
    !reads_as_another_type(text)
}

fn reads_as_another_type(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let cased = text == lower || text == text.to_ascii_uppercase() || text == capitalized(&lower);
    text.is_empty()
        || cased && WORDS.contains(&lower.as_str())
        || matches!(text, "<<" | "=")
        || is_number(&lower)
        || is_timestamp(text)
}

fn capitalized(lower: &str) -> String {
    let mut chars = lower.chars();
    chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect()
}

fn is_number(lower: &str) -> bool {
    let unsigned = lower.strip_prefix(['+', '-']).unwrap_or(lower);
    if matches!(unsigned, ".inf" | ".nan") {
        return true;
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return false;
    }
    let digits = unsigned.replace('_', "");
    let based = |prefix: &str, radix: u32| {
        digits
            .strip_prefix(prefix)
            .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_digit(radix)))
    };
    // Numbers in base 60, such as 12:30.
    let sixty = digits.contains(':') && digits.split(':').all(|part| part.parse::<f64>().is_ok());
    based("0x", 16) || based("0b", 2) || based("0o", 8) || sixty || digits.parse::<f64>().is_ok()
}

fn is_timestamp(text: &str) -> bool {
    let (date, rest) = text.split_at(text.find(['T', 't', ' ']).unwrap_or(text.len()));
    let mut parts = date.split('-');
    let mut number = |lengths: std::ops::RangeInclusive<usize>| {
        parts.next().is_some_and(|part| {
            lengths.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    let is_date = number(4..=4) && number(1..=2) && number(1..=2) && parts.next().is_none();
    is_date && (rest.is_empty() || rest[1..].trim_start().starts_with(|c: char| c.is_ascii_digit()))
}

fn printable(text: &str) -> bool {
    text.chars().all(|c| c == '\n' || is_printable(c))
}

fn is_printable(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Whether the text contains nothing that has a meaning in YAML.
fn is_plain(text: &str) -> bool {
    let first = text.chars().next().unwrap_or(' ');
    let lone = |c: char| text[c.len_utf8()..].starts_with(' ') || text.len() == c.len_utf8();
    let begins_badly = match first {
        '?' | ':' | '-' => lone(first),
        _ => "#,[]{}&*!|>'\"%@`".contains(first),
    };
    let spaced = text.starts_with(' ') || text.ends_with(' ');
    let marks = text.starts_with("---") || text.starts_with("...");
    !(begins_badly || spaced || marks || text.contains(": ") || text.ends_with(':') || text.contains(" #"))
}

/// Lines that end in a space would lose it.
fn fits_in_a_block(text: &str) -> bool {
    printable(text) && !text.contains(" \n") && !text.ends_with(' ')
}

fn block(out: &mut String, text: &str, indent: usize) {
    out.push('|');
    // A first line that begins with a space or is empty hides where the text begins.
    if text.starts_with([' ', '\n']) {
        out.push('2');
    }
    let body = text.strip_suffix('\n');
    match body {
        None => out.push('-'),
        Some(body) if body.is_empty() || body.ends_with('\n') => out.push('+'),
        Some(_) => {}
    }
    for line in body.unwrap_or(text).split('\n') {
        out.push('\n');
        if !line.is_empty() {
            pad(out, indent);
            out.push_str(line);
        }
    }
    out.push('\n');
}

fn double_quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\0' => out.push_str("\\0"),
            '\u{feff}' => out.push_str("\\uFEFF"),
            '\u{2028}' => out.push_str("\\L"),
            '\u{2029}' => out.push_str("\\P"),
            c if is_printable(c) => out.push(c),
            c => {
                let code = u32::from(c);
                let digits = if code <= 0xff { format!("\\x{code:02X}") } else { format!("\\u{code:04X}") };
                let _ = out.write_str(&digits);
            }
        }
    }
    out.push('"');
}
