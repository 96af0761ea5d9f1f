//! Watches and streams end with the right or the credential that let them in.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use http_body_util::BodyExt as _;
use rowplane::wall_clock::WallClock;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::connect::proxies::{SERVICE, with_service};
use super::connect::streams::upgrade_on;
use crate::support::client::{Client, Watch, connect_as_nobody, patient};
use crate::support::database::Database;
use crate::support::kubelet::Kubelet;
use crate::support::server::{CONFIGMAPS, Setup, TestServer};

on_every_store! {
    a_watch_ends_with_its_right,
    a_watch_that_sees_nothing_ends_as_well,
    a_watch_ends_with_what_its_token_names,
    a_watch_ends_with_its_line_of_the_token_file,
    a_watch_in_anothers_name_ends_with_the_right_to_that,
    streams_end_with_their_right,
}

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/t";
const ACCOUNTS: &str = "/api/v1/namespaces/t/serviceaccounts";
const SECRETS: &str = "/api/v1/namespaces/t/secrets";
const PODS: &str = "/api/v1/namespaces/t/pods";
const POD: &str = "/api/v1/namespaces/t/pods/p";

fn tokens(lines: &[&str]) -> String {
    let root = "root-token,root,,system:masters";
    lines.iter().chain([&root]).map(|line| format!("{line}\n")).collect()
}

async fn start(setup: &Setup) -> TestServer {
    let lines = ["alice-token,alice,", "bob-token,bob,,devs", "carol-token,carol,"];
    setup.replace("tokens.csv", &tokens(&lines));
    setup.start().await
}

/// Makes a Role with one rule, and a RoleBinding, of one name.
async fn allow(server: &TestServer, name: &str, verbs: &[&str], resources: &[&str], subject: Value) {
    let rules = json!([{"apiGroups": [""], "resources": resources, "verbs": verbs}]);
    let role = json!({"metadata": {"name": name}, "rules": rules});
    server.post(format!("{RBAC}/roles"), &role).await.expect(201);
    let role_ref = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name});
    let binding = json!({"metadata": {"name": name}, "roleRef": role_ref, "subjects": [subject]});
    server.post(format!("{RBAC}/rolebindings"), &binding).await.expect(201);
}

fn user(name: &str) -> Value {
    json!({"kind": "User", "name": name})
}

fn robot() -> Value {
    json!({"kind": "ServiceAccount", "name": "robot", "namespace": "t"})
}

/// A watch of ConfigMaps, which has begun.
async fn watch(server: &TestServer, client: &Client) -> Watch {
    let begin = format!("begin-{}", rand::random::<u64>());
    let mut watch = client.watch(format!("{CONFIGMAPS}?watch=1&fieldSelector=metadata.name!=x")).await;
    server.create(&begin, json!({})).await;
    while watch.next().await.expect("an event")["object"]["metadata"]["name"] != begin.as_str() {}
    watch
}

/// The next event is the error with this code, and the last one, but for those by which other watches have begun.
async fn ends(mut watch: Watch, code: u16) {
    let status = loop {
        let event = watch.next().await.expect("an error");
        let name = event["object"]["metadata"]["name"].as_str().unwrap_or_default();
        if !name.starts_with("begin-") {
            assert_eq!(event["type"], "ERROR", "{event}");
            break event["object"].clone();
        }
    };
    assert_eq!((&status["kind"], &status["code"]), (&json!("Status"), &json!(code)), "{status}");
    watch.expect_end().await;
}

