//! Parameters of LIST and WATCH.

use serde_json::json;

use crate::support::server::{CONFIGMAPS, Setup, names};

on_every_store! {
    list_watch_4_match_without_revision,
    list_watch_5_unknown_match,
    list_watch_6_exact_zero,
    list_watch_7_two_causes_in_table_order,
    list_watch_8_initial_events_of_a_list,
    list_watch_13_limits_that_are_none,
    list_watch_14_what_makes_a_watch,
    list_watch_15_bad_selectors,
    list_watch_17_malformed_revision,
    unknown_parameters_and_repeated_ones,
    the_unknown_field_is_named,
}

async fn list_watch_4_match_without_revision(setup: Setup) {
    let server = setup.start().await;
    server.get(format!("{CONFIGMAPS}?resourceVersionMatch=Exact")).await.invalid_options(
        "ListOptions",
        &[(
            "FieldValueForbidden",
            "resourceVersionMatch",
            "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        )],
    );
}

async fn list_watch_5_unknown_match(setup: Setup) {
    let server = setup.start().await;
    for text in ["foo", "exact"] {
        let answer = server.get(format!("{CONFIGMAPS}?resourceVersionMatch={text}&resourceVersion=1")).await;
        let message =
            format!("Unsupported value: \"{text}\": supported values: \"Exact\", \"NotOlderThan\", \"\"");
        answer
            .invalid_options("ListOptions", &[("FieldValueNotSupported", "resourceVersionMatch", &message)]);
    }
}

async fn list_watch_6_exact_zero(setup: Setup) {
    let server = setup.start().await;
    server.get(format!("{CONFIGMAPS}?resourceVersionMatch=Exact&resourceVersion=0")).await.invalid_options(
        "ListOptions",
        &[(
            "FieldValueForbidden",
            "resourceVersionMatch",
            "Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        )],
    );
}

async fn list_watch_7_two_causes_in_table_order(setup: Setup) {
    let server = setup.start().await;
    server.get(format!("{CONFIGMAPS}?resourceVersionMatch=NotOlderThan&continue=x")).await.invalid_options(
        "ListOptions",
        &[
            (
                "FieldValueForbidden",
                "resourceVersionMatch",
                "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
            ),
            (
                "FieldValueForbidden",
                "resourceVersionMatch",
                "Forbidden: resourceVersionMatch is forbidden when continue is provided",
            ),
        ],
    );
}

async fn list_watch_8_initial_events_of_a_list(setup: Setup) {
    let server = setup.start().await;
    for value in ["false", "true"] {
        server.get(format!("{CONFIGMAPS}?sendInitialEvents={value}")).await.invalid_options(
            "ListOptions",
            &[(
                "FieldValueForbidden",
                "sendInitialEvents",
                "Forbidden: sendInitialEvents is forbidden for list",
            )],
        );
    }
}

async fn list_watch_13_limits_that_are_none(setup: Setup) {
    let server = setup.start().await;
    for name in ["a", "b"] {
        server.create(name, json!({})).await;
    }
    let bad = server.get(format!("{CONFIGMAPS}?limit=abc")).await;
    bad.bad_request("strconv.ParseInt: parsing \"abc\": invalid syntax");
    let large = server.get(format!("{CONFIGMAPS}?limit=9223372036854775808")).await;
    large.bad_request("strconv.ParseInt: parsing \"9223372036854775808\": value out of range");
    let bad = server.get(format!("{CONFIGMAPS}?timeoutSeconds=1s")).await;
    bad.bad_request("strconv.ParseInt: parsing \"1s\": invalid syntax");
    for limit in ["-1", "0"] {
        let list = server.get(format!("{CONFIGMAPS}?limit={limit}")).await.ok();
        assert_eq!(names(&list), ["a", "b"]);
        assert_eq!(list["metadata"].get("continue"), None);
    }
}

async fn list_watch_14_what_makes_a_watch(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({})).await;
    for value in ["", "1", "no", "True"] {
        server.watch(format!("{CONFIGMAPS}?watch={value}")).await.expect_named("ADDED", "a").await;
    }
    for value in ["0", "FALSE", "false", "False"] {
        assert_eq!(names(&server.get(format!("{CONFIGMAPS}?watch={value}")).await.ok()), ["a"]);
    }
}

async fn list_watch_15_bad_selectors(setup: Setup) {
    let server = setup.start().await;
    let cases = [
        (
            "labelSelector=a%20b",
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
        ),
        ("labelSelector=k%20in%20(a))", "found ')', expected: ',' or 'end of string'"),
        ("fieldSelector=x", "invalid selector: 'x'; can't understand 'x'"),
        ("fieldSelector=metadata.name%3D%5Cx", "invalid field selector: invalid escape sequence: \\x"),
        ("fieldSelector=metadata.name%3Da%3Db", "invalid field selector: unescaped character in value: 61"),
    ];
    for (query, message) in cases {
        server.get(format!("{CONFIGMAPS}?{query}")).await.bad_request(message);
        server.get(format!("{CONFIGMAPS}?watch=1&{query}")).await.bad_request(message);
        server.delete(format!("{CONFIGMAPS}?{query}")).await.bad_request(message);
    }
    for (selector, start) in [
        (
            "-a",
            "unable to parse requirement: <nil>: Invalid value: \"-a\": name part must consist of alphanumeric",
        ),
        ("k%3D$", "unable to parse requirement: values[0][k]: Invalid value: \"$\": a valid label must be"),
    ] {
        let failure = server.get(format!("{CONFIGMAPS}?labelSelector={selector}")).await.failure();
        assert_eq!(failure["reason"], "BadRequest");
        assert!(failure["message"].as_str().expect("a message").starts_with(start), "{failure}");
    }
}

async fn list_watch_17_malformed_revision(setup: Setup) {
    let server = setup.start().await;
    let message = "invalid resource version: resourceVersion: Invalid value: \"abc\": \
                   strconv.ParseUint: parsing \"abc\": invalid syntax";
    server.get(format!("{CONFIGMAPS}?resourceVersion=abc")).await.bad_request(message);
    // Where the reference says 500, this server says 400, before the stream starts.
    server.get(format!("{CONFIGMAPS}?watch=1&resourceVersion=abc")).await.bad_request(message);
    server.get(format!("{CONFIGMAPS}/x?resourceVersion=abc")).await.bad_request(message);
}

async fn unknown_parameters_and_repeated_ones(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({})).await;
    server.create("b", json!({})).await;
    let list = server.get(format!("{CONFIGMAPS}?limit=1&limit=abc&nonsense=1&%20=&&=x")).await.ok();
    assert_eq!(names(&list), ["a"]);
    let list = server.get(format!("{CONFIGMAPS}?allowWatchBookmarks=x&timeoutSeconds=-7")).await.ok();
    assert_eq!(names(&list), ["a", "b"]);
    let bad = server.get(format!("{CONFIGMAPS}?timeout=abc")).await;
    bad.bad_request("invalid timeout specified in the request URL - time: invalid duration \"abc\"");
}

async fn the_unknown_field_is_named(setup: Setup) {
    let server = setup.start().await;
    let message = "\"spec.x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"";
    server.get(format!("{CONFIGMAPS}?fieldSelector=spec.x%3D1")).await.bad_request(message);
    server.get(format!("{CONFIGMAPS}?watch=1&fieldSelector=spec.x%3D1")).await.bad_request(message);
}
