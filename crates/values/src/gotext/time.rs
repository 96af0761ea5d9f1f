//! Times of RFC 3339 as Go's `time.Parse` reads them, with its errors.

use jiff::civil::{Date, DateTime};
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};

/// The layouts of times in whole seconds, and with six digits of fraction.
const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";
const MICRO_LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";

/// How many digits of fraction a time must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fraction {
    Any,
    Micros,
}

/// 1970-01-01T00:00:00Z.
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// The time in UTC that a text means. The error is Go's whole text; so is that for a time whose year in UTC would have another
/// number of digits than four, which Go refuses when it prints one (`Time.MarshalJSON`).
pub fn parse_time(text: &str, fraction: Fraction) -> Result<DateTime, String> {
    let (local, offset) =
        Scanner { rest: text }.whole(fraction).map_err(|wrong| wrong.told(text, fraction))?;
    let time =
        if offset == 0 { Some(local) } else { local.checked_sub(SignedDuration::from_secs(offset)).ok() };
    time.filter(|time| time.year() >= 0)
        .ok_or_else(|| "Time.MarshalJSON: year outside of range [0,9999]".to_owned())
}

/// Why a text is not a time; `None` if Go accepts it.
pub fn time_complaint(text: &str, fraction: Fraction) -> Option<String> {
    Scanner { rest: text }.whole(fraction).err().map(|wrong| wrong.told(text, fraction))
}

/// The microseconds since 1970 of a time in UTC.
pub fn unix_micros(time: DateTime) -> i64 {
    // Years of four digits are 315,537,897,600,000,000 microseconds.
    i64::try_from(time.duration_since(EPOCH).as_nanos().div_euclid(1000)).unwrap_or(i64::MAX)
}

/// The time in UTC at these microseconds since 1970; `None` outside of the years 0 to 9999.
pub fn time_of_unix_micros(micros: i64) -> Option<DateTime> {
    let time = EPOCH.checked_add(SignedDuration::from_micros(micros)).ok()?;
    (time.year() >= 0).then_some(time)
}

/// A time in UTC as a timestamp, which cannot be in the last hours of 9999: these become the greatest one.
pub fn timestamp(time: DateTime) -> Timestamp {
    Offset::UTC.to_timestamp(time).unwrap_or(Timestamp::MAX)
}

impl Wrong<'_> {
    fn told(self, text: &str, fraction: Fraction) -> String {
        let quoted = quote(text);
        match self {
            Self::Element { rest, element } => {
                let layout = quote(if fraction == Fraction::Micros { MICRO_LAYOUT } else { LAYOUT });
                let (rest, element) = (quote(rest), quote(element));
                format!("parsing time {quoted} as {layout}: cannot parse {rest} as {element}")
            }
            Self::Range(what) => format!("parsing time {quoted}: {what} out of range"),
            Self::Extra(rest) => format!("parsing time {quoted}: extra text: {}", quote(rest)),
        }
    }
}

/// Whether go-yaml takes a text for a time: a date, or a date and a time in one of three layouts, whose numbers may have a
/// single digit.
pub fn is_yaml_timestamp(text: &str) -> bool {
    Scanner { rest: text }.yaml().is_ok()
}

enum Wrong<'t> {
    /// The rest of the text, and the element of the layout that it does not start with.
    Element {
        rest: &'t str,
        element: &'static str,
    },
    Range(&'static str),
    Extra(&'t str),
}

struct Scanner<'t> {
    rest: &'t str,
}

