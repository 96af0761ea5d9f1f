//! `rowplane record` and `rowplane open`: the last hours of a cluster as a file, and a server over it.

use std::path::Path;
use std::process::Stdio;

use base64::Engine as _;
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::support::client::{Client, Protocol};
use crate::support::server::{CONFIGMAPS, Setup, names, rv};

on_every_store! {
    a_recording_is_the_cluster_until_its_end,
    a_redacted_recording_holds_no_secret,
}

const SECRETS: &str = "/api/v1/namespaces/t/secrets";
const WHEELS: &str = "/apis/example.com/v1/namespaces/t/wheels";

/// Runs the program as the admin, and returns its output.
async fn printed(setup: &Setup, arguments: &[&str]) -> (String, i32) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rowplane"));
    command.args(arguments).env("KUBECONFIG", setup.file("admin.kubeconfig")).env("TZ", "UTC");
    let output = command.output().await.expect("it runs");
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("text")).concat();
    (text, output.status.code().expect("a code"))
}

/// A server over a recording, and a client of it.
struct Opened {
    child: Child,
    client: Client,
    stop: std::path::PathBuf,
}

impl Opened {
    async fn of(file: &Path) -> Self {
        let kubeconfig = file.with_extension("kubeconfig");
        let stop = file.with_extension("stop");
        // The command beside the server shows where it is, and ends when it is told to.
        let script = "cp \"$KUBECONFIG\" \"$1.new\" && mv \"$1.new\" \"$1\"; while [ ! -e \"$2\" ]; do sleep 0.1; done";
        let mut command = Command::new(env!("CARGO_BIN_EXE_rowplane"));
        command.arg("open").arg(file).args(["--", "sh", "-c", script, "sh"]).arg(&kubeconfig).arg(&stop);
        let mut child = command.stdin(Stdio::null()).kill_on_drop(true).spawn().expect("it runs");
        while !kubeconfig.exists() {
            assert_eq!(child.try_wait().expect("a state"), None, "it has ended");
            tokio::task::yield_now().await;
        }
        let read = kube::config::Kubeconfig::read_from(&kubeconfig).expect("a kubeconfig");
        let client = Client::of_certificate(&read, Protocol::Any);
        Self { child, client, stop }
    }

    async fn close(mut self) {
        std::fs::write(&self.stop, "").expect("a file");
        assert!(self.child.wait().await.expect("it ends").success());
    }
}

