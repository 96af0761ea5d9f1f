//! Strict DER: one way to encode a value, and no other one is read (Go's `cryptobyte`).

use std::ops::Range;

use jiff::civil::DateTime;

pub const BOOLEAN: u8 = 1;
pub const INTEGER: u8 = 2;
pub const BIT_STRING: u8 = 3;
pub const OCTET_STRING: u8 = 4;
pub const OBJECT_IDENTIFIER: u8 = 6;
pub const UTC_TIME: u8 = 0x17;
pub const GENERALIZED_TIME: u8 = 0x18;
pub const SEQUENCE: u8 = 0x30;
pub const SET: u8 = 0x31;

/// The tag of a context-specific value that holds no others.
pub const fn context(number: u8) -> u8 {
    0x80 | number
}

/// The tag of a context-specific value that holds others.
pub const fn constructed(number: u8) -> u8 {
    0xa0 | number
}

/// Values that have not been read yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Der<'a>(pub &'a [u8]);

/// One value.
#[derive(Clone, Copy, Debug)]
pub struct Element<'a> {
    pub tag: u8,
    /// With its tag and length.
    pub raw: &'a [u8],
    pub content: &'a [u8],
}

/// Bits, and how many of the last byte do not count.
#[derive(Clone, Copy, Debug)]
pub struct BitString<'a> {
    pub unused: u8,
    pub bytes: &'a [u8],
}

impl<'a> Der<'a> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next value. Lengths have up to four bytes and none too many.
    pub fn any(&mut self) -> Option<Element<'a>> {
        let all = self.0;
        let (&tag, &first) = (all.first()?, all.get(1)?);
        if tag & 0x1f == 0x1f {
            return None;
        }
        let (head, length) = match first {
            short @ 0..0x80 => (2, usize::from(short)),
            long => {
                let count = usize::from(long & 0x7f);
                let digits = all.get(2..2 + count).filter(|_| (1..=4).contains(&count))?;
                let length = digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit));
                if length < 0x80 || digits[0] == 0 {
                    return None;
                }
                (2 + count, length)
            }
        };
        let raw = all.get(..head.checked_add(length)?)?;
        self.0 = &all[raw.len()..];
        Some(Element { tag, raw, content: &raw[head..] })
    }

    pub fn peek(&self, tag: u8) -> bool {
        self.0.first() == Some(&tag)
    }

    pub fn element(&mut self, tag: u8) -> Option<Element<'a>> {
        self.any().filter(|found| found.tag == tag)
    }

    /// The content of the next value.
    pub fn read(&mut self, tag: u8) -> Option<Der<'a>> {
        self.element(tag).map(|found| Der(found.content))
    }

    /// `Some(None)` if the next value has another tag.
    pub fn optional(&mut self, tag: u8) -> Option<Option<Der<'a>>> {
        if self.peek(tag) { self.read(tag).map(Some) } else { Some(None) }
    }

    pub fn boolean(&mut self) -> Option<bool> {
        match self.read(BOOLEAN)?.0 {
            [0] => Some(false),
            [0xff] => Some(true),
            _ => None,
        }
    }

    /// The bytes of an integer's two's complement.
    pub fn integer(&mut self) -> Option<&'a [u8]> {
        self.read(INTEGER).and_then(|found| minimal(found.0))
    }

    pub fn small_integer(&mut self) -> Option<i64> {
        number(self.integer()?)
    }

    /// An object identifier in its encoded form: parts of up to 31 bits.
    pub fn oid(&mut self) -> Option<&'a [u8]> {
        let bytes = self.read(OBJECT_IDENTIFIER)?.0;
        let (mut part, mut is_first) = (0u32, true);
        for byte in bytes {
            if (is_first && *byte == 0x80) || part >= 1 << 24 {
                return None;
            }
            part = part << 7 | u32::from(byte & 0x7f);
            is_first = byte & 0x80 == 0;
            if is_first {
                part = 0;
            }
        }
        (is_first && !bytes.is_empty()).then_some(bytes)
    }

    pub fn bit_string(&mut self) -> Option<BitString<'a>> {
        let (&unused, bytes) = self.read(BIT_STRING)?.0.split_first()?;
        let last = match bytes.last() {
            Some(last) => *last,
            None => return (unused == 0).then_some(BitString { unused, bytes }),
        };
        (unused < 8 && last & ((1u8 << unused) - 1) == 0).then_some(BitString { unused, bytes })
    }

    /// Seconds since the epoch.
    pub fn time(&mut self) -> Option<i64> {
        let found = self.any()?;
        let text = std::str::from_utf8(found.content).ok()?;
        match found.tag {
            UTC_TIME => {
                let (years, rest) = text.split_at_checked(2)?;
                let year = digits(years)?;
                let year = if year < 50 { 2000 + year } else { 1900 + year };
                moment(year, rest, Seconds::Optional)
            }
            GENERALIZED_TIME => {
                let (year, rest) = text.split_at_checked(4)?;
                moment(digits(year)?, rest, Seconds::Required)
            }
            _ => None,
        }
    }
}

