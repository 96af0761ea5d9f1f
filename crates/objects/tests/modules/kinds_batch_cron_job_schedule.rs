//! Tests of `batch::cron_job::schedule`.

use rowplane_objects::kinds::batch::cron_job::schedule::{check, is_zone};

#[test]
fn schedules() {
    let good = [
        "* * * * *",
        "*/5 0-23/2 1,15 jan-DEC ?",
        "0 0 31 12 6",
        "@hourly",
        "@every 1h30m",
        "TZ=UTC 0 0 * * *",
        "  5 4 * * sun ",
    ];
    for text in good {
        assert_eq!(check(text), Ok(()), "{text}");
    }
    let bad = [
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("a * * * *", "failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("@often", "unrecognized descriptor: @often"),
        ("TZ=Nowhere * * * * *", "provided bad location Nowhere: unknown time zone Nowhere"),
    ];
    for (text, why) in bad {
        assert_eq!(check(text), Err(why.to_owned()), "{text}");
    }
}

#[test]
fn zones() {
    assert!(is_zone("Europe/Berlin") && is_zone("UTC") && is_zone("Etc/UTC"));
    assert!(!is_zone("europe/berlin") && !is_zone("Mars/Base"));
}
