//! Durations as people read them: two or three significant figures.

use jiff::{SignedDuration, Timestamp};

use crate::gotext::{self, Fraction, parse_time};
use crate::tree::Value;

const MINUTE: i64 = 60;

const HOUR: i64 = 60 * MINUTE;

const DAY: i64 = 24 * HOUR;

const YEAR: i64 = 365 * DAY;

/// The time from the timestamp in `value` to `now`; `<unknown>` where there is none.
pub fn since(value: &Value, now: Timestamp) -> String {
    timestamp(value).map_or_else(|| "<unknown>".to_owned(), |then| text(now.duration_since(then)))
}

/// An RFC 3339 timestamp; upstream's zero time counts as none.
pub fn timestamp(value: &Value) -> Option<Timestamp> {
    let text = value.as_str()?;
    if text.starts_with("0001-01-01T00:00:00") {
        return None;
    }
    parse_time(text, Fraction::Any).ok().map(gotext::timestamp)
}

/// The text of a duration, as upstream's `duration.HumanDuration` writes it.
pub fn text(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        // Clocks differ a little, so one second into the future is still now.
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => units(seconds, (MINUTE, "m"), (1, "s")),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => units(seconds, (HOUR, "h"), (MINUTE, "m")),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => units(seconds, (DAY, "d"), (HOUR, "h")),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => units(seconds, (YEAR, "y"), (DAY, "d")),
        _ => format!("{}y", seconds / YEAR),
    }
}

/// `5m30s`, or `5m` where the smaller unit is zero.
fn units(seconds: i64, (big, big_name): (i64, &str), (small, small_name): (i64, &str)) -> String {
    match seconds % big / small {
        0 => format!("{}{big_name}", seconds / big),
        rest => format!("{}{big_name}{rest}{small_name}", seconds / big),
    }
}
