//! Strings in YAML: plain if YAML 1.1 would read them back as strings, otherwise quoted (go-yaml's `stringv` and
//! `analyze_scalar`).

use std::fmt::Write;

use super::resolve::{self, Resolved};

#[derive(Clone, Copy)]
pub(super) enum ScalarPosition {
    Key,
    /// A value whose further lines are indented by this much.
    Value {
        indent: usize,
    },
}

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

/// Merge keys are quoted as well, or they would merge when they are read.
fn reads_as_another_type(text: &str) -> bool {
    text == "<<" || resolve::plain(text, true) != Resolved::Text || resolve::is_base_60(text)
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

pub(super) fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}