async fn a_watch_ends_with_its_right(setup: Setup) {
    let server = start(&setup).await;
    allow(&server, "alice", &["watch"], &["configmaps"], user("alice")).await;
    allow(&server, "devs", &["watch"], &["configmaps"], json!({"kind": "Group", "name": "devs"})).await;
    allow(&server, "carol", &["watch"], &["configmaps"], user("carol")).await;
    let [alice, bob, carol] = ["alice-token", "bob-token", "carol-token"].map(|token| server.token(token));
    let (of_alice, mut of_bob, mut of_carol) =
        (watch(&server, &alice).await, watch(&server, &bob).await, watch(&server, &carol).await);
    server.delete(format!("{RBAC}/rolebindings/alice")).await.ok();
    server.create("after-the-binding", json!({"k": "secret"})).await;
    ends(of_alice, 403).await;
    assert_eq!(alice.get(format!("{CONFIGMAPS}?watch=1")).await.status, 403);
    loop {
        if of_bob.expect("ADDED").await["metadata"]["name"] == "after-the-binding" {
            break;
        }
    }
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["watch"]}]);
    server.patch(format!("{RBAC}/roles/devs"), &json!({"rules": rules})).await.ok();
    server.create("after-the-role", json!({"k": "secret"})).await;
    ends(of_bob, 403).await;
    // Carol lost nothing.
    loop {
        let event = of_carol.next().await.expect("an event");
        assert_eq!(event["type"], "ADDED", "{event}");
        if event["object"]["metadata"]["name"] == "after-the-role" {
            break;
        }
    }
}

async fn a_watch_that_sees_nothing_ends_as_well(setup: Setup) {
    let server = start(&setup).await;
    allow(&server, "alice", &["watch"], &["secrets"], user("alice")).await;
    let quiet = server.token("alice-token").watch(format!("{SECRETS}?watch=1&resourceVersion=0")).await;
    server.delete(format!("{RBAC}/rolebindings/alice")).await.ok();
    ends(quiet, 403).await;
}

async fn a_watch_ends_with_what_its_token_names(setup: Setup) {
    let server = start(&setup).await;
    let token = async |bound: Value| {
        let request = json!({"spec": {"boundObjectRef": bound}});
        let made = server.post(format!("{ACCOUNTS}/robot/token"), &request).await.expect(201);
        made["status"]["token"].as_str().expect("a token").to_owned()
    };
    server.post(ACCOUNTS, &json!({"metadata": {"name": "robot"}})).await.expect(201);
    allow(&server, "robot", &["watch"], &["configmaps"], robot()).await;
    let spec = json!({"serviceAccountName": "robot", "containers": [{"name": "c", "image": "i"}]});
    server.post(PODS, &json!({"metadata": {"name": "p"}, "spec": spec})).await.expect(201);
    server.post(SECRETS, &json!({"metadata": {"name": "s"}})).await.expect(201);
    let of_pod = token(json!({"apiVersion": "v1", "kind": "Pod", "name": "p"})).await;
    let of_secret = token(json!({"apiVersion": "v1", "kind": "Secret", "name": "s"})).await;
    let of_account = token(Value::Null).await;
    let mut watches = Vec::new();
    for token in [of_pod, of_secret, of_account] {
        watches.push(watch(&server, &server.token(&token)).await);
    }
    for (ended, path) in
        [POD.to_owned(), format!("{SECRETS}/s"), format!("{ACCOUNTS}/robot")].iter().enumerate()
    {
        let mut of_ended = watches.remove(0);
        server.delete(path).await.ok();
        // Each watch has seen what the others have begun with, and nothing else.
        let last = server.create(&format!("after-{ended}"), json!({"k": "secret"})).await;
        let error = loop {
            let event = of_ended.next().await.expect("an event");
            assert_ne!(event["object"]["metadata"]["uid"], last["metadata"]["uid"], "{event}");
            if event["type"] == "ERROR" {
                break event;
            }
        };
        assert_eq!(error["object"]["code"], 401, "{error}");
        of_ended.expect_end().await;
    }
}

async fn a_watch_ends_with_its_line_of_the_token_file(setup: Setup) {
    let server = start(&setup).await;
    allow(&server, "alice", &["watch"], &["configmaps"], user("alice")).await;
    allow(&server, "carol", &["watch"], &["configmaps"], user("carol")).await;
    let of_alice = watch(&server, &server.token("alice-token")).await;
    let mut of_carol = watch(&server, &server.token("carol-token")).await;
    setup.replace("tokens.csv", &tokens(&["other-token,alice,", "carol-token,carol,"]));
    server.reload_credentials().await;
    server.create("afterwards", json!({})).await;
    ends(of_alice, 401).await;
    of_carol.expect_named("ADDED", "afterwards").await;
}

