//! Tests of `http::door::cors`.

use rowplane::http::door::cors::Cors;

#[test]
fn auth_117_expressions_have_to_say_where_the_host_begins_and_ends() {
    let why = |expression: &str| Cors::new([expression]).map(drop);
    assert_eq!(why("//example\\.com(:|$)"), Ok(()));
    assert_eq!(why("^https://a\\.example\\.com$"), Ok(()));
    for (expression, begin) in [
        ("", "empty value in --cors-allowed-origins, help: List of allowed"),
        (
            "example.com",
            "--cors-allowed-origins has an invalid regular expression: regular expression does not pin",
        ),
        (
            "//example.com",
            "--cors-allowed-origins has an invalid regular expression: regular expression does not",
        ),
        (
            "//(:$",
            "--cors-allowed-origins has an invalid regular expression: error parsing regexp: missing closing )",
        ),
    ] {
        let error = why(expression).expect_err(expression);
        assert!(error.starts_with(begin), "{error}");
    }
}
