//! Escapes, names of groups, and counts.

use super::{REPEAT_MAX, before};
use crate::regexp::class::Group;
use crate::regexp::{Code, Error};

type Counts = Option<(u32, Option<u32>)>;

/// `{2}`, `{2,}`, `{2,3}`, and what follows; no counts if they are too large.
pub(super) fn counts(text: &str) -> Option<(Counts, &str)> {
    let (min, rest) = number(text.strip_prefix('{')?)?;
    let (max, rest) = match rest.strip_prefix(',') {
        None => (Some(min), rest),
        Some(rest) if rest.starts_with('}') => (None, rest),
        Some(rest) => {
            let (max, rest) = number(rest)?;
            (Some(max), rest)
        }
    };
    let rest = rest.strip_prefix('}')?;
    let fits = min <= REPEAT_MAX && max.is_none_or(|max| max <= REPEAT_MAX && min <= max);
    Some((fits.then_some((min, max)), rest))
}

pub(super) fn number(text: &str) -> Option<(u32, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 || digits > 1 && text.starts_with('0') {
        return None;
    }
    Some((text[..digits].parse().unwrap_or(u32::MAX), &text[digits..]))
}

/// A Unicode class or one of Perl's, and what follows.
pub(super) fn escaped_group(text: &str) -> Result<Option<(Group, &str)>, Error> {
    let Some(escape) = text.strip_prefix('\\') else { return Ok(None) };
    let mut chars = escape.chars();
    let Some(kind) = chars.next() else { return Ok(None) };
    if !matches!(kind, 'p' | 'P') {
        return Ok(Group::perl(kind).map(|group| (group, chars.as_str())));
    }
    let Some(first) = chars.next() else {
        return Err(Error::new(Code::InvalidCharRange, text));
    };
    let mut rest = chars.as_str();
    let mut name = before(&escape[1..], rest);
    if first == '{' {
        let Some(end) = text.find('}') else { return Err(Error::new(Code::InvalidCharRange, text)) };
        (name, rest) = (&text[3..end], &text[end + 1..]);
    }
    match Group::unicode(name, kind == 'P') {
        Some(group) => Ok(Some((group, rest))),
        None => Err(Error::new(Code::InvalidCharRange, before(text, rest))),
    }
}

/// `[:name:]`, and what follows.
pub(super) fn named_group(text: &str) -> Result<Option<(Group, &str)>, Error> {
    let Some(inner) = text.strip_prefix("[:") else { return Ok(None) };
    let Some((name, rest)) = inner.split_once(":]") else { return Ok(None) };
    match Group::named(name) {
        Some(group) => Ok(Some((group, rest))),
        None => Err(Error::new(Code::InvalidCharRange, before(text, rest))),
    }
}

pub(super) fn class_char<'t>(text: &'t str, whole: &str) -> Result<(u32, &'t str), Error> {
    let mut chars = text.chars();
    match chars.next() {
        None => Err(Error::new(Code::MissingBracket, whole)),
        Some('\\') => escaped(text),
        Some(c) => Ok((c.into(), chars.as_str())),
    }
}

/// The code point of `\…`, and what follows.
pub(super) fn escaped(text: &str) -> Result<(u32, &str), Error> {
    let mut chars = text[1..].chars();
    let Some(c) = chars.next() else { return Err(Error::new(Code::TrailingBackslash, "")) };
    let rest = chars.as_str();
    let is_octal = |text: &str| text.starts_with(|c: char| matches!(c, '0'..='7'));
    let code = match c {
        '0' => return Ok(octal(c, rest)),
        '1'..='7' if is_octal(rest) => return Ok(octal(c, rest)),
        'x' => return hexadecimal(text, rest),
        'a' => '\x07',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\x0b',
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => c,
        _ => return Err(Error::new(Code::InvalidEscape, before(text, rest))),
    };
    Ok((code.into(), rest))
}

fn octal(first: char, rest: &str) -> (u32, &str) {
    let more = rest.bytes().take(2).take_while(|digit| matches!(digit, b'0'..=b'7')).count();
    let digits =
        rest[..more].chars().fold(first.to_digit(8), |code, digit| Some(code? * 8 + digit.to_digit(8)?));
    (digits.unwrap_or_default(), &rest[more..])
}

/// `\x7F` or `\x{10FFFF}`; `rest` is what follows the x.
fn hexadecimal<'t>(text: &'t str, rest: &'t str) -> Result<(u32, &'t str), Error> {
    let mut chars = rest.chars();
    let wrong =
        |chars: &std::str::Chars<'t>| Err(Error::new(Code::InvalidEscape, before(text, chars.as_str())));
    match chars.next() {
        None => wrong(&chars),
        Some('{') => {
            let (mut code, mut digits) = (0_u32, 0);
            loop {
                match chars.next() {
                    Some('}') if digits > 0 => return Ok((code, chars.as_str())),
                    Some(c) => match c.to_digit(16) {
                        Some(digit) if code * 16 + digit <= u32::from(char::MAX) => {
                            (code, digits) = (code * 16 + digit, digits + 1);
                        }
                        _ => return wrong(&chars),
                    },
                    None => return wrong(&chars),
                }
            }
        }
        Some(high) => {
            // Go asks for a second digit before it looks at the first one.
            let low = chars.next();
            match (high.to_digit(16), low.and_then(|low| low.to_digit(16))) {
                (Some(high), Some(low)) => Ok((high * 16 + low, chars.as_str())),
                _ => wrong(&chars),
            }
        }
    }
}
