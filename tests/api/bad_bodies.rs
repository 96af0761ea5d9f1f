//! Bodies that no well-behaved client sends: they are refused in the API's words and harm nobody.

use http::Method;
use serde_json::{Value, json};

use crate::support::client::{Answer, Client, Protocol};
use crate::support::server::{CONFIGMAPS, Setup, names};

const LIMIT: usize = 3 << 20;
const PATCHES: [&str; 2] = ["application/merge-patch+json", "application/json-patch+json"];

on_every_store! {
    bodies_that_are_no_json,
    bodies_of_another_kind,
    fields_of_the_wrong_type,
    bodies_larger_than_3_mib,
    another_limit_of_bodies,
    content_types,
    deep_nesting,
    patches_cannot_nest_deeper_than_bodies,
    invalid_utf8,
    lone_surrogates,
    delete_options_that_are_none,
}

/// A 4xx with this reason; returns its message.
#[track_caller]
pub fn refused(answer: &Answer, code: u16, reason: &str) -> String {
    let failure = answer.failure();
    assert_eq!((&failure["code"], &failure["reason"]), (&json!(code), &json!(reason)), "{answer:?}");
    failure["message"].as_str().expect("a message").to_owned()
}

pub fn send(
    server: &Client,
    method: Method,
    path: &str,
    body: impl Into<bytes::Bytes>,
) -> crate::support::client::Request {
    server.request(method, path).body("application/json", body)
}

async fn bodies_that_are_no_json(setup: Setup) {
    let server = setup.start().await;
    server.create("x", json!({"k": "v"})).await;
    let before = server.revision().await;
    let x = format!("{CONFIGMAPS}/x");
    let bodies: [&[u8]; 12] = [
        b"",
        b"{",
        b"{\"metadata\"",
        b"{\"metadata\":{\"name\":\"x\"}} {}",
        b"\"text\"",
        b"[]",
        b"7",
        b"nonsense",
        b"\xef\xbb\xbf{}",
        b"{\"a\":1,}",
        b"{} // comment",
        b"\0\0\0\0",
    ];
    for body in bodies {
        for (method, path) in [(Method::POST, CONFIGMAPS), (Method::PUT, &x)] {
            let message = refused(&send(&server, method, path, body).await, 400, "BadRequest");
            assert!(message.contains("couldn't get version/kind; json parse error: "), "{message}");
        }
    }
    for body in [&b"{"[..], b"", b"nonsense", b"{} {}"] {
        for patch in PATCHES {
            let answer = server.request(Method::PATCH, &x).body(patch, body).await;
            refused(&answer, 400, "BadRequest");
        }
        if !body.is_empty() {
            refused(&send(&server, Method::DELETE, &x, body).await, 400, "BadRequest");
            refused(&send(&server, Method::DELETE, CONFIGMAPS, body).await, 400, "BadRequest");
        }
    }
    assert_eq!(server.revision().await, before, "nothing was written");
}

async fn bodies_of_another_kind(setup: Setup) {
    let server = setup.start().await;
    let cases = [
        (json!({"kind": "Secret"}), vec!["Secret", "ConfigMap"]),
        (json!({"apiVersion": "v1beta1"}), vec!["(v1beta1)", "(v1)"]),
        (json!({"kind": 7}), vec!["cannot unmarshal number"]),
        (json!({"apiVersion": ["v1"]}), vec!["cannot unmarshal array"]),
    ];
    for (body, parts) in cases {
        let message = refused(&server.post(CONFIGMAPS, &body).await, 400, "BadRequest");
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }
}

async fn fields_of_the_wrong_type(setup: Setup) {
    let server = setup.start().await;
    server.create("x", json!({})).await;
    let before = server.revision().await;
    let cases = [
        json!("text"),
        json!(["x"]),
        json!({"name": 7}),
        json!({"name": "x", "namespace": {}}),
        json!({"name": "x", "resourceVersion": 7}),
        json!({"name": "x", "uid": true}),
        json!({"name": "x", "labels": ["a"]}),
        json!({"name": "x", "labels": {"a": 1}}),
        json!({"name": "x", "annotations": {"a": {}}}),
        json!({"name": "x", "finalizers": "f"}),
        json!({"name": "x", "finalizers": [1]}),
        json!({"name": "x", "ownerReferences": {}}),
        json!({"name": "x", "ownerReferences": [7]}),
        json!({"name": "x", "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": 1}]}),
        json!({"name": "x", "creationTimestamp": "yesterday"}),
        json!({"name": "x", "deletionGracePeriodSeconds": 1.5}),
        json!({"name": "x", "generation": "1"}),
        json!({"generateName": {}}),
    ];
    for metadata in cases {
        let body = json!({"metadata": metadata});
        refused(&server.post(CONFIGMAPS, &body).await, 400, "BadRequest");
        refused(&server.put(format!("{CONFIGMAPS}/x"), &body).await, 400, "BadRequest");
        // The patch itself is fine; what it would make is not.
        let patched = server.patch(format!("{CONFIGMAPS}/x"), &body).await.failure();
        assert!([400, 409, 422].map(Value::from).contains(&patched["code"]), "{patched}");
    }
    for label in [json!({"-a": "v"}), json!({"a": "not valid"}), json!({"a/b/c": "v"}), json!({"": "v"})] {
        let body = json!({"metadata": {"name": "y", "labels": label}});
        refused(&server.post(CONFIGMAPS, &body).await, 422, "Invalid");
    }
    assert_eq!(server.revision().await, before);
}

