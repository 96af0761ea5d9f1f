//! Moments and spans of time, as Go's `time` and cel-go (`common/types/{timestamp,duration}.go`) have them.

use jiff::tz::{Offset, TimeZone};
use rowplane_values::gotext::{Fraction, parse_int, quote, time_complaint};

use crate::value::Error;

/// Seconds of the years 1 to 9999, since 1970.
const FIRST: i64 = -62_135_596_800;
const LAST: i64 = 253_402_300_799;
const NANOS: i64 = 1_000_000_000;

/// A moment, and the zone it was written in.
#[derive(Clone, Copy, Debug)]
pub struct Timestamp {
    pub seconds: i64,
    pub nanos: u32,
    /// Seconds east of Greenwich.
    offset: i32,
}

/// One moment is one, in whatever zone.
impl PartialEq for Timestamp {
    fn eq(&self, other: &Self) -> bool {
        (self.seconds, self.nanos) == (other.seconds, other.nanos)
    }
}

pub fn overflow() -> Error {
    Error::new("timestamp overflow")
}

impl Timestamp {
    pub fn of_seconds(seconds: i64) -> Result<Self, Error> {
        Self::new(seconds, 0, 0)
    }

    fn new(seconds: i64, nanos: u32, offset: i32) -> Result<Self, Error> {
        if (FIRST..=LAST).contains(&seconds) { Ok(Self { seconds, nanos, offset }) } else { Err(overflow()) }
    }

    /// Reads RFC 3339 as Go does; `None` for other texts.
    pub fn parse(text: &str) -> Option<Result<Self, Error>> {
        if time_complaint(text, Fraction::Any).is_some() {
            return None;
        }
        let digits = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
        let days = days_of(digits(0, 4)?, digits(5, 7)?, digits(8, 10)?);
        let rest = &text[11..];
        let (hour, rest) = rest.split_once(':')?;
        let (minute, rest) = rest.split_once(':')?;
        let second: i64 = rest.get(..2)?.parse().ok()?;
        let (fraction, zone) = split_fraction(&rest[2..]);
        let mut nanos = 0;
        for (digit, scale) in fraction.bytes().zip((0..9).rev()) {
            nanos += u32::from(digit - b'0') * 10u32.pow(scale);
        }
        let offset = if zone == "Z" { 0 } else { offset_of(zone)? };
        let clock = hour.parse::<i64>().ok()? * 3600 + minute.parse::<i64>().ok()? * 60 + second;
        Some(Self::new(days * 86400 + clock - i64::from(offset), nanos, offset))
    }

    /// Midnight of a day.
    pub fn parse_date(text: &str) -> Option<Self> {
        let valid = text.len() == 10 && time_complaint(&format!("{text}T00:00:00Z"), Fraction::Any).is_none();
        valid.then(|| Self::parse(&format!("{text}T00:00:00Z")))??.ok()
    }

    pub fn is_zero(&self) -> bool {
        self.seconds == FIRST && self.nanos == 0
    }

    /// The moment so many nanoseconds later.
    pub fn plus(&self, span: i64) -> Result<Self, Error> {
        let nanos = i64::from(self.nanos) + span % NANOS;
        let seconds = self.seconds.checked_add(span / NANOS).ok_or_else(|| Error::new("integer overflow"))?;
        let seconds =
            seconds.checked_add(nanos.div_euclid(NANOS)).ok_or_else(|| Error::new("integer overflow"))?;
        Self::new(seconds, nanos.rem_euclid(NANOS) as u32, self.offset)
    }

    /// Nanoseconds since another moment.
    pub fn since(&self, other: &Self) -> Option<i64> {
        let seconds = self.seconds.checked_sub(other.seconds)?.checked_mul(NANOS)?;
        seconds.checked_add(i64::from(self.nanos) - i64::from(other.nanos))
    }

