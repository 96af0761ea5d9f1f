//! The form of a WATCH: headers, frames, tables, deprecated paths.

use serde_json::{Value, json};

use super::watch::after;
use crate::support::client::{Client, Protocol};
use crate::support::server::{CONFIGMAPS, Setup};

const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
const PARTIAL: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

on_every_store! {
    list_watch_61_headers_come_first,
    list_watch_62_one_line_per_event,
    list_watch_64_yaml_is_refused,
    list_watch_64_what_is_not_in_protobuf,
    list_watch_65_tables_and_partial_metadata,
    list_watch_66_deprecated_paths,
}

async fn list_watch_61_headers_come_first(setup: Setup) {
    let server = setup.start().await;
    for protocol in [Protocol::Any, Protocol::Http1] {
        let client = Client::of_certificate(&server.kubeconfig, protocol);
        let name = if protocol == Protocol::Any { "a" } else { "b" };
        // The headers of status 200 have arrived when this returns.
        let mut watch = after(&client, CONFIGMAPS, server.revision().await, "").await;
        server.create(name, json!({})).await;
        watch.expect_named("ADDED", name).await;
    }
}

async fn list_watch_62_one_line_per_event(setup: Setup) {
    let server = setup.start().await;
    let created = server.create("a", json!({"text": "two\nlines"})).await;
    for accept in ["application/json", "*/*", "application/json;stream=watch"] {
        for agent in ["curl/8.0", "kubectl/v1.37.0"] {
            let request = server.get(format!("{CONFIGMAPS}?watch=1")).accept(accept);
            let mut watch = request.header("user-agent", agent).watch().await;
            assert_eq!(watch.headers["content-type"], "application/json");
            let line = watch.line().await.expect("a line");
            let event: Value = serde_json::from_str(&line).expect("one object");
            assert_eq!(event, json!({"type": "ADDED", "object": created}));
            assert_eq!(line, event.to_string(), "compact");
        }
    }
}

async fn list_watch_64_yaml_is_refused(setup: Setup) {
    let server = setup.start().await;
    let answer = server.get(format!("{CONFIGMAPS}?watch=1")).accept("application/yaml").await;
    assert_eq!(answer.status, 406, "{answer:?}");
    // The refusal itself is in YAML, which was asked for.
    let text = answer.text();
    assert!(
        text.contains("\nreason: NotAcceptable\n") && text.contains("application/json;stream=watch"),
        "{text}"
    );
}

/// Of built-in kinds, that is tables; custom resources are refused by the same negotiation.
async fn list_watch_64_what_is_not_in_protobuf(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({})).await;
    let binary = "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1";
    let watched = format!("{CONFIGMAPS}?watch=1");
    for path in [CONFIGMAPS, &watched] {
        let answer = server.get(path).accept(binary).await;
        let text = "only the following media types are accepted: application/json, application/yaml, \
                    application/vnd.kubernetes.protobuf";
        answer.fails(406, "NotAcceptable", text, Value::Null);
    }
    let either = format!("{binary},{TABLE}");
    let list = server.get(CONFIGMAPS).accept(&either).await;
    assert_eq!(
        (list.header("content-type"), &list.ok()["kind"]),
        (Some("application/json"), &json!("Table"))
    );
    let mut watch = server.get(&watched).accept(&either).watch().await;
    assert_eq!(watch.headers["content-type"], "application/json");
    assert_eq!(watch.expect("ADDED").await["kind"], "Table");
}

