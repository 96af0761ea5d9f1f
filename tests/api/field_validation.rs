//! `fieldValidation`: `docs/spec/patch-apply.md`, section 5, assertions 68 to 72. Those about custom resources are elsewhere.

use http::Method;
use serde_json::{Value, json};

use crate::support::client::Answer;
use crate::support::server::{CONFIGMAPS, Setup, TestServer};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/t/deployments";
const WEB: &str = "/apis/apps/v1/namespaces/t/deployments/web";
const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const REFUSED: &str =
    "Deployment in version \"v1\" cannot be handled as a Deployment: strict decoding error: ";

on_every_store! {
    patch_apply_68_creates_and_updates,
    patch_apply_69_results_of_patches,
    patch_apply_70_repeated_members,
    patch_apply_71_applies,
    patch_apply_72_order_and_size,
    unknown_members_are_not_stored,
}

fn web() -> Value {
    json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "app", "image": "nginx:1"}]},
            },
        },
    })
}

fn typo() -> Value {
    let mut web = web();
    web["spec"]["foo"] = json!(1);
    web["spec"]["template"]["spec"]["containers"][0]["imagePullpolicy"] = json!("Always");
    web
}

/// Both typos, in the order of the text that serde_json makes.
const TYPOS: [&str; 2] =
    ["unknown field \"spec.template.spec.containers[0].imagePullpolicy\"", "unknown field \"spec.foo\""];

fn warnings(answer: &Answer) -> Vec<String> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    answer.headers.get_all("warning").iter().map(text).collect()
}