async fn a_watch_in_anothers_name_ends_with_the_right_to_that(setup: Setup) {
    let server = start(&setup).await;
    allow(&server, "alice", &["watch"], &["configmaps"], user("alice")).await;
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let rules = json!([{"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"]}]);
    let role = json!({"metadata": {"name": "stand-in"}, "rules": rules});
    server.post(format!("{rbac}/clusterroles"), &role).await.expect(201);
    let role_ref =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "stand-in"});
    let binding = json!({"metadata": {"name": "stand-in"}, "roleRef": role_ref, "subjects": [user("carol")]});
    server.post(format!("{rbac}/clusterrolebindings"), &binding).await.expect(201);
    let carol = server.token("carol-token");
    let watched =
        carol.get(format!("{CONFIGMAPS}?watch=1")).header("impersonate-user", "alice").watch().await;
    server.delete(format!("{rbac}/clusterrolebindings/stand-in")).await.ok();
    ends(watched, 403).await;
}

async fn streams_end_with_their_right(mut setup: Setup) {
    let headers = "Connection: Upgrade\r\nUpgrade: SPDY/3.1";
    let kubelet = Kubelet::start(move |head, mut stream| async move {
        let is_log = head.line.contains("containerLogs");
        let answer = match is_log {
            true => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nfirst\n\r\n".to_owned(),
            false => format!("HTTP/1.1 101 Switching Protocols\r\n{headers}\r\n\r\n"),
        };
        stream.write_all(answer.as_bytes()).await.expect("written");
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
    })
    .await;
    setup.replace("tokens.csv", &tokens(&["alice-token,alice,"]));
    let server = with_service(&mut setup, &kubelet).await;
    kubelet.join(&server, &["c"]).await;
    let resources = ["pods/exec", "pods/attach", "pods/portforward", "pods/log", "services/proxy"];
    allow(&server, "alice", &["get", "create"], &resources, user("alice")).await;
    let of_alice = format!("{headers}\r\nAuthorization: Bearer alice-token");
    let mut streams = Vec::new();
    for line in [
        format!("POST {POD}/exec"),
        format!("POST {POD}/attach"),
        format!("POST {POD}/portforward"),
        format!("GET {SERVICE}/x"),
    ] {
        let stream = connect_as_nobody(&server.kubeconfig, "http/1.1").await.expect("a connection");
        let (stream, head) = upgrade_on(stream, &line, &of_alice).await;
        assert_eq!(head.line, "HTTP/1.1 101 Switching Protocols", "{line}");
        streams.push(stream);
    }
    let log = server.token("alice-token").get(format!("{POD}/log?follow=true")).send().await;
    assert_eq!(log.status(), 200);
    let mut log = log.into_body();
    patient("a line", log.frame()).await.expect("a frame").expect("no error");
    server.delete(format!("{RBAC}/rolebindings/alice")).await.ok();
    for mut stream in streams {
        let mut rest = Vec::new();
        let _ = patient("the end", stream.read_to_end(&mut rest)).await;
    }
    assert!(patient("the end", log.collect()).await.is_err(), "the log looks complete");
}

/// A right that ends with time is found without any change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_ends_with_the_time_of_its_token() {
    let mut setup = Setup::new(Database::memory());
    let seconds = Arc::new(AtomicU64::new(0));
    let ahead = seconds.clone();
    setup.clock =
        WallClock::new(move || SystemTime::now() + Duration::from_secs(ahead.load(Ordering::SeqCst)));
    let server = start(&setup).await;
    server.post(ACCOUNTS, &json!({"metadata": {"name": "robot"}})).await.expect(201);
    allow(&server, "robot", &["watch"], &["configmaps"], robot()).await;
    let made = server.post(format!("{ACCOUNTS}/robot/token"), &json!({"spec": {}})).await.expect(201);
    let token = made["status"]["token"].as_str().expect("a token");
    let watch = watch(&server, &server.token(token)).await;
    seconds.store(2 * 60 * 60, Ordering::SeqCst);
    ends(watch, 401).await;
}
