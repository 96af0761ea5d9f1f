//! Tests of `gotext::time`.

use rowplane_values::gotext::{Fraction, time_complaint};

#[test]
fn go_complains_in_these_words() {
    let element = |text: &str, rest: &str, element: &str| {
        Some(format!(
            r#"parsing time {text} as "2006-01-02T15:04:05Z07:00": cannot parse {rest} as "{element}""#
        ))
    };
    let cases = [
        ("2020-01-01T00:00:00Z", None),
        ("2020-01-01T0:00:00.5+01:00", None),
        ("", element(r#""""#, r#""""#, "2006")),
        ("é\"", element(r#""\xc3\xa9\"""#, r#""\xc3\xa9\"""#, "2006")),
        ("2020-01-01", element(r#""2020-01-01""#, r#""""#, "T")),
        ("2020-1-01", element(r#""2020-1-01""#, r#""1-01""#, "01")),
        ("2020-01-01T00:00:00", element(r#""2020-01-01T00:00:00""#, r#""""#, "Z07:00")),
        ("2020-01-01T00:00:00.x", element(r#""2020-01-01T00:00:00.x""#, r#"".x""#, "Z07:00")),
        ("2020-13-01T00:00:00Z", Some(r#"parsing time "2020-13-01T00:00:00Z": month out of range"#.into())),
        ("2021-02-29T00:00:00Z", Some(r#"parsing time "2021-02-29T00:00:00Z": day out of range"#.into())),
        ("2020-01-01T00:00:00Z!", Some(r#"parsing time "2020-01-01T00:00:00Z!": extra text: "!""#.into())),
    ];
    for (text, want) in cases {
        assert_eq!(time_complaint(text, Fraction::Any), want, "{text}");
    }
}

#[test]
fn fractions_of_six_digits() {
    assert_eq!(time_complaint("2020-01-01T00:00:00.123456Z", Fraction::Micros), None);
    let found = time_complaint("2020-01-01T00:00:00Z", Fraction::Micros).expect("a complaint");
    assert!(
        found.ends_with(r#"as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000""#),
        "{found}"
    );
}
