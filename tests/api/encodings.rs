//! YAML, indentation and compression; assertions of `docs/spec/wire.md` by number.

use std::io::Read;

use flate2::read::MultiGzDecoder;
use http::Method;
use rowplane::codec::yaml;
use serde_json::{Value, json};

use crate::support::client::Answer;
use crate::support::server::{CONFIGMAPS, Setup, config_map};

const YAML: &str = "application/yaml";

on_every_store! {
    wire_10_yaml_is_no_stream,
    wire_13_people_get_indentation,
    wire_62_large_lists_are_compressed,
    wire_63_streamed_lists_are_compressed,
    wire_64_yaml_out,
    yaml_in,
    yaml_of_several_documents,
    times_as_go_reads_them,
    yaml_of_discovery_and_errors,
}

#[track_caller]
fn parsed(answer: &Answer, status: u16) -> Value {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some(YAML), "{answer:?}");
    serde_json::to_value(yaml::parse(&answer.body).expect("YAML")).expect("JSON")
}

async fn wire_10_yaml_is_no_stream(setup: Setup) {
    let server = setup.start().await;
    let refused = server.get(format!("{CONFIGMAPS}?watch=true")).accept(YAML).await;
    assert_eq!(refused.status, 406);
    let message = "only the following media types are accepted: application/json;stream=watch, \
                   application/vnd.kubernetes.protobuf;stream=watch";
    assert_eq!(parsed(&refused, 406)["message"], message);
}

async fn wire_13_people_get_indentation(setup: Setup) {
    let server = setup.start().await;
    let object = server.create("a", json!({"k": "v"})).await;
    let path = format!("{CONFIGMAPS}/a");
    let indented = format!("{object:#}");
    assert_eq!(server.get(&path).header("user-agent", "curl/8").await.text(), indented);
    assert_eq!(server.get(format!("{path}?pretty=1")).await.text(), indented);
    assert_eq!(server.get(&path).accept("application/json;pretty=1").await.text(), indented);
    let compact = server.get(format!("{path}?pretty=false")).header("user-agent", "curl/8").await;
    assert_eq!(compact.text(), format!("{object}\n"));
}

async fn wire_62_large_lists_are_compressed(setup: Setup) {
    let server = setup.start().await;
    let text = "x".repeat(1000);
    for index in 0..300 {
        server.create(&format!("a-{index}"), json!({"k": &text})).await;
    }
    let plain = server.get(CONFIGMAPS).await;
    let indented = server.get(format!("{CONFIGMAPS}?pretty=true")).await;
    assert_eq!(indented.text(), format!("{:#}", plain.json()));
    for accept in ["gzip;q=1.0", "*", "br"] {
        let answer = server.get(CONFIGMAPS).header("accept-encoding", accept).await;
        assert_eq!(answer.header("content-encoding"), None, "{accept}");
        assert_eq!(answer.body, plain.body);
    }
    for (accept, length) in [("application/json", plain.body.len()), ("application/yaml", 0)] {
        let packed = server.get(CONFIGMAPS).accept(accept).header("accept-encoding", "br, gzip").await;
        assert_eq!(packed.header("content-encoding"), Some("gzip"), "{accept}");
        assert_eq!(packed.header("vary"), Some("Accept-Encoding"));
        let mut body = Vec::new();
        MultiGzDecoder::new(&packed.body[..]).read_to_end(&mut body).expect("gzip");
        assert!(packed.body.len() < body.len() / 10 && body.len() >= length);
        let list = yaml::parse(&body).expect("a list");
        assert_eq!(serde_json::to_value(list).expect("JSON"), plain.json());
    }
    let small = server.get(format!("{CONFIGMAPS}?limit=50")).header("accept-encoding", "gzip").await;
    assert_eq!((small.header("content-encoding"), small.header("vary")), (None, None));
}