impl<'t> Scanner<'t> {
    /// The time as it is written, and its offset in seconds.
    fn whole(&mut self, fraction: Fraction) -> Result<(DateTime, i64), Wrong<'t>> {
        let year = self.digits(4, "2006")?;
        self.literal("-")?;
        let month = self.digits(2, "01")?;
        in_range(month, 1, 12, "month")?;
        self.literal("-")?;
        let day = self.digits(2, "02")?;
        self.literal("T")?;
        let hour = self.hour()?;
        self.literal(":")?;
        let minute = in_range(self.digits(2, "04")?, 0, 59, "minute")?;
        self.literal(":")?;
        let second = in_range(self.digits(2, "05")?, 0, 59, "second")?;
        let nanos = self.fraction(fraction)?;
        let offset = self.offset()?;
        if !self.rest.is_empty() {
            return Err(Wrong::Extra(self.rest));
        }
        in_range(day, 1, days(year, month), "day")?;
        let date = Date::new(year as i16, month as i8, day as i8);
        let time = date.map(|date| date.at(hour as i8, minute as i8, second as i8, nanos));
        Ok((time.map_err(|_| Wrong::Range("day"))?, offset))
    }

    fn yaml(&mut self) -> Result<(), Wrong<'t>> {
        let year = self.digits(4, "2006")?;
        self.literal("-")?;
        let month = self.short("1")?;
        in_range(month, 1, 12, "month")?;
        self.literal("-")?;
        let day = self.short("2")?;
        in_range(day, 1, days(year, month), "day")?;
        if self.rest.is_empty() {
            return Ok(());
        }
        let has_zone = !self.rest.starts_with(' ');
        self.rest = self.rest.strip_prefix(['T', 't', ' ']).ok_or(Wrong::Extra(self.rest))?;
        self.hour()?;
        self.literal(":")?;
        in_range(self.short("4")?, 0, 59, "minute")?;
        self.literal(":")?;
        in_range(self.short("5")?, 0, 59, "second")?;
        self.fraction(Fraction::Any)?;
        if has_zone {
            self.offset()?;
        }
        if self.rest.is_empty() { Ok(()) } else { Err(Wrong::Extra(self.rest)) }
    }

    fn refuse<T>(&self, element: &'static str) -> Result<T, Wrong<'t>> {
        Err(Wrong::Element { rest: self.rest, element })
    }

    fn literal(&mut self, literal: &'static str) -> Result<(), Wrong<'t>> {
        match self.rest.strip_prefix(literal) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => self.refuse(literal),
        }
    }

    fn leading_digits(&self) -> usize {
        self.rest.bytes().take_while(u8::is_ascii_digit).count()
    }

    fn digits(&mut self, count: usize, element: &'static str) -> Result<u32, Wrong<'t>> {
        if self.leading_digits() < count {
            return self.refuse(element);
        }
        let (number, rest) = self.rest.split_at(count);
        self.rest = rest;
        Ok(number.parse().unwrap_or_default())
    }

    /// A number of one or two digits.
    fn short(&mut self, element: &'static str) -> Result<u32, Wrong<'t>> {
        self.digits(self.leading_digits().clamp(1, 2), element)
    }

    /// The hour is the only element of RFC 3339 that may have a single digit.
    fn hour(&mut self) -> Result<u32, Wrong<'t>> {
        in_range(self.short("15")?, 0, 23, "hour")
    }

    /// The fraction of a second, in nanoseconds; further digits are passed over.
    fn fraction(&mut self, fraction: Fraction) -> Result<i32, Wrong<'t>> {
        let after = self.rest.strip_prefix(['.', ',']);
        if fraction == Fraction::Micros {
            let micros = after.and_then(|after| after.get(..6)).map(|micros| (micros, micros.parse::<i32>()));
            let Some((text, Ok(micros))) = micros else { return self.refuse(".000000") };
            self.rest = &self.rest[1 + text.len()..];
            // Go takes a sign for one of the digits.
            return in_range(u32::try_from(micros).unwrap_or(u32::MAX), 0, 999_999, "fractional second")
                .map(|micros| micros as i32 * 1000);
        }
        let digits = after.map_or(0, |after| Scanner { rest: after }.leading_digits());
        if digits == 0 {
            return Ok(0);
        }
        let (text, rest) = self.rest.split_at(1 + digits);
        self.rest = rest;
        let nanos = text.bytes().skip(1).chain(std::iter::repeat(b'0')).take(9);
        Ok(nanos.fold(0, |nanos, digit| nanos * 10 + i32::from(digit - b'0')))
    }

    /// The seconds by which the zone is ahead of UTC.
    fn offset(&mut self) -> Result<i64, Wrong<'t>> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let (offset, rest) = match self.rest.as_bytes() {
            [b'+' | b'-', h, i, b':', m, n, ..] if [h, i, m, n].iter().all(|byte| byte.is_ascii_digit()) => {
                self.rest.split_at(6)
            }
            _ => return self.refuse("Z07:00"),
        };
        let number = |range: std::ops::Range<usize>| offset[range].parse().unwrap_or_default();
        let hours = in_range(number(1..3), 0, 24, "time zone offset hour")?;
        let minutes = in_range(number(4..6), 0, 60, "time zone offset minute")?;
        self.rest = rest;
        let seconds = i64::from(hours * 3600 + minutes * 60);
        Ok(if offset.starts_with('-') { -seconds } else { seconds })
    }
}

fn in_range(number: u32, least: u32, most: u32, what: &'static str) -> Result<u32, Wrong<'static>> {
    if (least..=most).contains(&number) { Ok(number) } else { Err(Wrong::Range(what)) }
}

fn days(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Quotes as package `time` does: bytes that are not ASCII are in hexadecimal.
fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=0x7f => out.push(char::from(byte)),
            byte => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}
