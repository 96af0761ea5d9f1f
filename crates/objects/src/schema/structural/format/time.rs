//! Dates and durations.

use jiff::civil::Date;

use crate::gotext;

/// `2006-01-02`.
pub fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return false;
    }
    let number = |at: std::ops::Range<usize>| {
        let digits = &bytes[at];
        digits
            .iter()
            .all(u8::is_ascii_digit)
            .then(|| digits.iter().fold(0_i16, |n, b| n * 10 + i16::from(b - b'0')))
    };
    let (Some(year), Some(month), Some(day)) = (number(0..4), number(5..7), number(8..10)) else {
        return false;
    };
    let (Ok(month), Ok(day)) = (i8::try_from(month), i8::try_from(day)) else { return false };
    Date::new(year, month, day).is_ok()
}

/// A date, a `T`, a time and a zone. Upstream does not look behind a second `T`, compares the parts as texts, and takes any
/// character for the point.
pub fn is_date_time(text: &str) -> bool {
    if text.len() < 4 {
        return false;
    }
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(date) && is_time(time)
}

fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let two = |at: usize, max: &[u8]| {
        bytes.get(at..at + 2).is_some_and(|two| two.iter().all(u8::is_ascii_digit) && two <= max)
    };
    if !(two(0, b"23") && two(3, b"59") && two(6, b"59") && bytes[2] == b':' && bytes[5] == b':') {
        return false;
    }
    let rest = &text[8..];
    is_zone(rest) || {
        let mut chars = rest.chars();
        let point = chars.next();
        let digits = chars.as_str().bytes().take_while(u8::is_ascii_digit).count();
        // The expression is greedy, but gives digits back; a zone begins with none.
        point.is_some_and(|point| point != '\n') && digits > 0 && is_zone(&chars.as_str()[digits..])
    }
}

fn is_zone(text: &str) -> bool {
    let bytes = text.as_bytes();
    text == "z"
        || bytes.len() == 6
            && matches!(bytes[0], b'+' | b'-')
            && bytes[3] == b':'
            && [1, 2, 4, 5].iter().all(|at| bytes[*at].is_ascii_digit())
}

/// Names of units, of which the last one may go on: `seconds`.
const UNITS: [&[&str]; 8] = [
    &["ns", "nano"],
    &["us", "µs", "micro"],
    &["ms", "milli"],
    &["s", "sec"],
    &["m", "min"],
    &["h", "hr", "hour"],
    &["d", "day"],
    &["w", "wk", "week"],
];

/// Go's, or numbers with units anywhere in the text.
pub fn is_duration(text: &str) -> bool {
    gotext::parse_duration(text).is_ok() || has_units(text) == Some(true)
}

/// Whether there is a known unit; none if a number is too large.
fn has_units(text: &str) -> Option<bool> {
    let is_space = |c: char| matches!(c, '\t' | '\n' | '\x0c' | '\r' | ' ');
    let mut known = false;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        rest = &rest[start..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number = &rest[..digits];
        rest = &rest[digits..];
        let behind = rest.trim_start_matches(is_space);
        let end = behind.find(|c: char| !(c.is_ascii_alphabetic() || c == 'µ')).unwrap_or(behind.len());
        if end == 0 {
            continue;
        }
        number.parse::<i64>().ok()?;
        known |= is_unit(&behind[..end].to_lowercase());
        rest = &behind[end..];
    }
    Some(known)
}

fn is_unit(unit: &str) -> bool {
    UNITS.iter().any(|names| {
        let last = names.last().copied().unwrap_or_default();
        // Folding case, Go takes the letter mu for the micro sign.
        names.iter().any(|name| *name == unit || *name == "µs" && unit == "μs") || unit.starts_with(last)
    })
}