/// A ConfigMap that is padded to this many bytes.
fn padded(name: &str, size: usize) -> Vec<u8> {
    let mut body = json!({"metadata": {"name": name}}).to_string().into_bytes();
    body.resize(size, b' ');
    body
}

async fn bodies_larger_than_3_mib(setup: Setup) {
    let server = setup.start().await;
    let text = "Request entity too large: limit is 3145728";
    for protocol in [Protocol::Http1, Protocol::Any] {
        let client = Client::of_certificate(&server.kubeconfig, protocol);
        let name = if protocol == Protocol::Any { "two" } else { "one" };
        send(&client, Method::POST, CONFIGMAPS, padded(name, LIMIT)).await.expect(201);
        let path = format!("{CONFIGMAPS}/{name}");
        for method in [Method::PUT, Method::DELETE] {
            let answer = send(&client, method, &path, padded(name, LIMIT + 1)).await;
            answer.fails(413, "RequestEntityTooLarge", text, Value::Null);
        }
        let answer = send(&client, Method::POST, CONFIGMAPS, padded("new", LIMIT + 1)).await;
        answer.fails(413, "RequestEntityTooLarge", text, Value::Null);
        for patch in PATCHES {
            let answer = client.request(Method::PATCH, &path).body(patch, padded(name, LIMIT + 1)).await;
            answer.fails(413, "RequestEntityTooLarge", text, Value::Null);
        }
    }
    assert_eq!(names(&server.get(CONFIGMAPS).await.ok()), ["one", "two"]);
}

async fn another_limit_of_bodies(mut setup: Setup) {
    setup.limits.max_request_body_bytes = 2000;
    let server = setup.start().await;
    let answer = send(&server, Method::POST, CONFIGMAPS, padded("a", 2001)).await;
    answer.fails(413, "RequestEntityTooLarge", "Request entity too large: limit is 2000", Value::Null);
    send(&server, Method::POST, CONFIGMAPS, padded("a", 2000)).await.expect(201);
}

async fn content_types(setup: Setup) {
    let server = setup.start().await;
    let body = json!({"metadata": {"name": "x"}}).to_string();
    for content_type in ["text/plain", "application/x-www-form-urlencoded", "nonsense", "json"] {
        let answer = server.request(Method::POST, CONFIGMAPS).body(content_type, body.clone()).await;
        let message = refused(&answer, 415, "UnsupportedMediaType");
        let start = "the body of the request was in an unknown format - accepted media types include: application/json";
        assert!(message.starts_with(start), "{message}");
    }
    let parameters =
        server.request(Method::POST, CONFIGMAPS).body("Application/JSON; charset=utf-8", body.clone());
    parameters.await.expect(201);
    for content_type in ["application/json", "text/plain", "", "application/Merge-Patch+json"] {
        let answer =
            server.request(Method::PATCH, format!("{CONFIGMAPS}/x")).body(content_type, body.clone()).await;
        answer.fails(415, "UnsupportedMediaType", "415: Unsupported Media Type", json!({}));
    }
}

/// `depth` objects in one another.
fn nested(depth: usize) -> String {
    format!("{}{}", "{\"a\":".repeat(depth), "1") + &"}".repeat(depth)
}

