//! Times as people write them: `-15m`, `yesterday 18:00`, `2026-11-22 10:00`. They are resolved once, by the server's
//! clock and the time zone of this host.

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan as _, Zoned};

/// A time in which a command is interested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    Now,
    Time(Timestamp),
    /// A revision as the door takes it, `rv-123456`.
    Revision(String),
}

/// The forms, for messages.
const FORMS: &str =
    "-15m, -1d12h, 10:00, yesterday 18:00, 2026-11-22 10:00, 2026-11-22T10:00:00Z, rv-123456 or now";

impl When {
    /// Reads a time. `now` is the server's, in the zone of this host.
    pub fn parse(text: &str, now: &Zoned) -> Result<Self, String> {
        let text = text.trim();
        let time = match text {
            "now" => return Ok(Self::Now),
            _ if text.starts_with("rv-") => return Ok(Self::Revision(text.to_owned())),
            _ => match text.strip_prefix('-') {
                Some(ago) => duration(ago).and_then(|ago| now.checked_sub(ago).ok()),
                None => moment(text, now),
            },
        };
        let time = time.ok_or_else(|| format!("{text:?} is no time: it has to be like {FORMS}"))?;
        Ok(Self::Time(time.timestamp()))
    }

    /// The segment of a door's path; `None` for the present.
    pub fn segment(&self) -> Option<String> {
        match self {
            Self::Now => None,
            Self::Time(time) if time.subsec_nanosecond() == 0 => {
                Some(time.strftime("%Y%m%dT%H%M%SZ").to_string())
            }
            Self::Time(time) => Some(time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()),
            Self::Revision(revision) => Some(revision.clone()),
        }
    }
}

/// A duration of days, hours, minutes and seconds: `1d12h`, `90m`.
pub fn duration(text: &str) -> Option<Span> {
    let (mut total, mut rest) = (0_i64, text);
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let count: i64 = rest.get(..digits)?.parse().ok()?;
        let unit = match rest.get(digits..digits + 1)? {
            "d" => 24 * 3600,
            "h" => 3600,
            "m" => 60,
            "s" => 1,
            _ => return None,
        };
        total = total.checked_add(count.checked_mul(unit)?)?;
        rest = &rest[digits + 1..];
    }
    (!text.is_empty() && total < 1 << 32).then(|| total.seconds())
}

/// A time of a day, or an absolute one; without a zone, in that of this host.
fn moment(text: &str, now: &Zoned) -> Option<Zoned> {
    let zone = now.time_zone();
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time.to_zoned(zone.clone()));
    }
    let of_day = |days: i64, clock: &str| {
        let clock = if clock.is_empty() { Time::midnight() } else { clock.parse::<Time>().ok()? };
        now.date().checked_sub(days.days()).ok()?.to_datetime(clock).to_zoned(zone.clone()).ok()
    };
    if let Some(clock) = text.strip_prefix("yesterday") {
        return of_day(1, clock.trim());
    }
    if let Some(clock) = text.strip_prefix("today") {
        return of_day(0, clock.trim());
    }
    if text.parse::<Time>().is_ok() && text.contains(':') && text.len() <= 8 {
        return of_day(0, text);
    }
    text.parse::<DateTime>().ok()?.to_zoned(zone.clone()).ok()
}

/// The time zone of this host: that of `TZ`, else that of `/etc/localtime`, else UTC.
pub fn local_zone() -> TimeZone {
    let named = std::env::var("TZ").ok().filter(|name| !name.is_empty());
    if let Some(zone) = named.and_then(|name| TimeZone::get(name.trim_start_matches(':')).ok()) {
        return zone;
    }
    let file = std::fs::read("/etc/localtime").ok();
    file.and_then(|data| TimeZone::tzif("local", &data).ok()).unwrap_or(TimeZone::UTC)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(text: &str) -> Option<String> {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let now = "2026-11-22T10:00:00Z".parse::<Timestamp>().expect("a time").to_zoned(zone);
        When::parse(text, &now).ok()?.segment()
    }

    #[test]
    fn times_of_people() {
        for (text, expected) in [
            ("-15m", "20261122T094500Z"),
            ("-1d12h", "20261120T220000Z"),
            ("10:00", "20261122T080000Z"),
            ("yesterday 18:00", "20261121T160000Z"),
            ("yesterday", "20261120T220000Z"),
            ("2026-11-22 11:30", "20261122T093000Z"),
            ("2026-11-22", "20261121T220000Z"),
            ("2026-11-22T09:00:00.25Z", "2026-11-22T09:00:00.250Z"),
            ("2026-11-22T09:00:00+01:00", "20261122T080000Z"),
            ("rv-17", "rv-17"),
        ] {
            assert_eq!(segment(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_time() {
        for text in ["", "-", "-15", "-x", "soon", "17", "yesterday noon", "2026-13-01"] {
            let now = Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC);
            assert!(When::parse(text, &now).is_err(), "{text}");
        }
    }
}