async fn wire_63_streamed_lists_are_compressed(setup: Setup) {
    let server = setup.start().await;
    for name in ["a", "b"] {
        server.create(name, json!({"k": "v"})).await;
    }
    let streamed =
        "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    // One that ends, so that all of it can be read.
    let path = format!("{CONFIGMAPS}?{streamed}&timeoutSeconds=1");
    let plain = server.get(&path).await;
    assert_eq!((plain.header("content-encoding"), plain.header("vary")), (None, None));
    let packed = server.get(&path).header("accept-encoding", "br, gzip").await;
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert_eq!(packed.header("vary"), Some("Accept-Encoding"));
    let mut body = String::new();
    MultiGzDecoder::new(&packed.body[..]).read_to_string(&mut body).expect("gzip");
    assert_eq!(body, plain.text());
    assert_eq!(body.lines().count(), 3, "two objects and a bookmark: {body}");
    // Each event is whole when it arrives, and a member of its own.
    let request = server.get(format!("{CONFIGMAPS}?{streamed}")).header("accept-encoding", "gzip");
    let mut watch = request.watch().await;
    let first = watch.chunk().await;
    let mut state = String::new();
    MultiGzDecoder::new(&first[..]).read_to_string(&mut state).expect("a member");
    assert_eq!(state, body);
    server.create("c", json!({})).await;
    let second = watch.chunk().await;
    assert_eq!(second[..2], [0x1f, 0x8b]);
    let mut event = String::new();
    MultiGzDecoder::new(&second[..]).read_to_string(&mut event).expect("a member");
    let event: Value = serde_json::from_str(&event).expect("an event");
    assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&json!("ADDED"), &json!("c")));
    // Other watches never are.
    let revision = server.revision().await;
    for query in [
        format!("watch=1&resourceVersion={revision}&allowWatchBookmarks=true"),
        "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan".to_owned(),
    ] {
        let path = format!("{CONFIGMAPS}?{query}&timeoutSeconds=1");
        let watch = server.get(&path).header("accept-encoding", "gzip").await;
        assert_eq!((watch.status, watch.header("content-encoding")), (200, None), "{path}");
    }
}

async fn wire_64_yaml_out(setup: Setup) {
    let server = setup.start().await;
    let object = server.create("a", json!({"b": "yes", "a": "1", "c": "<x>\ny\n"})).await;
    let answer = server.get(format!("{CONFIGMAPS}/a")).accept(YAML).await;
    assert_eq!(parsed(&answer, 200), object);
    let data = "apiVersion: v1\ndata:\n  a: \"1\"\n  b: \"yes\"\n  c: |\n    <x>\n    y\nkind: ConfigMap\nmetadata:\n";
    assert!(answer.text().starts_with(data), "{answer:?}");
    let list = server.get(CONFIGMAPS).accept(YAML).await;
    assert_eq!(parsed(&list, 200), server.get(CONFIGMAPS).await.json());
    assert!(list.text().starts_with("apiVersion: v1\nitems:\n- data:\n    a: \"1\"\n"), "{list:?}");
    assert!(list.text().contains("kind: ConfigMapList\nmetadata:\n  resourceVersion: \""), "{list:?}");
    let table = "application/yaml;as=Table;g=meta.k8s.io;v=v1";
    assert_eq!(parsed(&server.get(CONFIGMAPS).accept(table).await, 200)["kind"], "Table");
}

async fn yaml_in(setup: Setup) {
    let server = setup.start().await;
    let text = "# a comment\nmetadata: {name: a}\ndata:\n  k: |\n    v\n";
    let created = server.request(Method::POST, CONFIGMAPS).body(YAML, text).await.expect(201);
    assert_eq!(created["data"], json!({"k": "v\n"}));
    let mut changed = config_map("a", json!({"k": "w"}));
    changed["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"].clone();
    let path = format!("{CONFIGMAPS}/a");
    let put = server
        .request(Method::PUT, &path)
        .body(YAML, yaml::write(&serde_json::from_value(changed).expect("a tree")))
        .await
        .ok();
    assert_eq!(put["data"], json!({"k": "w"}));
    let bad = server.request(Method::POST, CONFIGMAPS).body(YAML, "a: [1").await.failure();
    assert_eq!((&bad["code"], &bad["reason"]), (&json!(400), &json!("BadRequest")));
    let options = "preconditions: {uid: other}\n";
    assert_eq!(server.delete(&path).body(YAML, options).await.failure()["code"], 409);
    server.delete(&path).body(YAML, "propagationPolicy: Background\n").await.ok();
}