fn as_headers(texts: &[&str]) -> Vec<String> {
    texts
        .iter()
        .map(|text| format!("299 - \"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
        .collect()
}

async fn send(server: &TestServer, format: &str, query: &str, body: &str) -> Answer {
    server.request(Method::PATCH, format!("{WEB}?{query}")).body(format, body.to_owned()).await
}

async fn patch_apply_68_creates_and_updates(setup: Setup) {
    let server = setup.start().await;
    let strict = server.post(format!("{DEPLOYMENTS}?fieldValidation=Strict"), &typo()).await;
    strict.bad_request(&format!("{REFUSED}{}", TYPOS.join(", ")));
    assert!(warnings(&strict).is_empty());
    assert_eq!(server.get(WEB).await.failure()["code"], 404);
    let warned = server.post(DEPLOYMENTS, &typo()).await;
    assert_eq!((warned.status, warnings(&warned)), (201, as_headers(&TYPOS)));
    for (validation, told) in [("Warn", as_headers(&TYPOS)), ("Ignore", Vec::new())] {
        let put = server.put(format!("{WEB}?fieldValidation={validation}"), &typo()).await;
        assert_eq!(warnings(&put), told, "{validation}");
        assert_eq!(put.ok()["spec"].get("foo"), None);
    }
    let strict = server.put(format!("{WEB}?fieldValidation=Strict"), &typo()).await;
    strict.bad_request(&format!("{REFUSED}{}", TYPOS.join(", ")));
    server.put(format!("{WEB}?fieldValidation=Strict"), &web()).await.ok();
    let unsupported = server.put(format!("{WEB}?fieldValidation=strict"), &web()).await;
    let message = r#"Unsupported value: "strict": supported values: "", "Ignore", "Strict", "Warn""#;
    unsupported.invalid_options("UpdateOptions", &[("FieldValueNotSupported", "fieldValidation", message)]);
    // A wrong type hides what strict decoding would say, and a later error does not hide a warning.
    let mut wrong = typo();
    wrong["spec"]["replicas"] = json!("x");
    let refused = server.put(format!("{WEB}?fieldValidation=Strict"), &wrong).await;
    let message = refused.failure()["message"].as_str().expect("text").to_owned();
    assert!(message.contains("json: cannot unmarshal string") && !message.contains("unknown"), "{message}");
    let missing = server.put(format!("{DEPLOYMENTS}/web2"), &typo()).await;
    assert_eq!((missing.failure()["code"].clone(), warnings(&missing)), (400.into(), as_headers(&TYPOS)));
}

async fn patch_apply_69_results_of_patches(setup: Setup) {
    let server = setup.start().await;
    server.post(DEPLOYMENTS, &web()).await.expect(201);
    for (format, body) in [
        (MERGE, json!({"spec": {"Replicas": 2}})),
        (STRATEGIC, json!({"spec": {"Replicas": 2}})),
        (JSON, json!([{"op": "add", "path": "/spec/Replicas", "value": 2}])),
    ] {
        let unknown = "unknown field \"spec.Replicas\"";
        let warned = send(&server, format, "", &body.to_string()).await;
        assert_eq!(warnings(&warned), as_headers(&[unknown]), "{format}");
        assert_eq!(warned.ok()["spec"]["replicas"], 1);
        assert!(
            warnings(&send(&server, format, "fieldValidation=Ignore", &body.to_string()).await).is_empty()
        );
        let strict = send(&server, format, "fieldValidation=Strict", &body.to_string()).await.failure();
        assert_eq!((&strict["code"], &strict["reason"]), (&json!(422), &json!("Invalid")), "{format}");
        let cause = &strict["details"]["causes"][0];
        assert_eq!((&cause["field"], &cause["reason"]), (&json!("patch"), &json!("FieldValueInvalid")));
        let message = cause["message"].as_str().expect("text");
        assert!(message.ends_with(&format!(": strict decoding error: {unknown}")), "{message}");
        let shown = if format == STRATEGIC { "\"map[spec:map[Replicas:2]]\"" } else { "\\\"Replicas\\\":2" };
        assert!(message.starts_with("Invalid value: \"") && message.contains(shown), "{message}");
    }
    let operations = r#"[{"op":"test","path":"/spec/replicas","value":1,"foo":1},
        {"op":"test","path":"/x","path":"/spec/replicas","value":1},
        {"op":"add","path":"/metadata/labels","value":{"a":"1","a":"2"}}]"#;
    let told = [
        "json patch unknown field \"[0].foo\"",
        "json patch duplicate field \"[1].path\"",
        "json patch duplicate field \"[2].value.a\"",
    ];
    let warned = send(&server, JSON, "dryRun=All", operations).await;
    assert_eq!(warnings(&warned), as_headers(&told));
    assert_eq!(warned.ok()["metadata"]["labels"], json!({"a": "2"}));
    let strict = send(&server, JSON, "fieldValidation=Strict", operations).await.failure();
    let message = strict["message"].as_str().expect("text");
    assert!(message.ends_with(&format!("strict decoding error: {}", told.join(", "))), "{message}");
}

async fn patch_apply_70_repeated_members(setup: Setup) {
    let server = setup.start().await;
    let text =
        web().to_string().replacen("\"replicas\":1", "\"paused\":true,\"x\":1,\"x\":2,\"paused\":false", 1);
    let post = |query: &'static str, media: &'static str, text: String| {
        server.request(Method::POST, format!("{DEPLOYMENTS}?{query}")).body(media, text)
    };
    let strict = post("fieldValidation=Strict", "application/json", text.clone()).await;
    strict.bad_request(&format!("{REFUSED}unknown field \"spec.x\", duplicate field \"spec.paused\""));
    let yaml = "\
metadata:
  name: web
spec:
  selector: {matchLabels: {app: web}}
  paused: false
  paused: true
  foo: 1
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: app
        image: nginx
        name: app
";
    let strict = post("fieldValidation=Strict", "application/yaml", yaml.to_owned()).await;
    strict.bad_request(&format!(
        "{REFUSED}yaml: unmarshal errors:\n  line 6: key \"paused\" already set in map\n  \
         line 14: key \"name\" already set in map, unknown field \"spec.foo\""
    ));
    let warned = post("", "application/yaml", yaml.to_owned()).await;
    let told = [
        "line 6: key \"paused\" already set in map",
        "line 14: key \"name\" already set in map",
        "unknown field \"spec.foo\"",
    ];
    assert_eq!((warned.status, warnings(&warned)), (201, as_headers(&told)));
    for format in [MERGE, STRATEGIC] {
        let warned = send(&server, format, "", r#"{"spec":{"replicas":1,"replicas":2}}"#).await;
        assert_eq!(warnings(&warned), as_headers(&["duplicate field \"spec.replicas\""]), "{format}");
        assert_eq!(warned.ok()["spec"]["replicas"], 2);
    }
}

async fn patch_apply_71_applies(setup: Setup) {
    let server = setup.start().await;
    let c = format!("{CONFIGMAPS}/c");
    let body = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  a: one\n  a: two\n";
    let apply = |manager: &str, validation: &str| {
        let path = format!("{c}?fieldManager={manager}&fieldValidation={validation}");
        server.request(Method::PATCH, path).body(APPLY, body)
    };
    let repeated = "line 6: key \"a\" already set in map";
    let strict = apply("m", "Strict").await;
    strict.bad_request(&format!(
        "error strict decoding patch: error converting YAML to JSON: yaml: unmarshal errors:\n  {repeated}"
    ));
    let warned = apply("m", "Warn").await;
    assert_eq!((warned.status, warnings(&warned)), (201, as_headers(&[repeated])));
    assert_eq!(warned.json()["data"]["a"], "two");
    assert!(warnings(&apply("m", "Ignore").await).is_empty());
    server.put(&c, &json!({"metadata": {"name": "c"}, "data": {"a": "z"}})).await.ok();
    assert_eq!(apply("m", "Strict").await.failure()["code"], 409);
    // JSON is YAML, in one line.
    let path = format!("{c}?fieldManager=m&force=1");
    let json = r#"{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"x","a":"y"}}"#;
    let warned = server.request(Method::PATCH, path).body(APPLY, json).await;
    assert_eq!(warnings(&warned), as_headers(&["line 1: key \"a\" already set in map"]));
}

async fn patch_apply_72_order_and_size(setup: Setup) {
    let server = setup.start().await;
    server.post(DEPLOYMENTS, &web()).await.expect(201);
    let strict =
        send(&server, STRATEGIC, "fieldValidation=Strict", r#"{"spec":{"b":1,"a":1}}"#).await.failure();
    assert_eq!(strict["code"], 422);
    let message = strict["message"].as_str().expect("text");
    assert!(
        message.ends_with("strict decoding error: unknown field \"spec.a\", unknown field \"spec.b\""),
        "{message}"
    );
    let members: Vec<String> = (0..40).map(|n| format!("\"{n:02}{}\":1", "x".repeat(1000))).collect();
    let body = format!("{{\"spec\":{{{}}}}}", members.join(","));
    let warned = warnings(&send(&server, MERGE, "", &body).await);
    assert_eq!(warned.len(), 16);
    assert!(warned[0].starts_with("299 - \"unknown field \\\"spec.00x"), "{}", warned[0]);
    let text = |header: &String| header.trim_start_matches("299 - ").trim_matches('"').replace('\\', "");
    assert!(warned.iter().all(|header| text(header).chars().count() == 256), "{warned:?}");
}

async fn unknown_members_are_not_stored(setup: Setup) {
    let server = setup.start().await;
    server.post(format!("{DEPLOYMENTS}?fieldValidation=Ignore"), &typo()).await.expect(201);
    let stored = server.get(WEB).await.ok();
    assert_eq!(stored["spec"].get("foo"), None);
    assert_eq!(stored["spec"]["template"]["spec"]["containers"][0].get("imagePullpolicy"), None);
    // Nobody owns what is not there.
    assert!(!stored["metadata"]["managedFields"].to_string().contains("f:foo"));
    // A Scale has a type of its own.
    let scale = json!({"metadata": {"name": "web"}, "spec": {"replicas": 2, "foo": 1}});
    let put = server.put(format!("{WEB}/scale?fieldValidation=Strict"), &scale).await;
    put.bad_request(
        "Scale in version \"v1\" cannot be handled as a Scale: strict decoding error: unknown field \"spec.foo\"",
    );
    let path = format!("{WEB}/scale");
    let patched = server.request(Method::PATCH, path).body(MERGE, r#"{"spec":{"Replicas":3}}"#).await;
    assert_eq!(warnings(&patched), as_headers(&["unknown field \"spec.Replicas\""]));
    assert_eq!(patched.ok()["spec"]["replicas"], 1);
}