async fn deep_nesting(setup: Setup) {
    let server = setup.start().await;
    server.create("x", json!({"k": "v"})).await;
    let x = format!("{CONFIGMAPS}/x");
    for deep in [nested(100_000), "[".repeat(1_000_000), "{\"metadata\":".repeat(100_000)] {
        refused(&send(&server, Method::POST, CONFIGMAPS, deep.clone()).await, 400, "BadRequest");
        refused(&send(&server, Method::PUT, &x, deep.clone()).await, 400, "BadRequest");
        refused(&send(&server, Method::DELETE, &x, deep.clone()).await, 400, "BadRequest");
        for patch in PATCHES {
            refused(&server.request(Method::PATCH, &x).body(patch, deep.clone()).await, 400, "BadRequest");
        }
    }
    let operations = format!("[{{\"op\":\"add\",\"path\":\"/data\",\"value\":{}}}]", nested(100_000));
    refused(&server.request(Method::PATCH, &x).body(PATCHES[1], operations).await, 400, "BadRequest");
    let pointer = json!([{"op": "add", "path": "/a".repeat(100_000), "value": 1}]);
    let answer = server.request(Method::PATCH, &x).body(PATCHES[1], pointer.to_string()).await;
    refused(&answer, 422, "Invalid");
    assert_eq!(server.get(&x).await.ok()["data"], json!({"k": "v"}));
}

/// The data of a ControllerRevision is JSON of any shape. A patch can put it into itself again and again; what is
/// stored has to stay readable for all that.
async fn patches_cannot_nest_deeper_than_bodies(setup: Setup) {
    let server = setup.start().await;
    let path = "/apis/apps/v1/namespaces/t/controllerrevisions";
    let revision = json!({"metadata": {"name": "r"}, "revision": 1, "data": {"a": {"a": {"a": {}}}}});
    server.post(path, &revision).await.expect(201);
    let object = format!("{path}/r");
    let mut refusals = 0;
    for _ in 0..12 {
        // The deepest place grows twofold with every copy that is taken.
        let data = server.get(&object).await.ok()["data"].clone();
        let mut pointer = "/data".to_owned();
        let mut at = &data;
        while let Some(inner) = at.get("a") {
            pointer.push_str("/a");
            at = inner;
        }
        let copy = json!([{"op": "copy", "from": "/data", "path": format!("{pointer}/a")}]);
        let answer = server.request(Method::PATCH, &object).body(PATCHES[1], copy.to_string()).await;
        if answer.status != 200 {
            answer.failure();
            assert!(answer.status < 500, "{answer:?}");
            refusals += 1;
        }
    }
    assert!(refusals > 0, "no limit was met");
    // All of that in one request.
    let copies: Vec<Value> = (0..18)
        .map(|n| json!({"op": "copy", "from": "/data", "path": "/data".to_owned() + &"/a".repeat(4 << n)}))
        .collect();
    let start = json!({"op": "replace", "path": "/data", "value": {"a": {"a": {"a": {}}}}});
    let patch = json!([vec![start], copies].concat());
    let answer = server.request(Method::PATCH, &object).body(PATCHES[1], patch.to_string()).await;
    refused(&answer, 422, "Invalid");
    // Every form of it can still be read, and it can be changed and deleted.
    for query in ["", "?pretty=true"] {
        server.get(format!("{path}{query}")).await.ok();
        server.get(format!("{object}{query}")).await.ok();
    }
    let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    server.get(format!("{path}?includeObject=Object")).accept(table).await.ok();
    server.watch(format!("{path}?watch=1")).await.expect_named("ADDED", "r").await;
    server.patch(&object, &json!({"metadata": {"labels": {"l": "1"}}})).await.ok();
    server.delete(&object).await.ok();
}

async fn invalid_utf8(setup: Setup) {
    let server = setup.start().await;
    let body = b"{\"metadata\":{\"name\":\"x\"},\"data\":{\"k\":\"a\xffb\",\"l\":\"\xe2\x82(\"}}".to_vec();
    let created = send(&server, Method::POST, CONFIGMAPS, body).await.expect(201);
    assert_eq!(created["data"], json!({"k": "a\u{fffd}b", "l": "\u{fffd}\u{fffd}("}), "one for each byte");
    assert_eq!(server.get(format!("{CONFIGMAPS}/x")).await.ok(), created);
    let patch = b"{\"data\":{\"k\":\"\xc3\x28\"}}".to_vec();
    let answer = server.request(Method::PATCH, format!("{CONFIGMAPS}/x")).body(PATCHES[0], patch).await;
    assert_eq!(answer.ok()["data"]["k"], "\u{fffd}(");
    let name = b"{\"metadata\":{\"name\":\"z\xff\"}}".to_vec();
    refused(&send(&server, Method::POST, CONFIGMAPS, name).await, 422, "Invalid");
    // YAML has to be UTF-8, and so has an apply, which is YAML.
    let before = server.revision().await;
    let applied = "application/apply-patch+yaml";
    for (octets, why) in [
        (&b"a\xffb"[..], "yaml: invalid leading UTF-8 octet"),
        (b"a\xe2\x82", "yaml: invalid trailing UTF-8 octet"),
    ] {
        let yaml =
            [b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: y\ndata:\n  k: \"", octets, b"\"\n"]
                .concat();
        let posted = server.request(Method::POST, CONFIGMAPS).body("application/yaml", yaml.clone()).await;
        assert!(refused(&posted, 400, "BadRequest").contains(why), "{posted:?}");
        let patch =
            server.request(Method::PATCH, format!("{CONFIGMAPS}/y?fieldManager=m")).body(applied, yaml).await;
        assert!(refused(&patch, 400, "BadRequest").ends_with(why), "{patch:?}");
    }
    assert_eq!(server.revision().await, before);
}

