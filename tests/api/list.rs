//! LIST: parameters and which state is read.

use std::future::IntoFuture as _;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::server::{CONFIGMAPS, Setup, names, rv};

on_both_databases! {
    c01_an_empty_list_has_a_revision,
    c02_list_and_object_revisions,
    c03_every_write_has_its_own_revision,
    c04_match_without_revision,
    c05_unknown_match,
    c06_exact_zero,
    c07_two_causes_in_table_order,
    c08_initial_events_of_a_list,
    c13_limits_that_are_none,
    c14_what_makes_a_watch,
    c15_bad_selectors,
    c17_malformed_revision,
    c18_future_revision,
    c19_future_revision_exactly,
    c20_not_older_than,
    c21_exact_by_limit,
    c22_exact,
    c23_exact_at_the_edge_of_history,
    c24_not_older_than_in_pages,
    c25_any_revision,
    c38_a_name_that_is_not_there,
    unknown_parameters_and_repeated_ones,
    selectors_select,
    the_unknown_field_is_named,
    list_items_are_bare,
}

async fn c01_an_empty_list_has_a_revision(setup: Setup) {
    let server = setup.start_empty().await;
    let list = server.get(CONFIGMAPS).await.ok();
    let revision = list["metadata"]["resourceVersion"].as_str().expect("a revision");
    assert!(revision.parse::<u64>().is_ok_and(|n| n > 0) && !revision.starts_with(['0', '+']), "{revision}");
    let want = json!({
        "kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": revision}, "items": []
    });
    assert_eq!(list, want);
}

async fn c02_list_and_object_revisions(setup: Setup) {
    let server = setup.start().await;
    let a = server.create("a", json!({})).await;
    server.create("b", json!({})).await;
    let list = server.get(CONFIGMAPS).await.ok();
    assert!(rv(&list) > rv(&a));
    assert_eq!(rv(&list["items"][0]), rv(&a), "not changed by the write of another");
}

async fn c03_every_write_has_its_own_revision(setup: Setup) {
    let server = setup.start().await;
    let mut revisions = Vec::new();
    for name in ["c", "a", "b"] {
        revisions.push(rv(&server.create(name, json!({})).await));
    }
    assert!(revisions.is_sorted_by(|a, b| a < b), "{revisions:?}");
}

