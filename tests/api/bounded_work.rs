//! Bodies that are large on purpose: what is done about them grows no faster than they do, answers have an end, and the
//! server is well afterwards. None of these cases has a limit of time: without their bounds they take minutes each.

use std::fmt::Write;

use http::Method;
use serde_json::{Value, json};

use crate::bad_bodies::refused;
use crate::support::client::Answer;
use crate::support::server::{CONFIGMAPS, Setup, TestServer};

const JSON: &str = "application/json";
/// What an answer to a body of 3 MiB may weigh.
const ANSWER: usize = 1 << 20;

on_every_store! {
    as_many_nulls_as_members,
    bad_keys_without_number,
    fields_that_nobody_knows,
    keys_that_are_set_twice,
    patches_that_move_too_much,
    configurations_full_of_errors,
    managers_by_the_thousand,
    objects_of_two_bytes,
    expressions_that_are_too_long,
}

/// A ConfigMap, or a patch of one, with one text for each of these keys.
fn data(name: &str, keys: impl Iterator<Item = String>, value: &str) -> String {
    let mut body = format!(r#"{{"metadata":{{"name":"{name}"}},"data":{{"#);
    for (n, key) in keys.enumerate() {
        let comma = if n == 0 { "" } else { "," };
        write!(body, r#"{comma}"{key}":{value}"#).expect("a text grows");
    }
    body + "}}"
}

/// A short name, so that as many as possible fit into a body.
fn short(mut n: usize) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut name = String::new();
    while n > 0 || name.is_empty() {
        name.push(char::from(DIGITS[n % 36]));
        n /= 36;
    }
    name
}

async fn post(server: &TestServer, body: String) -> Answer {
    server.request(Method::POST, CONFIGMAPS).body(JSON, body).await
}

async fn patch(server: &TestServer, name: &str, format: &str, body: impl Into<bytes::Bytes>) -> Answer {
    server.request(Method::PATCH, format!("{CONFIGMAPS}/{name}?fieldManager=m")).body(format, body).await
}

/// The server takes writes, and nothing was stored since.
async fn is_well(server: &TestServer, revision: u64) {
    assert_eq!(server.revision().await, revision);
    server.create("well", json!({"k": "v"})).await;
    server.delete(format!("{CONFIGMAPS}/well")).await.ok();
}

async fn as_many_nulls_as_members(setup: Setup) {
    let server = setup.start().await;
    for kind in ["merge-patch", "strategic-merge-patch"] {
        post(&server, data("c", (0..150_000).map(short), r#""""#)).await.expect(201);
        let nulls = data("c", (0..149_999).rev().map(short), "null");
        let left = patch(&server, "c", &format!("application/{kind}+json"), nulls).await.ok();
        assert_eq!(left["data"], json!({short(149_999): ""}), "{kind}");
        server.delete(format!("{CONFIGMAPS}/c")).await.ok();
    }
    is_well(&server, server.revision().await).await;
}

async fn bad_keys_without_number(setup: Setup) {
    let server = setup.start().await;
    let revision = server.revision().await;
    for keys in [60_000, 250_000] {
        let answer = post(&server, data("bad", (0..keys).map(|n| format!("!{}", short(n))), r#""""#)).await;
        let message = refused(&answer, 422, "Invalid");
        assert!(answer.body.len() < ANSWER, "{} bytes", answer.body.len());
        let first = "ConfigMap \"bad\" is invalid: [data[!0]: Invalid value: \"!0\": a valid config key must";
        assert!(message.starts_with(first), "{}", &message[..200]);
        assert!(message.ends_with(&format!(", and {} more errors]", keys - 256)));
        let causes = answer.failure()["details"]["causes"].as_array().expect("causes").clone();
        let last =
            json!({"reason": "FieldValueTooMany", "message": format!("and {} more errors", keys - 256)});
        assert_eq!((causes.len(), &causes[256]), (257, &last));
    }
    let labels: serde_json::Map<String, Value> =
        (0..60_000).map(|n| (format!("!{}", short(n)), "".into())).collect();
    let answer = post(&server, json!({"metadata": {"name": "bad", "labels": labels}}).to_string()).await;
    refused(&answer, 422, "Invalid");
    assert!(answer.body.len() < ANSWER, "{} bytes", answer.body.len());
    is_well(&server, revision).await;
}

async fn fields_that_nobody_knows(setup: Setup) {
    let server = setup.start().await;
    let revision = server.revision().await;
    let members: Vec<String> = (0..200_000).map(|n| format!(r#""{}":0"#, short(n))).collect();
    let body = format!(r#"{{"metadata":{{"name":"x"}},{}}}"#, members.join(","));
    let strict = format!("{CONFIGMAPS}?fieldValidation=Strict");
    let answer = server.request(Method::POST, strict).body(JSON, body).await;
    let message = refused(&answer, 400, "BadRequest");
    assert_eq!(message.matches("unknown field").count(), 100);
    is_well(&server, revision).await;
}

async fn keys_that_are_set_twice(setup: Setup) {
    let server = setup.start().await;
    let revision = server.revision().await;
    let mut body = "metadata: {name: twice}\ndata:\n".to_owned();
    for _ in 0..2 {
        (0..60_000).for_each(|n| writeln!(body, " a{}: b", short(n)).expect("a text grows"));
    }
    let strict = format!("{CONFIGMAPS}?fieldValidation=Strict");
    let answer = server.request(Method::POST, strict).body("application/yaml", body).await;
    let message = refused(&answer, 400, "BadRequest");
    assert!(answer.body.len() < ANSWER, "{} bytes", answer.body.len());
    assert!(message.contains(r#"line 60003: key "a0" already set in map"#), "{}", &message[..300]);
    is_well(&server, revision).await;
}

async fn patches_that_move_too_much(setup: Setup) {
    let server = setup.start().await;
    post(&server, data("c", (0..100_000).map(short), r#""""#)).await.expect(201);
    let revision = server.revision().await;
    let remove = |n: usize| json!({"op": "remove", "path": format!("/data/{}", short(n))});
    let format = "application/json-patch+json";
    let steps: Vec<Value> = (0..10_000).map(remove).collect();
    let answer = patch(&server, "c", format, Value::from(steps).to_string()).await;
    let text = "Request entity too large: The operations of a JSON patch may move at most 100000000 elements and \
                members";
    answer.fails(413, "RequestEntityTooLarge", text, Value::Null);
    assert_eq!(server.revision().await, revision);
    let few: Vec<Value> = (0..500).map(remove).collect();
    let left = patch(&server, "c", format, Value::from(few).to_string()).await.ok();
    assert_eq!(left["data"].as_object().expect("data").len(), 99_500);
    is_well(&server, server.revision().await).await;
}

async fn configurations_full_of_errors(setup: Setup) {
    let server = setup.start().await;
    let revision = server.revision().await;
    let body = data("c", (0..100_000).map(short), "[]").replacen(
        '{',
        r#"{"apiVersion":"v1","kind":"ConfigMap","#,
        1,
    );
    let answer = patch(&server, "c", "application/apply-patch+yaml", body).await;
    let failure = answer.failure();
    let message = failure["message"].as_str().expect("a message");
    assert_eq!(failure["code"], 500);
    assert!(answer.body.len() < ANSWER, "{} bytes", answer.body.len());
    assert!(message.ends_with("\n  and 99744 more"), "{}", &message[message.len() - 200..]);
    is_well(&server, revision).await;
}

/// One manager for each key, and then one who takes them all.
async fn managers_by_the_thousand(setup: Setup) {
    const MANAGERS: usize = 5000;
    let server = setup.start().await;
    let entry = |n: usize| {
        let fields = json!({"f:data": {format!("f:{}", short(n)): {}}});
        json!({"manager": format!("m{n}"), "operation": "Apply", "apiVersion": "v1",
            "fieldsType": "FieldsV1", "fieldsV1": fields})
    };
    let values =
        |value: &str| -> Value { Value::Object((0..20_000).map(|n| (short(n), value.into())).collect()) };
    let object = |value: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": values(value)});
    let mut first = object("1");
    server.post(CONFIGMAPS, &first).await.expect(201);
    first["metadata"]["managedFields"] = (0..MANAGERS).map(entry).collect();
    let managed = server.put(format!("{CONFIGMAPS}/c"), &first).await.ok();
    let managers = |object: &Value| object["metadata"]["managedFields"].as_array().expect("managers").len();
    assert_eq!(managers(&managed), MANAGERS);
    let conflicts = patch(&server, "c", "application/apply-patch+yaml", object("2").to_string()).await;
    let message = refused(&conflicts, 409, "Conflict");
    assert!(message.starts_with("Apply failed with 5000 conflicts: conflicts with "), "{}", &message[..100]);
    assert!(message.ends_with("\n- and 4744 more"), "{}", &message[message.len() - 100..]);
    assert!(conflicts.body.len() < ANSWER, "{} bytes", conflicts.body.len());
    let mut second = object("3");
    second["metadata"]["resourceVersion"] = managed["metadata"]["resourceVersion"].clone();
    let updated = server.put(format!("{CONFIGMAPS}/c?fieldManager=last"), &second).await.ok();
    assert_eq!(managers(&updated), 1);
    is_well(&server, server.revision().await).await;
}

/// Nobody has looked at such an expression, so nobody says that it is wrong.
async fn expressions_that_are_too_long(setup: Setup) {
    let server = setup.start().await;
    let policy = |name: &str, expression: String| {
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {"matchConstraints": {"resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}]},
                "validations": [{"expression": expression}]}})
    };
    let policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    let sum = |terms: usize| format!("{}1 > 0", "1 + ".repeat(terms));
    // As in cel-go, whose parser goes one level deeper with each term.
    let answer = server.post(policies, &policy("long", sum(10_000))).await;
    let text = refused(&answer, 422, "Invalid");
    assert!(text.contains("max recursion depth exceeded"), "{text}");
    server.post(policies, &policy("short", sum(100))).await.expect(201);
    let answer = server.post(policies, &policy("wrong", "1 + 1".into())).await;
    assert!(refused(&answer, 422, "Invalid").contains("must evaluate to bool"));
}

/// Each takes a thousand times as much memory until it is stored.
async fn objects_of_two_bytes(setup: Setup) {
    const MOST: usize = 200_000;
    let server = setup.start().await;
    let revision = server.revision().await;
    let policies = "/apis/networking.k8s.io/v1/namespaces/t/networkpolicies";
    let policy = |count: usize| {
        let ports = vec!["{}"; count].join(",");
        format!(
            r#"{{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{{"name":"p"}},
            "spec":{{"podSelector":{{}},"ingress":[{{"ports":[{ports}]}}]}}}}"#
        )
    };
    let text = format!("Request entity too large: A body may hold at most {MOST} objects and lists");
    let many = policy(MOST);
    let is_refused = |answer: Answer| answer.fails(413, "RequestEntityTooLarge", &text, Value::Null);
    for media in [JSON, "application/yaml"] {
        is_refused(server.request(Method::POST, policies).body(media, many.clone()).await);
    }
    let apply = server.request(Method::PATCH, format!("{policies}/p?fieldManager=m"));
    is_refused(apply.body("application/apply-patch+yaml", many.clone()).await);
    // A Pod whose containers are empty messages.
    let message = |number: u8, content: &[u8]| {
        let mut message = vec![number << 3 | 2];
        let mut length = content.len();
        while length > 127 {
            message.push(length as u8 | 128);
            length >>= 7;
        }
        message.push(length as u8);
        message.extend_from_slice(content);
        message
    };
    let spec = message(2, &message(2, &[]).repeat(MOST));
    let kind = message(1, &[message(1, b"v1"), message(2, b"Pod")].concat());
    let pod = [b"k8s\0".to_vec(), kind, message(2, &spec)].concat();
    let pods = server.request(Method::POST, "/api/v1/namespaces/t/pods");
    is_refused(pods.body("application/vnd.kubernetes.protobuf", pod).await);
    assert_eq!(server.revision().await, revision);
    post(&server, data("c", std::iter::once("k".to_owned()), r#""""#)).await.expect(201);
    for format in ["merge-patch", "strategic-merge-patch"] {
        is_refused(patch(&server, "c", &format!("application/{format}+json"), many.clone()).await);
    }
    is_well(&server, server.revision().await).await;
}
