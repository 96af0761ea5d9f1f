//! Go's spelling and parsing of values: those parts of its standard library whose texts became Kubernetes' wire
//! contract.

use std::borrow::Cow;
use std::time::Duration;

use base64::engine::general_purpose::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine, alphabet};
use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use jiff::tz::Offset;

pub mod csv;
mod time;

pub use time::{
    Fraction, is_yaml_timestamp, parse_time, time_complaint, time_of_unix_micros, timestamp, unix_micros,
};

/// Go's `%q`: a double-quoted literal in which only printable characters stand for themselves.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            c if is_printable(c) => out.push(c),
            c if u32::from(c) < 0x80 => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if u32::from(c) < 0x1_0000 => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    out.push('"');
    out
}

/// Bytes as text: each byte that is not UTF-8 becomes U+FFFD.
pub fn utf8(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(bytes.len() + 8);
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Cow::Owned(out)
}

/// `encoding/json`'s text of a value: compact, with `<`, `>`, `&` and the line separators escaped.
pub fn json(value: &crate::tree::Value) -> String {
    let mut text = Vec::new();
    crate::json::text::write_json(&mut text, value);
    utf8(&text).into_owned()
}

/// Like [`json`], for a string.
pub fn json_string(text: &str) -> String {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    match text.bytes().all(is_plain) {
        true => escaped(["\"", text, "\""].concat()),
        false => escaped(crate::tree::Value::from(text).to_string()),
    }
}

fn escaped(json: String) -> String {
    const ESCAPED: [char; 5] = ['<', '>', '&', '\u{2028}', '\u{2029}'];
    if !json.contains(ESCAPED) {
        return json;
    }
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            c if ESCAPED.contains(&c) => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

/// The text that `fmt` prints for `%v` of a decoded value: `map[a:1 b:[x y]]`, keys sorted.
pub fn display(value: &crate::tree::Value) -> String {
    use crate::tree::Value;
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(display).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(object) => display_map(object),
        Value::Number(number) if number.is_f64() => display_float(number.as_f64().unwrap_or_default()),
        other => other.to_string(),
    }
}

/// The text that `fmt` prints for `%v` of a floating-point number.
pub fn display_float(value: f64) -> String {
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ => value.to_string(),
    }
}

/// The text that `fmt` prints for `%s` of a decoded value.
pub fn display_as_text(value: &crate::tree::Value) -> String {
    use crate::tree::Value;
    match value {
        Value::Null => "%!s(<nil>)".to_owned(),
        Value::Bool(flag) => format!("%!s(bool={flag})"),
        Value::Number(number) if number.as_i64().is_some() => format!("%!s(int64={number})"),
        Value::Number(number) => {
            format!("%!s(float64={})", display_float(number.as_f64().unwrap_or_default()))
        }
        other => display(other),
    }
}

/// Like [`display`], for an object.
pub fn display_map(object: &crate::tree::Map) -> String {
    let mut members: Vec<_> = object.iter().collect();
    members.sort_by_key(|(key, _)| *key);
    let members: Vec<String> =
        members.into_iter().map(|(key, value)| format!("{key}:{}", display(value))).collect();
    format!("map[{}]", members.join(" "))
}

/// Go's name of the type of a decoded value.
pub fn go_type(value: &crate::tree::Value) -> &'static str {
    use crate::tree::Value;
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// The name of a value's type in errors of `encoding/json`.
pub fn json_kind(value: &crate::tree::Value) -> &'static str {
    use crate::tree::Value;
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A `metav1.Time`: UTC, whole seconds.
pub fn time(at: Timestamp) -> String {
    const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(0));
    PRINTER.timestamp_to_string(&at)
}

/// A `metav1.MicroTime`: UTC, with six digits behind the point.
pub fn micro_time(at: Timestamp) -> String {
    const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(6));
    PRINTER.timestamp_to_string(&at)
}

/// Appends a [`micro_time`]. It is made digit by digit, since each event of an audit log has two of them.
pub fn push_micro_time(out: &mut Vec<u8>, at: Timestamp) {
    let time = Offset::UTC.to_datetime(at);
    if !(0..=9999).contains(&time.year()) {
        out.extend_from_slice(micro_time(at).as_bytes());
        return;
    }
    let mut text = *b"0000-00-00T00:00:00.000000Z";
    put_digits(&mut text[..4], i32::from(time.year()));
    for (start, value) in
        [(5, time.month()), (8, time.day()), (11, time.hour()), (14, time.minute()), (17, time.second())]
    {
        put_digits(&mut text[start..start + 2], i32::from(value));
    }
    put_digits(&mut text[20..26], time.subsec_nanosecond() / 1000);
    out.extend_from_slice(&text);
}