async fn a_recording_is_the_cluster_until_its_end(setup: Setup) {
    let server = setup.start().await;
    let definition = json!({
        "metadata": {"name": "wheels.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "wheels", "kind": "Wheel"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"size": {"type": "integer"}}}}}]},
    });
    server.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await.expect(201);
    server.get(WHEELS).await.ok();
    server.create("before", json!({"n": "0"})).await;
    let since = server.revision().await;
    server.create("a", json!({"n": "1"})).await;
    let wheel =
        json!({"apiVersion": "example.com/v1", "kind": "Wheel", "metadata": {"name": "w"}, "size": 3});
    server.post(WHEELS, &wheel).await.expect(201);
    let then = server.revision().await;
    server.set("a", json!({"n": "2"})).await;
    server.remove("before").await;
    let file = setup.file("cluster.rec");
    let shown = file.to_str().expect("a path");
    let (text, code) = printed(&setup, &["record", "--since", &format!("rv-{since}"), shown]).await;
    assert_eq!(code, 0, "{text}");
    let last = server.revision().await;
    assert!(text.contains(&format!("from revision {since} to {last}")), "{text}");
    assert_eq!(printed(&setup, &["record", "--since", "1s", shown]).await.1, 2);

    let opened = Opened::of(&file).await;
    let paths = [
        CONFIGMAPS,
        WHEELS,
        "/api/v1/namespaces",
        SECRETS,
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    ];
    for path in paths {
        for (door, at) in
            [("".to_owned(), last), (format!("/asof/rv-{then}"), then), (format!("/asof/rv-{since}"), since)]
        {
            let original = server.get(format!("/asof/rv-{at}{path}")).await.ok();
            let recorded = opened.client.get(format!("{door}{path}")).await.ok();
            assert_eq!(recorded["items"], original["items"], "{door}{path}");
            assert_eq!(rv(&recorded), at, "{door}{path}");
        }
    }
    assert_eq!(
        names(&opened.client.get(format!("/ask{CONFIGMAPS}?fieldSelector=data.n%3D2")).await.ok()),
        ["a"]
    );
    let older = opened.client.get(format!("/asof/rv-{}{CONFIGMAPS}", since - 1)).await.failure();
    assert_eq!(older["code"], 410, "{older}");
    // Who has done it, by history and by SQL.
    let history = opened.client.get(format!("/history{CONFIGMAPS}/a")).await.ok();
    let of = |document: &Value, name: &str| -> Vec<Value> {
        document["items"].as_array().expect("items").iter().map(|entry| entry[name].clone()).collect()
    };
    let original = server.get(format!("/history{CONFIGMAPS}/a")).await.ok();
    for name in ["revision", "time", "event", "user", "manager", "verb", "changed", "uid"] {
        assert_eq!(of(&history, name), of(&original, name), "{name}");
    }
    let query = json!({"query": "SELECT name, data->>'n' FROM configmaps WHERE namespace = 't' AND name IN ('a', 'before')"});
    let rows = opened.client.post("/rowplane/sql", &query).await;
    assert!(rows.text().contains("[\"a\",\"2\"]") && !rows.text().contains("before"), "{}", rows.text());
    // Nothing can be changed, and the answer says why.
    for refused in [
        opened.client.post(CONFIGMAPS, &json!({"metadata": {"name": "new"}})).await,
        opened.client.delete(format!("{CONFIGMAPS}/a")).await,
        opened.client.delete(CONFIGMAPS).await,
        opened.client.patch(format!("{CONFIGMAPS}/a"), &json!({"data": {"n": "3"}})).await,
    ] {
        let refused = refused.failure();
        assert_eq!(refused["code"], 403, "{refused}");
        assert!(refused["message"].as_str().is_some_and(|text| text.contains(shown)), "{refused}");
    }
    opened.close().await;
}

async fn a_redacted_recording_holds_no_secret(setup: Setup) {
    const PLANTED: [&str; 4] = ["planted-before", "planted-later", "planted-by-apply", "planted-gone"];
    let server = setup.start().await;
    let encoded = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let secret = |name: &str, value: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {"password": encoded(value)}});
    server.post(SECRETS, &secret("old", PLANTED[0])).await.expect(201);
    server.post(SECRETS, &secret("gone", PLANTED[3])).await.expect(201);
    let since = server.revision().await;
    server.put(format!("{SECRETS}/old"), &secret("old", PLANTED[1])).await.ok();
    let mut applied = secret("applied", PLANTED[2]);
    let copy = json!({"stringData": {"password": PLANTED[2]}, "data": applied["data"]}).to_string();
    applied["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": copy});
    server.post(SECRETS, &applied).await.expect(201);
    server.delete(format!("{SECRETS}/gone")).await.ok();
    let file = setup.file("redacted.rec");
    let shown = file.to_str().expect("a path");
    let all = setup.file("all.rec");
    let since = format!("rv-{since}");
    let (text, code) = printed(&setup, &["record", "--redact", "--since", &since, shown]).await;
    assert_eq!(code, 0, "{text}");
    let (text, code) = printed(&setup, &["record", "--since", &since, all.to_str().expect("a path")]).await;
    assert_eq!(code, 0, "{text}");
    let (bytes, all) = (std::fs::read(&file).expect("a file"), std::fs::read(&all).expect("a file"));
    let has = |bytes: &[u8], text: &str| memchr::memmem::find(bytes, text.as_bytes()).is_some();
    for planted in PLANTED {
        // The search finds what is there.
        assert!(has(&all, &encoded(planted)), "{planted}");
        assert!(!has(&bytes, planted) && !has(&bytes, &encoded(planted)), "{planted}");
    }
    let opened = Opened::of(&file).await;
    let found = opened.client.get(format!("{SECRETS}/applied")).await.ok();
    assert_eq!(found["data"], json!({"password": ""}), "{found}");
    opened.close().await;
}