async fn list_watch_65_tables_and_partial_metadata(setup: Setup) {
    let server = setup.start().await;
    let start = server.revision().await;
    let watched = format!("{CONFIGMAPS}?watch=1&resourceVersion={start}");
    let mut tables = server.get(&watched).accept(TABLE).watch().await;
    let mut objects = server.get(format!("{watched}&includeObject=Object")).accept(TABLE).watch().await;
    let mut nothing = server.get(format!("{watched}&includeObject=None")).accept(TABLE).watch().await;
    let mut partial = server.get(&watched).accept(PARTIAL).watch().await;
    assert_eq!(tables.headers["content-type"], "application/json");
    let a = server.create("a", json!({"k": "v"})).await;
    server.create("b", json!({})).await;
    for (name, columns) in [("a", true), ("b", false)] {
        let table = tables.expect("ADDED").await;
        assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
        assert_eq!(table["columnDefinitions"].is_array(), columns, "{table}");
        let row = &table["rows"][0];
        assert_eq!(row["cells"][0], name);
        assert_eq!(row["object"]["kind"], "PartialObjectMetadata");
        assert_eq!(row["object"]["metadata"]["resourceVersion"], table["metadata"]["resourceVersion"]);
        let metadata = partial.expect("ADDED").await;
        assert_eq!(metadata["kind"], "PartialObjectMetadata");
        assert_eq!((&metadata["apiVersion"], metadata.get("data")), (&json!("meta.k8s.io/v1"), None));
        assert_eq!(metadata["metadata"]["name"], name);
    }
    assert_eq!(objects.expect("ADDED").await["rows"][0]["object"], a);
    assert_eq!(nothing.expect("ADDED").await["rows"][0].get("object"), Some(&Value::Null));
    let bookmarks = format!("{CONFIGMAPS}?watch=1&allowWatchBookmarks=true&labelSelector=none");
    let mut partial = server.get(bookmarks).accept(PARTIAL).watch().await;
    assert_eq!(partial.expect("BOOKMARK").await["kind"], "PartialObjectMetadata");
    server.compact(server.revision().await).await;
    for accept in [TABLE, PARTIAL] {
        let mut expired = server.get(&watched).accept(accept).watch().await;
        assert_eq!(expired.expect("ERROR").await["kind"], "Status");
        expired.expect_end().await;
    }
    let bad = server.get(format!("{watched}&includeObject=x")).accept(TABLE).await;
    bad.bad_request(
        "Unable to convert to Table as requested: includeObject: Invalid value: \"x\": must be 'Metadata', \
         'Object', 'None', or empty",
    );
    assert_eq!(server.get(CONFIGMAPS).accept(PARTIAL).await.failure()["code"], 406);
}

async fn list_watch_66_deprecated_paths(setup: Setup) {
    let server = setup.start().await;
    let one = "/api/v1/watch/namespaces/t/configmaps/x";
    let mut absent = server.watch(one).await;
    server.create("other", json!({})).await;
    server.create("x", json!({"n": "1"})).await;
    let first = absent.expect_named("ADDED", "x").await;
    let mut present = server.watch(one).await;
    assert_eq!(present.expect("ADDED").await, first);
    server.remove("x").await;
    let second = server.create("x", json!({"n": "2"})).await;
    for watch in [&mut absent, &mut present] {
        assert_eq!(watch.expect("DELETED").await["data"]["n"], "1");
        assert_eq!(watch.expect("ADDED").await, second);
    }
    let collection =
        server.watch("/api/v1/watch/namespaces/t/configmaps?allowWatchBookmarks=true&timeoutSeconds=1");
    let events = collection.await.rest().await;
    let seen: Vec<_> =
        events.iter().map(|event| (&event["type"], &event["object"]["metadata"]["name"])).collect();
    assert_eq!(
        seen,
        [(&json!("ADDED"), &json!("other")), (&json!("ADDED"), &json!("x"))],
        "and no bookmark tells the end of the state"
    );
    server
        .get(format!("{one}?fieldSelector=metadata.name%3Dy"))
        .await
        .bad_request("fieldSelector metadata.name doesn't match requested name");
    let invalid = server.get(format!("{one}?sendInitialEvents=true")).await;
    invalid.invalid_options(
        "ListOptions",
        &[("FieldValueForbidden", "sendInitialEvents", "Forbidden: sendInitialEvents is forbidden for list")],
    );
}