/// Writes a number that is not negative, with zeros in front; digits for which there is no room are left out.
pub fn put_digits(text: &mut [u8], mut number: i32) {
    for digit in text.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// A `time.Duration` as Go prints it: `1h2m3.5s`, `1.5ms`, `0s`.
pub fn duration(duration: Duration) -> String {
    let nanoseconds = duration.as_nanos();
    let (unit, name) = match nanoseconds {
        0 => return "0s".to_owned(),
        1..1_000 => (1, "ns"),
        1_000..1_000_000 => (1_000, "µs"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let (whole, fraction) = (nanoseconds / unit, nanoseconds % unit);
    let width = match unit {
        1 => 0,
        unit => unit.ilog10() as usize,
    };
    let fraction = if fraction == 0 { String::new() } else { format!(".{fraction:0width$}") };
    let fraction = fraction.trim_end_matches('0');
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        _ if name != "s" => format!("{whole}{fraction}{name}"),
        (0, 0, seconds) => format!("{seconds}{fraction}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds}{fraction}s"),
        (hours, minutes, seconds) => format!("{hours}h{minutes}m{seconds}{fraction}s"),
    }
}

/// The current time in the form of `creationTimestamp`.
#[expect(clippy::disallowed_methods, reason = "callers of this function are held instead")]
pub fn now() -> String {
    time(Timestamp::now())
}

/// Decodes base64 as `encoding/base64` does: line ends are ignored, and so are unused bits of the last letter. The
/// error is Go's text.
pub fn decode_base64(text: &str) -> Result<Vec<u8>, String> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
    );
    let bytes: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect();
    LENIENT
        .decode(&bytes)
        .map_err(|_| format!("illegal base64 data at input byte {}", corrupt_at(text.as_bytes())))
}

/// The byte at which Go's decoder finds base64 to be wrong.
fn corrupt_at(text: &[u8]) -> usize {
    let mut bytes = text.iter().enumerate().filter(|(_, byte)| !matches!(byte, b'\n' | b'\r'));
    loop {
        for place in 0..4 {
            match bytes.next() {
                None => return text.len() - place,
                Some((_, byte)) if byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/') => {}
                Some((at, b'=')) if place >= 2 => {
                    let second = if place == 2 { bytes.next() } else { Some((at, &b'=')) };
                    return match second {
                        None => text.len(),
                        Some((_, b'=')) => bytes.next().map_or(text.len(), |(garbage, _)| garbage),
                        Some((other, _)) => other - 1,
                    };
                }
                Some((at, _)) => return at,
            }
        }
    }
}

/// Base64 as `encoding/json` prints bytes.
pub fn encode_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// `unicode.IsPrint`: letters, marks, numbers, punctuation, symbols and the ASCII blank.
pub fn is_printable(c: char) -> bool {
    // Rust escapes a leading combining mark, which Go prints; behind a letter both print it.
    matches!(c, '"' | '\'' | '\\') || ['a', c].iter().collect::<String>().escape_debug().nth(1) == Some(c)
}

/// `strconv.ParseInt(text, 10, 64)`; the error is Go's whole text.
pub fn parse_int(text: &str) -> Result<i64, String> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    text.parse().map_err(|_| number_error("ParseInt", text, digits))
}

/// `strconv.ParseUint(text, 10, 64)`; the error is Go's whole text.
pub fn parse_uint(text: &str) -> Result<u64, String> {
    // Rust accepts a leading plus; Go's unsigned parser does not.
    if text.starts_with('+') { None } else { text.parse().ok() }
        .ok_or_else(|| number_error("ParseUint", text, text))
}

fn number_error(function: &str, text: &str, digits: &str) -> String {
    let numeric = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let why = if numeric { "value out of range" } else { "invalid syntax" };
    format!("strconv.{function}: parsing {}: {why}", quote(text))
}

/// `strconv.ParseBool`, errors as `None`.
pub fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// `time.ParseDuration`, except that negative durations become zero. The error is Go's whole text.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let invalid = || format!("time: invalid duration {}", quote(text));
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut nanos: u64 = 0;
    while !rest.is_empty() {
        let (amount, after) = split_at(rest, |c| !c.is_ascii_digit() && c != '.');
        let (unit, after) = split_at(after, |c| c.is_ascii_digit() || c == '.');
        let value = decimal(amount).ok_or_else(invalid)?;
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {}", quote(text)));
        }
        let scale = unit_nanos(unit)
            .ok_or_else(|| format!("time: unknown unit {} in duration {}", quote(unit), quote(text)))?;
        nanos = value
            .nanos(scale)
            .and_then(|part| nanos.checked_add(part))
            .filter(|sum| i64::try_from(*sum).is_ok())
            .ok_or_else(invalid)?;
        rest = after;
    }
    Ok(if negative { Duration::ZERO } else { Duration::from_nanos(nanos) })
}

fn split_at(text: &str, end: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(end).unwrap_or(text.len()))
}

struct Decimal<'a> {
    whole: u64,
    fraction: &'a str,
}

fn decimal(text: &str) -> Option<Decimal<'_>> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    Some(Decimal { whole, fraction })
}

impl Decimal<'_> {
    fn nanos(&self, scale: u64) -> Option<u64> {
        let mut total = self.whole.checked_mul(scale)?;
        // More than 18 digits are finer than a nanosecond in any unit; 18 digits cannot overflow.
        let digits = self.fraction.get(..18).unwrap_or(self.fraction);
        if let Ok(fraction) = digits.parse::<u128>() {
            let part = fraction * u128::from(scale) / 10u128.pow(digits.len() as u32);
            total = total.checked_add(u64::try_from(part).ok()?)?;
        }
        Some(total)
    }
}

fn unit_nanos(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}
