//! Tests of `behavior::columns::age`.

use jiff::{SignedDuration, Timestamp};
use rowplane_objects::kinds::behavior::columns::age::{since, text};
use rowplane_objects::tree::Value;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

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