async fn c04_match_without_revision(setup: Setup) {
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

async fn c05_unknown_match(setup: Setup) {
    let server = setup.start().await;
    for text in ["foo", "exact"] {
        let answer = server.get(format!("{CONFIGMAPS}?resourceVersionMatch={text}&resourceVersion=1")).await;
        let message =
            format!("Unsupported value: \"{text}\": supported values: \"Exact\", \"NotOlderThan\", \"\"");
        answer
            .invalid_options("ListOptions", &[("FieldValueNotSupported", "resourceVersionMatch", &message)]);
    }
}

async fn c06_exact_zero(setup: Setup) {
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

async fn c07_two_causes_in_table_order(setup: Setup) {
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

async fn c08_initial_events_of_a_list(setup: Setup) {
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

async fn c13_limits_that_are_none(setup: Setup) {
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

async fn c14_what_makes_a_watch(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({})).await;
    for value in ["", "1", "no", "True"] {
        server.watch(format!("{CONFIGMAPS}?watch={value}")).await.expect_named("ADDED", "a").await;
    }
    for value in ["0", "FALSE", "false", "False"] {
        assert_eq!(names(&server.get(format!("{CONFIGMAPS}?watch={value}")).await.ok()), ["a"]);
    }
}

async fn c15_bad_selectors(setup: Setup) {
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

async fn c17_malformed_revision(setup: Setup) {
    let server = setup.start().await;
    let message = "invalid resource version: resourceVersion: Invalid value: \"abc\": \
                   strconv.ParseUint: parsing \"abc\": invalid syntax";
    server.get(format!("{CONFIGMAPS}?resourceVersion=abc")).await.bad_request(message);
    // Where the reference says 500, this server says 400, before the stream starts.
    server.get(format!("{CONFIGMAPS}?watch=1&resourceVersion=abc")).await.bad_request(message);
    server.get(format!("{CONFIGMAPS}/x?resourceVersion=abc")).await.bad_request(message);
}

async fn c18_future_revision(setup: Setup) {
    let server = setup.start().await;
    let requested = [server.revision().await + 1000, i64::MAX as u64, u64::MAX];
    let ask = |at: &u64| server.get(format!("{CONFIGMAPS}?resourceVersion={at}")).into_future();
    for (answer, requested) in join_all(requested.iter().map(ask)).await.iter().zip(requested) {
        future(answer, requested);
    }
}

async fn c19_future_revision_exactly(setup: Setup) {
    let server = setup.start().await;
    let requested = server.revision().await + 1000;
    let how = ["limit=1", "resourceVersionMatch=Exact", "resourceVersionMatch=NotOlderThan"];
    let ask = |how| server.get(format!("{CONFIGMAPS}?resourceVersion={requested}&{how}")).into_future();
    for answer in join_all(how.map(ask)).await {
        future(&answer, requested);
    }
}

/// The answer to a revision that has not been reached.
#[track_caller]
fn future(answer: &crate::support::client::Answer, requested: u64) {
    let failure = answer.failure();
    let message = failure["message"].as_str().expect("a message").to_owned();
    let start = format!("Timeout: Too large resource version: {requested}, current: ");
    let current: u64 = message.strip_prefix(&start).expect("the text").parse().expect("the current revision");
    assert!(current < requested);
    let details = json!({
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    });
    answer.fails(504, "Timeout", &message, details);
}

async fn c20_not_older_than(setup: Setup) {
    let server = setup.start().await;
    let old = rv(&server.create("a", json!({"n": "1"})).await);
    let new = rv(&server.set("a", json!({"n": "2"})).await);
    server.create("b", json!({})).await;
    for compacted in [false, true] {
        if compacted {
            server.compact(new).await;
        }
        for query in ["", "&resourceVersionMatch=NotOlderThan"] {
            let list = server.get(format!("{CONFIGMAPS}?resourceVersion={old}{query}")).await.ok();
            assert_eq!(names(&list), ["a", "b"]);
            assert_eq!(list["items"][0]["data"]["n"], "2");
            assert!(rv(&list) > new);
        }
    }
}

async fn c21_exact_by_limit(setup: Setup) {
    let server = setup.start().await;
    let old = rv(&server.create("a", json!({"n": "1"})).await);
    server.set("a", json!({"n": "2"})).await;
    server.create("b", json!({})).await;
    let list = server.get(format!("{CONFIGMAPS}?resourceVersion={old}&limit=1000")).await.ok();
    assert_eq!(names(&list), ["a"]);
    assert_eq!(list["items"][0]["data"]["n"], "1");
    assert_eq!(rv(&list), old);
    // One name in one namespace is not a page: it stays "not older than".
    let one = format!("{CONFIGMAPS}?resourceVersion={old}&limit=1000&fieldSelector=metadata.name%3Da");
    let list = server.get(one).await.ok();
    assert_eq!(list["items"][0]["data"]["n"], "2");
}

async fn c22_exact(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({})).await;
    let then = server.create("b", json!({})).await;
    server.remove("a").await;
    server.create("c", json!({})).await;
    for at in [rv(&then), rv(&then) + 1] {
        let list =
            server.get(format!("{CONFIGMAPS}?resourceVersion={at}&resourceVersionMatch=Exact")).await.ok();
        assert_eq!(rv(&list), at);
        let want: &[&str] = if at == rv(&then) { &["a", "b"] } else { &["b"] };
        assert_eq!(names(&list), want);
    }
}

async fn c23_exact_at_the_edge_of_history(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({"n": "1"})).await;
    let compacted = rv(&server.set("a", json!({"n": "2"})).await);
    server.set("a", json!({"n": "3"})).await;
    server.compact(compacted).await;
    let exact = |at: u64, how: &str| server.get(format!("{CONFIGMAPS}?resourceVersion={at}&{how}"));
    for how in ["resourceVersionMatch=Exact", "limit=500"] {
        let list = exact(compacted, how).await.ok();
        assert_eq!(list["items"][0]["data"]["n"], "2");
        let gone = exact(compacted - 1, how).await;
        gone.fails(410, "Expired", "The resourceVersion for the provided list is too old.", Value::Null);
    }
}

async fn c24_not_older_than_in_pages(setup: Setup) {
    let server = setup.start().await;
    let old = rv(&server.create("a", json!({"n": "1"})).await);
    server.set("a", json!({"n": "2"})).await;
    server.create("b", json!({})).await;
    let query = format!("{CONFIGMAPS}?resourceVersion={old}&resourceVersionMatch=NotOlderThan&limit=1");
    let first = server.get(query).await.ok();
    assert_eq!(first["items"][0]["data"]["n"], "2");
    assert!(rv(&first) > old);
    server.create("c", json!({})).await;
    let continued = first["metadata"]["continue"].as_str().expect("a token");
    let second = server.get(format!("{CONFIGMAPS}?continue={continued}")).await.ok();
    assert_eq!((names(&second), rv(&second)), (vec!["b".to_owned()], rv(&first)));
}

async fn c25_any_revision(setup: Setup) {
    let server = setup.start().await;
    for name in ["a", "b"] {
        server.create(name, json!({})).await;
    }
    for query in ["resourceVersion=0", "resourceVersion=0&resourceVersionMatch=NotOlderThan"] {
        assert_eq!(names(&server.get(format!("{CONFIGMAPS}?{query}")).await.ok()), ["a", "b"]);
    }
    // Upstream's cache ignores the limit here, and so does this server.
    let list = server.get(format!("{CONFIGMAPS}?resourceVersion=0&limit=1")).await.ok();
    assert_eq!(names(&list), ["a", "b"]);
    assert_eq!(list["metadata"].get("continue"), None);
}

async fn c38_a_name_that_is_not_there(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({})).await;
    let list = server.get(format!("{CONFIGMAPS}?fieldSelector=metadata.name%3Dnone")).await.ok();
    assert_eq!(list["items"], json!([]));
    let list = server.get(format!("{CONFIGMAPS}?fieldSelector=metadata.name%3Da")).await.ok();
    assert_eq!(names(&list), ["a"]);
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

async fn selectors_select(setup: Setup) {
    let server = setup.start().await;
    server.namespace("u").await;
    for (namespace, name, labels) in [
        ("t", "a", json!({"k": "v", "n": "5"})),
        ("t", "b", json!({"k": "w"})),
        ("t", "c", json!({"k": ""})),
        ("u", "d", json!({"n": "7"})),
    ] {
        let object = json!({"metadata": {"name": name, "labels": labels}});
        server.post(format!("/api/v1/namespaces/{namespace}/configmaps"), &object).await.expect(201);
    }
    let cases = [
        ("labelSelector=k", "a b c"),
        ("labelSelector=!k", "d"),
        ("labelSelector=k%3Dv", "a"),
        ("labelSelector=k%3D%3Dv", "a"),
        ("labelSelector=k!%3Dv", "b c d"),
        ("labelSelector=k%20in%20(v,%20w)", "a b"),
        ("labelSelector=k%20in%20()", "c"),
        ("labelSelector=k%20notin%20(v,w)", "c d"),
        ("labelSelector=n%3E5", "d"),
        ("labelSelector=n%3C7,k", "a"),
        ("fieldSelector=metadata.name!%3Da", "b c d"),
        ("fieldSelector=metadata.namespace%3Du", "d"),
        ("fieldSelector=metadata.namespace%3Dt,metadata.name%3Db", "b"),
        ("fieldSelector=metadata.name%3Db&labelSelector=k%3Dv", ""),
    ];
    for (query, want) in cases {
        let list = server.get(format!("/api/v1/configmaps?{query}")).await.ok();
        assert_eq!(names(&list).join(" "), want, "{query}");
    }
}

async fn the_unknown_field_is_named(setup: Setup) {
    let server = setup.start().await;
    let message = "\"spec.x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"";
    server.get(format!("{CONFIGMAPS}?fieldSelector=spec.x%3D1")).await.bad_request(message);
    server.get(format!("{CONFIGMAPS}?watch=1&fieldSelector=spec.x%3D1")).await.bad_request(message);
}

async fn list_items_are_bare(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({"k": "v"})).await;
    let list = server.get(CONFIGMAPS).await;
    assert_eq!(list.header("content-type"), Some("application/json"));
    let item = &list.ok()["items"][0];
    assert_eq!((item.get("kind"), item.get("apiVersion")), (None, None));
    assert_eq!(item["data"], json!({"k": "v"}));
    assert_eq!(names(&server.get("/api/v1/namespaces/nowhere/configmaps").await.ok()), [""; 0]);
}