/// Halves of surrogate pairs, which JSON can name and which are no characters.
async fn lone_surrogates(setup: Setup) {
    let server = setup.start().await;
    let body =
        r#"{"metadata":{"name":"x"},"data":{"a":"\ud800c","b":"\u0000\udfff","c":"\ud83d\ud83d\ude00"}}"#;
    let created = send(&server, Method::POST, CONFIGMAPS, body).await.expect(201);
    let want = json!({"a": "\u{fffd}c", "b": "\0\u{fffd}", "c": "\u{fffd}😀"});
    assert_eq!(created["data"], want);
    let x = format!("{CONFIGMAPS}/x");
    assert_eq!(server.get(&x).await.ok()["data"], want);
    for (content_type, patch, key) in [
        (PATCHES[0], r#"{"data":{"d":"\udc00"}}"#, "d"),
        (PATCHES[1], r#"[{"op":"add","path":"/data/e","value":"\udc00"}]"#, "e"),
        ("application/strategic-merge-patch+json", r#"{"data":{"f":"\udc00"}}"#, "f"),
    ] {
        let patched = server.request(Method::PATCH, &x).body(content_type, patch).await.ok();
        assert_eq!(patched["data"][key], "\u{fffd}", "{content_type}");
    }
    // As part of a name they are U+FFFD too, which no name may have.
    for (method, path, body) in [
        (Method::POST, CONFIGMAPS, r#"{"metadata":{"name":"\ud800"}}"#),
        (Method::POST, CONFIGMAPS, r#"{"metadata":{"name":"y"},"data":{"k\ud800":"v"}}"#),
        (Method::DELETE, &x, r#"{"propagationPolicy":"\ud800"}"#),
    ] {
        let message = refused(&send(&server, method, path, body).await, 422, "Invalid");
        assert!(message.contains('\u{fffd}'), "{message}");
    }
    // YAML knows neither halves nor pairs.
    for (escaped, why) in
        [(r"\ud800", ""), (r"\ud83d\ude00", "yaml: found invalid Unicode character escape code")]
    {
        let config = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"y"},"data":{"k":"?"}}"#;
        let config = config.replace('?', escaped);
        let path = format!("{CONFIGMAPS}/y?fieldManager=m");
        let apply = server.request(Method::PATCH, path).body("application/apply-patch+yaml", config.clone());
        let post = server.request(Method::POST, CONFIGMAPS).body("application/yaml", config);
        for answer in [apply.await, post.await] {
            let message = refused(&answer, 400, "BadRequest");
            assert!(message.contains(why), "{message}");
        }
    }
    assert_eq!(names(&server.get(CONFIGMAPS).await.ok()), ["x"]);
}

async fn delete_options_that_are_none(setup: Setup) {
    let server = setup.start().await;
    server.create("x", json!({})).await;
    for options in [
        json!([]),
        json!("Orphan"),
        json!({"kind": "Pod"}),
        json!({"gracePeriodSeconds": "1"}),
        json!({"gracePeriodSeconds": 1.5}),
        json!({"orphanDependents": 1}),
        json!({"propagationPolicy": 7}),
        json!({"preconditions": "x"}),
        json!({"preconditions": {"uid": 7}}),
        json!({"dryRun": "All"}),
    ] {
        refused(&server.delete(format!("{CONFIGMAPS}/x")).json(&options).await, 400, "BadRequest");
        refused(&server.delete(CONFIGMAPS).json(&options).await, 400, "BadRequest");
    }
    let dry = server.delete(format!("{CONFIGMAPS}/x")).json(&json!({"dryRun": ["yes"]})).await;
    refused(&dry, 422, "Invalid");
    let grace = server.delete(format!("{CONFIGMAPS}/x?gracePeriodSeconds=soon")).await;
    refused(&grace, 400, "BadRequest");
    assert_eq!(names(&server.get(CONFIGMAPS).await.ok()), ["x"]);
}