    /// Go's `time.RFC3339Nano`, in its zone.
    pub fn text(&self) -> String {
        let Clock { year, month, day, hour, minute, second, .. } = self.clock(self.offset);
        let mut text = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
        if self.nanos > 0 {
            let fraction = format!(".{:09}", self.nanos);
            text.push_str(fraction.trim_end_matches('0'));
        }
        if self.offset == 0 {
            text.push('Z');
        } else {
            let minutes = self.offset.unsigned_abs() / 60;
            let sign = if self.offset < 0 { '-' } else { '+' };
            text.push_str(&format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60));
        }
        text
    }

    pub fn utc_text(&self) -> String {
        Self { offset: 0, ..*self }.text()
    }

    fn clock(&self, offset: i32) -> Clock {
        let seconds = self.seconds + i64::from(offset);
        let (days, of_day) = (seconds.div_euclid(86400), seconds.rem_euclid(86400));
        let (year, month, day) = civil(days);
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        let day_of_year = days - days_of(year, 1, 1);
        let day_of_week = (days + 4).rem_euclid(7);
        Clock { year, month, day, hour, minute, second, day_of_year, day_of_week }
    }

    /// Parts of the date and the time of day, in a zone; UTC if none is named.
    pub fn part(&self, function: &str, zone: Option<&str>) -> Result<i64, Error> {
        let clock = self.clock(self.offset_in(zone.unwrap_or("UTC"))?);
        Ok(match function {
            "getFullYear" => clock.year,
            "getMonth" => clock.month - 1,
            "getDayOfYear" => clock.day_of_year,
            "getDayOfMonth" => clock.day - 1,
            "getDate" => clock.day,
            "getDayOfWeek" => clock.day_of_week,
            "getHours" => clock.hour,
            "getMinutes" => clock.minute,
            "getSeconds" => clock.second,
            _ => i64::from(self.nanos) / 1_000_000,
        })
    }

    fn offset_in(&self, zone: &str) -> Result<i32, Error> {
        let Some((hours, minutes)) = zone.split_once(':') else { return self.offset_by_name(zone) };
        let number = |text: &str| {
            let wrong = |why: String| Error::new(why.replacen("ParseInt", "Atoi", 1));
            parse_int(text).map_err(wrong)
        };
        let (hours, minutes) = (number(hours)?, number(minutes)?);
        let minutes = if zone.starts_with('-') { -minutes } else { minutes };
        let total = hours.checked_mul(60).and_then(|of| of.checked_add(minutes)).unwrap_or_default();
        // Wider offsets than Go's clocks know would not be told from the next day's.
        Ok(i32::try_from(total.clamp(-1_000_000, 1_000_000) * 60).unwrap_or_default())
    }

    fn offset_by_name(&self, zone: &str) -> Result<i32, Error> {
        if matches!(zone, "" | "UTC") {
            return Ok(0);
        }
        let unknown = || Error::new(format!("unknown time zone {zone}"));
        if zone.contains("..") || zone.starts_with(['/', '\\']) || zone.contains('\\') {
            return Err(Error::new("time: invalid location name"));
        }
        let known =
            if zone == "Local" { TimeZone::UTC } else { TimeZone::get(zone).map_err(|_| unknown())? };
        let at = jiff::Timestamp::from_second(self.seconds).map_err(|_| overflow())?;
        Ok(Offset::seconds(known.to_offset(at)))
    }
}

struct Clock {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    day_of_year: i64,
    day_of_week: i64,
}

fn split_fraction(text: &str) -> (&str, &str) {
    match text.strip_prefix(['.', ',']) {
        None => ("", text),
        Some(rest) => rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())),
    }
}

fn offset_of(zone: &str) -> Option<i32> {
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let seconds = hours.parse::<i32>().ok()? * 3600 + minutes.parse::<i32>().ok()? * 60;
    Some(if zone.starts_with('-') { -seconds } else { seconds })
}

/// Days since 1970 of a day of the proleptic Gregorian calendar.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Year, month and day.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Nanoseconds of a span that is written as Go writes it.
pub fn parse_duration(text: &str) -> Option<i64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned.starts_with(['-', '+']) {
        return None;
    }
    let span = rowplane_values::gotext::parse_duration(unsigned).ok()?;
    let nanos = i64::try_from(span.as_nanos()).ok()?;
    Some(if text.starts_with('-') { -nanos } else { nanos })
}

/// The text of a duration as cel-go prints it: in seconds.
pub fn duration_text(nanos: i64) -> String {
    format!("{}s", duration_seconds(nanos))
}

/// Go's `Seconds()`.
pub fn duration_seconds(nanos: i64) -> f64 {
    (nanos / NANOS) as f64 + (nanos % NANOS) as f64 / 1e9
}

pub fn duration_part(nanos: i64, function: &str) -> i64 {
    match function {
        "getHours" => nanos / (3600 * NANOS),
        "getMinutes" => nanos / (60 * NANOS),
        "getSeconds" => nanos / NANOS,
        _ => nanos / 1_000_000,
    }
}

/// Quoted as a literal would be.
pub fn quoted(function: &str, text: &str) -> String {
    format!("{function}({})", quote(text))
}
