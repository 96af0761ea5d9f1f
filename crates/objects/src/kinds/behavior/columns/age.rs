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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_49_texts_change_at_the_boundaries() {
        let cases = [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (599, "9m59s"),
            (600, "10m"),
            (659, "10m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + 5 * MINUTE, "3h5m"),
            (8 * HOUR - 1, "7h59m"),
            (8 * HOUR, "8h"),
            (48 * HOUR - 1, "47h"),
            (48 * HOUR, "2d"),
            (50 * HOUR, "2d2h"),
            (8 * DAY - 1, "7d23h"),
            (8 * DAY, "8d"),
            (2 * YEAR - 1, "729d"),
            (2 * YEAR, "2y"),
            (2 * YEAR + DAY, "2y1d"),
            (8 * YEAR - 1, "7y364d"),
            (8 * YEAR, "8y"),
            (9 * YEAR + 40 * DAY, "9y"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(text(SignedDuration::from_secs(seconds)), expected, "{seconds}");
        }
        assert_eq!(text(SignedDuration::from_millis(-1_900)), "0s");
        assert_eq!(text(SignedDuration::MIN), "<invalid>");
        assert_eq!(text(SignedDuration::MAX), format!("{}y", i64::MAX / YEAR));
    }

    #[test]
    fn timestamps_that_cannot_be_read_are_unknown() {
        let now = Timestamp::UNIX_EPOCH;
        for value in [Value::Null, "".into(), "soon".into(), 5.into(), "0001-01-01T00:00:00Z".into()] {
            assert_eq!(since(&value, now), "<unknown>", "{value}");
        }
        assert_eq!(since(&"1969-12-31T23:59:00.5Z".into(), now), "59s");
        assert_eq!(since(&"1970-01-01T01:00:00+01:00".into(), now), "0s");
    }
}