impl BitString<'_> {
    /// Whether a bit is set, the first one being the highest of the first byte.
    pub fn is_set(&self, bit: usize) -> bool {
        self.bytes.get(bit / 8).is_some_and(|byte| byte & (0x80 >> (bit % 8)) != 0)
    }
}

/// Whether the seconds of a time may be left out.
#[derive(PartialEq, Eq)]
enum Seconds {
    Optional,
    Required,
}

fn minimal(bytes: &[u8]) -> Option<&[u8]> {
    match bytes {
        [] => None,
        [0, second, ..] if *second < 0x80 => None,
        [0xff, second, ..] if *second >= 0x80 => None,
        _ => Some(bytes),
    }
}

/// A two's complement of up to eight bytes.
pub fn number(bytes: &[u8]) -> Option<i64> {
    if bytes.len() > 8 {
        return None;
    }
    let sign = if bytes.first()? & 0x80 == 0 { 0 } else { -1 };
    Some(bytes.iter().fold(sign, |sum, byte| sum << 8 | i64::from(*byte)))
}

fn digits(text: &str) -> Option<i16> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// `MMDDhhmm[ss]` and a zone: `Z`, or an offset that is not zero.
fn moment(year: i16, text: &str, seconds: Seconds) -> Option<i64> {
    let length = text.find(|c: char| !c.is_ascii_digit())?;
    if length != 10 && (length != 8 || seconds == Seconds::Required) {
        return None;
    }
    let (time, zone) = text.split_at(length);
    let part =
        |at: usize| time.get(at..at + 2).map_or(Some(0), digits).and_then(|part| i8::try_from(part).ok());
    let offset = offset(zone)?;
    let civil = DateTime::new(year, part(0)?, part(2)?, part(4)?, part(6)?, part(8)?, 0).ok()?;
    Some(civil.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second() - offset)
}

fn offset(zone: &str) -> Option<i64> {
    if zone == "Z" {
        return Some(0);
    }
    let sign = if zone.starts_with('+') { 1 } else { -1 };
    let rest = zone.strip_prefix(['+', '-']).filter(|rest| rest.len() == 4 && rest.is_ascii())?;
    let (hours, minutes) = (digits(&rest[..2])?, digits(&rest[2..])?);
    let seconds = i64::from(hours) * 3600 + i64::from(minutes) * 60;
    (seconds != 0 && hours <= 24 && minutes < 60).then_some(sign * seconds)
}

/// Whether bytes begin with a value in DER.
pub fn is_der(bytes: &[u8]) -> bool {
    Der(bytes).any().is_some()
}

/// The position of a part in the bytes that it is a slice of.
pub fn range_in(all: &[u8], part: &[u8]) -> Range<usize> {
    let start = (part.as_ptr() as usize).saturating_sub(all.as_ptr() as usize);
    start..start + part.len()
}