async fn yaml_of_discovery_and_errors(setup: Setup) {
    let server = setup.start().await;
    for path in ["/api", "/apis", "/apis/apps", "/apis/apps/v1"] {
        let answer = server.get(path).accept(YAML).await;
        assert_eq!(parsed(&answer, 200), server.get(path).await.json(), "{path}");
    }
    let missing = server.get(format!("{CONFIGMAPS}/none")).accept(YAML).await;
    assert_eq!(parsed(&missing, 404)["reason"], "NotFound");
}

/// Only the first document is read, whatever follows it.
async fn yaml_of_several_documents(setup: Setup) {
    let server = setup.start().await;
    let first = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}\n";
    for text in [
        format!("{first}---\n"),
        format!("{first}---\n# end\n"),
        format!("{first}...\n"),
        format!("{first}---\n{}", first.replace("a: b", "c: d")),
        format!("{first}...\n{{[\n"),
        format!("---\n{first}"),
    ] {
        let created =
            server.request(Method::POST, format!("{CONFIGMAPS}?dryRun=All")).body(YAML, text.clone()).await;
        assert_eq!(created.expect(201)["data"], json!({"a": "b"}), "{text}");
        let path = format!("{CONFIGMAPS}/a?dryRun=All&fieldManager=f");
        let applied =
            server.request(Method::PATCH, path).body("application/apply-patch+yaml", text.clone()).await;
        assert_eq!(applied.expect(201)["data"], json!({"a": "b"}), "{text}");
    }
    let refused = server.request(Method::POST, CONFIGMAPS).body(YAML, "a: b: c\n").await.failure();
    let message = refused["message"].as_str().expect("a message");
    assert!(message.contains("yaml: mapping values are not allowed in this context"), "{message}");
}

async fn times_as_go_reads_them(setup: Setup) {
    let server = setup.start().await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases?dryRun=All";
    for (text, printed) in [
        ("9999-12-31T23:59:59.999999Z", Some("9999-12-31T23:59:59.999999Z")),
        ("2021-01-01T0:00:00.123456Z", Some("2021-01-01T00:00:00.123456Z")),
        ("2021-01-01T01:00:00,123456+01:00", Some("2021-01-01T00:00:00.123456Z")),
        ("2021-01-01T00:00:00Z", None),
        ("2021-01-01T24:00:00.000000Z", None),
    ] {
        let lease = json!({"metadata": {"name": "a"}, "spec": {"renewTime": text}});
        let answer = server.post(leases, &lease).await;
        match printed {
            Some(printed) => assert_eq!(answer.expect(201)["spec"]["renewTime"], printed),
            None => assert_eq!(answer.status, 400, "{text}: {answer:?}"),
        }
    }
    let events = "/api/v1/namespaces/default/events";
    let never = "9999-12-31T23:59:59Z";
    let event = json!({"metadata": {"name": "a", "namespace": "default"}, "involvedObject": {"namespace": "default"},
        "firstTimestamp": never, "lastTimestamp": "2021-01-01T1:00:00.5Z"});
    let created = server.post(events, &event).await.expect(201);
    assert_eq!(
        (&created["firstTimestamp"], &created["lastTimestamp"]),
        (&never.into(), &"2021-01-01T01:00:00Z".into())
    );
    assert_eq!(server.get(format!("{events}/a")).await.ok()["firstTimestamp"], never);
    let refused =
        server.post(events, &json!({"metadata": {"name": "b"}, "firstTimestamp": "2021-01-01T00:00Z"})).await;
    assert_eq!(refused.status, 400, "{refused:?}");
}
