//! The times that a door takes: a moment with its zone, or a revision.

use std::fmt;

use axum::http::HeaderName;
use jiff::Timestamp;

use crate::revision::Revision;

/// The header of a request that names a time, and of every answer from the past.
pub const AS_OF: HeaderName = HeaderName::from_static("rowplane-as-of");

/// A past time as a client names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Time(Timestamp),
    Revision(Revision),
}

/// Text that names no past time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no time to look back to: it has to be RFC 3339 with a zone and at most three digits of fraction \
     (2026-11-22T10:00:00.250Z), the same in UTC without punctuation (20261122T100000Z), or a revision (rv-123456)"
)]
pub struct NoTime(String);

impl When {
    /// Reads a time. Relative times are refused: each request would see another state.
    pub fn parse(text: &str) -> Result<Self, NoTime> {
        let parsed = match text.strip_prefix("rv-") {
            Some(number) => revision(number).map(Self::Revision),
            None => time(text).map(Self::Time),
        };
        parsed.ok_or_else(|| NoTime(text.chars().take(100).collect()))
    }

    /// The form that is valid in the build metadata of a version: `20261122T100000Z`, `rv-123456`.
    pub fn compact(&self) -> String {
        match self {
            Self::Time(time) => match time.subsec_millisecond() {
                0 => time.strftime("%Y%m%dT%H%M%SZ").to_string(),
                _ => time.strftime("%Y%m%dT%H%M%S%.3fZ").to_string(),
            },
            Self::Revision(revision) => format!("rv-{revision}"),
        }
    }
}

/// The time in UTC as RFC 3339, or `revision 123456`.
impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) => time.fmt(f),
            Self::Revision(revision) => write!(f, "revision {revision}"),
        }
    }
}

/// Digits without a leading zero.
fn revision(text: &str) -> Option<Revision> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| is_plain).map(Revision)
}

fn time(text: &str) -> Option<Timestamp> {
    if has_shape(text, "dddddddd?dddddd?", "TZ") {
        let part = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default();
        let (date, clock) = (part(0..8), part(9..15));
        let (year, month, day) = (&date[..4], &date[4..6], &date[6..]);
        let (hour, minute, second) = (&clock[..2], &clock[2..4], &clock[4..]);
        return format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z").parse().ok();
    }
    let (local, zone) = text.split_at_checked(19)?;
    if !has_shape(local, "dddd?dd?dd?dd?dd?dd", "--T::") {
        return None;
    }
    let zone = match zone.strip_prefix('.') {
        Some(rest) => {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            rest.get(digits..).filter(|_| (1..=3).contains(&digits))?
        }
        None => zone,
    };
    let has_zone = zone == "Z" || has_shape(zone, "?dd?dd", "+:") || has_shape(zone, "?dd?dd", "-:");
    text.parse().ok().filter(|_| has_zone)
}

/// Whether the text has a digit at each `d` of the shape, and the marks in their order at each `?`.
fn has_shape(text: &str, shape: &str, marks: &str) -> bool {
    let mut marks = marks.bytes();
    let fits = |(byte, wanted): (u8, u8)| match wanted {
        b'd' => byte.is_ascii_digit(),
        _ => marks.next() == Some(byte),
    };
    text.len() == shape.len() && text.bytes().zip(shape.bytes()).all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_one_time() {
        let time = When::parse("2026-11-22T10:00:00Z").expect("a time");
        for text in ["20261122T100000Z", "2026-11-22T12:00:00+02:00", "2026-11-22T05:30:00.000-04:30"] {
            assert_eq!(When::parse(text), Ok(time), "{text}");
        }
        assert_eq!(time.to_string(), "2026-11-22T10:00:00Z");
        assert_eq!(time.compact(), "20261122T100000Z");
        let parts = When::parse("2026-11-22T10:00:00.25Z").expect("a time");
        assert_eq!(parts.compact(), "20261122T100000.250Z");
        assert_eq!(When::parse("rv-17"), Ok(When::Revision(Revision(17))));
    }

    #[test]
    fn what_is_no_time() {
        for text in [
            "",
            "-15m",
            "10:00",
            "now",
            "17",
            "rv-",
            "rv-017",
            "rv-+1",
            "rv-99999999999999999999",
            "yesterday",
            "2026-11-22",
            "2026-11-22T10:00:00",
            "2026-11-22T10:00:00.1234567890Z",
            "2026-11-22T10:00:00.Z",
            "2026-11-22t10:00:00Z",
            "2026-11-22 10:00:00Z",
            "2026-13-22T10:00:00Z",
            "2026-11-22T10:00:00+2",
            "20261322T100000Z",
            "20261122T100000",
            "2026-11-22T10:00:00Z[UTC]",
            "2026-11-22T10:00:00ZZ",
            "ä",
        ] {
            assert!(When::parse(text).is_err(), "{text}");
        }
    }
}
