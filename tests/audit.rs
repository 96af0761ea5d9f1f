//! Audit over real HTTPS: events, backends, and what a full disk or a crash leaves of them.

#[macro_use]
mod support;

#[allow(dead_code, reason = "it can do more than collect events")]
#[path = "api/custom_resources/hook.rs"]
mod hook;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use futures_util::future::join_all;
use http::Method;
use kube::config::Kubeconfig;
use rowplane::audit::config::{
    Batching, Config, DatabaseConfig, Delivery, LogConfig, LogFormat, LogTarget, Mode, Rotation, Throttle,
    WebhookConfig,
};
use rowplane::storage::{AuditQuery, AuditRemoval, AuditRing};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::hook::Hook;
use crate::support::client::{connect, connect_as_nobody};
use crate::support::database::Database;
use crate::support::postgres::Schema;
use crate::support::process::Installation;
use crate::support::server::{CONFIGMAPS, Setup, TestServer, config_map};

const LOG: &str = "audit.log";
const POLICY: &str = "audit-policy.yaml";
const EVERYTHING: &str = "
- {level: Metadata, resources: [{group: '', resources: [secrets]}]}
- {level: RequestResponse}";

fn batching() -> Batching {
    Batching { buffer: 10_000, largest: 1, wait: Duration::ZERO, throttle: None::<Throttle>, overlap: false }
}

fn write_policy(setup: &Setup, rules: &str) -> PathBuf {
    let path = setup.file(POLICY);
    let text = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:{rules}\n");
    std::fs::write(&path, text).expect("writes");
    path
}

/// Lets the setup's servers write events to a file in its directory.
fn audited(mut setup: Setup, mode: Mode, rules: &str) -> Setup {
    let path = setup.file(LOG);
    logging_to(&mut setup, path, mode, rules);
    setup
}

fn logging_to(setup: &mut Setup, path: PathBuf, mode: Mode, rules: &str) {
    let rotation = Rotation { largest: 0, days: 0, backups: 0, compress: false };
    setup.audit = Config {
        policy_file: Some(write_policy(setup, rules)),
        log: Some(LogConfig {
            target: LogTarget::File { path, rotation },
            format: LogFormat::Json,
            delivery: Delivery { mode, batches: batching(), truncation: None },
        }),
        ..Config::default()
    };
}

fn events(setup: &Setup) -> Vec<Value> {
    let text = std::fs::read_to_string(setup.file(LOG)).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("an event")).collect()
}

fn of(events: &[Value], id: &str) -> Vec<Value> {
    events.iter().filter(|event| event["auditID"] == id).cloned().collect()
}

/// Replaces what differs from server to server, and from run to run.
fn normalized(mut event: Value) -> Value {
    for field in ["requestReceivedTimestamp", "stageTimestamp", "userAgent"] {
        event.as_object_mut().expect("an event").remove(field);
    }
    normalize(&mut event, "");
    event
}

fn normalize(value: &mut Value, parent: &str) {
    const VARYING: [&str; 5] = ["uid", "resourceVersion", "creationTimestamp", "time", "manager"];
    match value {
        Value::Object(members) => {
            for (name, value) in members.iter_mut() {
                if VARYING.contains(&name.as_str()) {
                    *value = json!("…");
                } else {
                    normalize(value, name);
                }
            }
            // The texts of columns are rowplane's own.
            members.remove("columnDefinitions");
        }
        Value::Array(items) => {
            if parent == "items" {
                items.retain(|item| item["metadata"]["name"] != "kube-root-ca.crt");
            }
            items.iter_mut().for_each(|item| normalize(item, ""));
        }
        _ => {}
    }
}

/// The requests of `testdata/audit`, which a kube-apiserver 1.37.2 has recorded (`tests/upstream/audit/record`).
async fn ask_everything(server: &TestServer) {
    for line in include_str!("../testdata/audit/requests.jsonl").lines() {
        let asked: Value = serde_json::from_str(line).expect("a request");
        let text = |member: &str| asked[member].as_str().unwrap_or_default();
        let client = match asked["token"].as_str().unwrap_or("root-token") {
            "" => server.anonymous(),
            token => server.token(token),
        };
        let method = text("method").parse::<Method>().expect("a method");
        let mut request = client.request(method, text("path")).header("audit-id", text("id"));
        if let Some(addresses) = asked["headers"]["x-forwarded-for"].as_str() {
            request = request.header("x-forwarded-for", addresses);
        }
        if !text("media").is_empty() {
            request = request.body(text("media"), text("body").to_owned());
        }
        assert_eq!(request.await.header("audit-id"), Some(text("id")));
    }
}

/// 86, 87, 89: field by field.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a086_a087_a089_events_are_those_of_a_real_server() {
    let setup = audited(Setup::new(Database::memory()), Mode::Blocking, EVERYTHING);
    let server = setup.start_empty().await;
    ask_everything(&server).await;
    server.stop().await;
    let recorded = events(&setup);
    let expected = include_str!("../testdata/audit/events.jsonl");
    let expected: Vec<Value> =
        expected.lines().map(|line| serde_json::from_str(line).expect("an event")).collect();
    for id in [
        "a401",
        "create",
        "conflict",
        "secret",
        "patch",
        "apply",
        "get",
        "list",
        "notfound",
        "watch",
        "delete",
        "deletecollection",
        "version",
        "bad",
        "path404",
        "review",
    ] {
        let normalized = |events: Vec<Value>| events.into_iter().map(normalized).collect::<Vec<_>>();
        let (mut found, mut expected) = (normalized(of(&recorded, id)), normalized(of(&expected, id)));
        if id == "review" {
            // A review that is never stored has managed fields there.
            for event in found.iter_mut().chain(&mut expected) {
                event.as_object_mut().expect("an event").remove("responseObject");
            }
        }
        assert_eq!(found, expected, "{id}");
    }
}

/// Lines are written for several answers together, and all the same whoever has an answer finds its events in the log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_leave_after_their_lines() {
    let setup = audited(Setup::new(Database::memory()), Mode::Blocking, EVERYTHING);
    let server = setup.start_empty().await;
    let client = server.token("root-token");
    let path = format!("{CONFIGMAPS}/c");
    let ask = async |number: usize| {
        for turn in 0..10 {
            let (id, method) = (format!("{number}-{turn}"), number % 4);
            let request = match method {
                0 => client
                    .request(Method::POST, CONFIGMAPS)
                    .body("application/json", config_map(&id, json!({})).to_string()),
                1 => client.get(CONFIGMAPS),
                _ => client.get(&path),
            };
            request.header("audit-id", &id).await;
            let text = std::fs::read_to_string(setup.file(LOG)).expect("a log");
            let id = format!("\"auditID\":\"{id}\"");
            let stages = text.split_inclusive('\n').filter(|line| line.contains(&id) && line.ends_with('\n'));
            assert_eq!(stages.count(), 2, "{id}");
        }
    };
    join_all((0..16).map(ask)).await;
    server.stop().await;
}

/// 85.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a085_without_a_policy_there_are_ids_and_no_events() {
    let setup = Setup::new(Database::memory());
    let server = setup.start().await;
    let answer = server.get(CONFIGMAPS).header("audit-id", "mine").await;
    assert_eq!(answer.header("audit-id"), Some("mine"));
    let own = server.get(CONFIGMAPS).await;
    assert_eq!(own.header("audit-id").map(str::len), Some(36));
    assert!(!setup.file(LOG).exists());
}

/// 88, 90: what a policy leaves out, before and after it was changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a088_a090_policies_choose_and_are_read_again() {
    let rules = "\n- {level: None, verbs: [get]}\n- {level: Metadata, omitStages: [RequestReceived]}";
    let setup = audited(Setup::new(Database::memory()), Mode::Blocking, rules);
    let server = setup.start().await;
    let get = async |id: &str| server.get(CONFIGMAPS.to_owned() + "/x").header("audit-id", id).await;
    get("silent").await;
    server.get(CONFIGMAPS).header("audit-id", "loud").await;
    write_policy(&setup, "\n- {level: Wrong}");
    server.reload_credentials().await;
    get("silent").await;
    write_policy(&setup, "\n- {level: Metadata}");
    server.reload_credentials().await;
    get("now loud").await;
    server.stop().await;
    let recorded = events(&setup);
    assert!(of(&recorded, "silent").is_empty());
    let stages = |id: &str| of(&recorded, id).iter().map(|event| event["stage"].clone()).collect::<Vec<_>>();
    assert_eq!(stages("loud"), ["ResponseComplete"]);
    assert_eq!(stages("now loud"), ["RequestReceived", "ResponseComplete"]);
}

/// 92.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a092_a_full_disk_stops_only_strict_servers() {
    for (mode, status) in [(Mode::Blocking, 200), (Mode::BlockingStrict, 500)] {
        let mut setup = Setup::new(Database::memory());
        logging_to(&mut setup, "/dev/full".into(), mode, "\n- {level: Metadata, verbs: [list]}");
        let server = setup.start().await;
        let answer = server.get(CONFIGMAPS).await;
        assert_eq!(answer.status, status);
        if status == 500 {
            let text = format!("Internal Server Error: \"{CONFIGMAPS}\": failed to store audit event\n");
            assert_eq!(answer.text(), text);
        }
        let metrics = server.get("/metrics").await.text();
        assert!(metrics.contains("apiserver_audit_error_total{plugin=\"log\"}"), "{metrics}");
        let rejected = format!("apiserver_audit_requests_rejected_total {}", u8::from(status == 500));
        assert!(metrics.contains(&rejected), "{metrics}");
        server.stop().await;
    }
}

/// 94: the body of one request takes its time, and nothing else tells that half a second has passed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a094_slow_requests_say_how_long_they_took() {
    let setup = audited(Setup::new(Database::memory()), Mode::Blocking, "\n- {level: Metadata}");
    let server = setup.start().await;
    let body = config_map("slow", json!({})).to_string();
    let head = format!(
        "POST {CONFIGMAPS} HTTP/1.1\r\nhost: kubernetes\r\naudit-id: slow\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{{",
        body.len()
    );
    let mut stream = connect(&server.kubeconfig, "http/1.1").await.expect("a connection");
    stream.write_all(head.as_bytes()).await.expect("sent");
    stream.flush().await.expect("sent");
    tokio::time::sleep(Duration::from_millis(600)).await;
    stream.write_all(&body.as_bytes()[1..]).await.expect("sent");
    stream.flush().await.expect("sent");
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).await.expect("an answer");
    assert_eq!(line, "HTTP/1.1 201 Created\r\n");
    server.get(CONFIGMAPS).header("audit-id", "fast").await;
    server.stop().await;
    let total = |id: &str| {
        let last = of(&events(&setup), id).pop().expect("an event");
        last["annotations"]["apiserver.latency.k8s.io/total"].clone()
    };
    let slow = total("slow");
    assert!(slow.as_str().is_some_and(|time| time.ends_with('s')), "{slow}");
    assert_eq!(total("fast"), Value::Null);
}

/// 91: what is buffered when the server stops.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a091_buffered_events_are_written_at_the_end() {
    let mut setup = audited(Setup::new(Database::memory()), Mode::Batch, "\n- {level: Metadata}");
    let log = setup.audit.log.as_mut().expect("a log");
    log.delivery.batches = Batching { largest: 10_000, wait: Duration::from_secs(3600), ..batching() };
    let server = setup.start().await;
    server.get(CONFIGMAPS).header("audit-id", "last").await;
    assert!(events(&setup).is_empty());
    server.stop().await;
    assert_eq!(of(&events(&setup), "last").len(), 2);
}

on_every_store! {
    the_database_knows_who_did_what,
    who_has_written_nothing_pushes_no_write_out,
    events_of_writes_are_bounded_in_bytes,
}

fn kept(setup: &mut Setup) {
    let retention = Duration::from_secs(3600);
    setup.audit = Config { database: Some(DatabaseConfig { retention, most: 1000 }), ..Config::default() };
}

fn query() -> AuditQuery {
    AuditQuery { limit: 100, ..AuditQuery::default() }
}

async fn find(server: &TestServer, query: &AuditQuery) -> Vec<Value> {
    let found = server.backend.audit_rows(query).await.expect("readable");
    found.iter().map(|event| serde_json::from_slice(event).expect("an event")).collect()
}

async fn the_database_knows_who_did_what(mut setup: Setup) {
    kept(&mut setup);
    let server = setup.start().await;
    server.post(CONFIGMAPS, &config_map("a", json!({}))).header("audit-id", "made").await.expect(201);
    server.get(format!("{CONFIGMAPS}/a")).await.ok();
    server.delete(format!("{CONFIGMAPS}/a")).header("audit-id", "gone").await.ok();
    // The event of a write is there when it is answered.
    let all = find(&server, &AuditQuery { object: Some("configmaps/t/a".into()), ..query() }).await;
    let shown: Vec<_> =
        all.iter().map(|event| (&event["auditID"], &event["responseStatus"]["code"])).collect();
    assert_eq!(shown, [(&json!("made"), &json!(201)), (&json!("gone"), &json!(200))]);
    let refused = server.token("alice-token").post(CONFIGMAPS, &config_map("b", json!({})));
    assert_eq!(refused.header("audit-id", "refused").await.status, 403);
    let TestServer { backend, .. } = &server;
    let backend = backend.clone();
    let by = |user: &str, verb: &str| AuditQuery {
        user: Some(user.into()),
        verb: Some(verb.into()),
        object: Some("configmaps".into()),
        ..query()
    };
    assert_eq!(find(&server, &by("kubernetes-admin", "delete")).await.len(), 1);
    assert_eq!(find(&server, &by("kubernetes-admin", "update")).await.len(), 0);
    // Others follow soon.
    loop {
        let refused = find(&server, &by("alice", "create")).await;
        if let [event] = refused.as_slice() {
            assert_eq!(event["responseStatus"]["code"], 403);
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let all = AuditRemoval {
        ring: AuditRing::Others,
        before: i64::MAX,
        most: u64::MAX,
        most_bytes: u64::MAX,
        limit: 100,
    };
    assert_eq!(backend.remove_audit_rows(all).await.expect("removes"), 1, "the refused one");
    let all = find(&server, &query()).await;
    // All but the newest two.
    let (ring, most_bytes) = (AuditRing::Writes, u64::MAX);
    let most = AuditRemoval { ring, before: 0, most: 2, most_bytes, limit: 1 };
    assert_eq!(backend.remove_audit_rows(most).await.expect("removes"), 1);
    while backend.remove_audit_rows(most).await.expect("removes") > 0 {}
    assert_eq!(find(&server, &query()).await, all[all.len() - 2..]);
    let old = AuditRemoval { ring, before: i64::MAX, most: u64::MAX, most_bytes, limit: 1 };
    assert_eq!(backend.remove_audit_rows(old).await.expect("removes"), 1);
    assert_eq!(backend.remove_audit_rows(old).await.expect("removes"), 1);
    assert!(find(&server, &query()).await.is_empty());
    assert!(find(&server, &query()).await.is_empty());
    server.stop().await;
}

async fn who_has_written_nothing_pushes_no_write_out(mut setup: Setup) {
    const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    kept(&mut setup);
    let server = setup.start().await;
    server.post(CONFIGMAPS, &config_map("a", json!({}))).await.expect(201);
    let review = json!({"spec": {"nonResourceAttributes": {"path": "/x", "verb": "get"}}});
    let long = format!("{CONFIGMAPS}/{}", "x".repeat(20_000));
    let (alice, wrong, nobody) = (server.token("alice-token"), server.token("wrong"), server.anonymous());
    for _ in 0..5 {
        assert_eq!(alice.delete(&long).await.status, 403);
        assert_eq!(nobody.delete(&long).await.status, 403);
        assert_eq!(wrong.delete(&long).await.status, 401);
        alice.post(REVIEWS, &review).await.expect(201);
        // Who may write, and did not.
        assert_eq!(server.delete(format!("{CONFIGMAPS}/none")).await.status, 404);
    }
    server.delete(format!("{CONFIGMAPS}/a")).await.ok();
    // Others follow soon.
    let everything = AuditQuery { limit: 1000, ..query() };
    let others = async || {
        let all = find(&server, &everything).await;
        let is_other = |event: &&Value| {
            event["responseStatus"]["code"].as_u64().is_none_or(|code| code >= 400)
                || event["objectRef"]["resource"] == "selfsubjectaccessreviews"
        };
        all.iter().filter(is_other).cloned().collect::<Vec<_>>()
    };
    while others().await.len() < 25 {
        tokio::task::yield_now().await;
    }
    for event in others().await {
        assert!(event.to_string().len() < 10_000, "an event of {} bytes", event.to_string().len());
    }
    // What the server removes when there are more than eight events.
    let most_bytes = 3_000;
    for (ring, most_bytes) in [(AuditRing::Writes, 8 * 4096), (AuditRing::Others, most_bytes)] {
        let removal = AuditRemoval { ring, before: 0, most: 8, most_bytes, limit: 100 };
        while server.backend.remove_audit_rows(removal).await.expect("removes") > 0 {}
    }
    let kept = others().await;
    let bytes: u64 = kept.iter().map(|event| event.to_string().len() as u64).sum();
    assert!(!kept.is_empty() && kept.len() <= 8 && bytes <= most_bytes, "{bytes} bytes: {kept:?}");
    let written = AuditQuery { object: Some("configmaps/t/a".into()), ..query() };
    let verbs: Vec<Value> = find(&server, &written).await.iter().map(|event| event["verb"].clone()).collect();
    assert_eq!(verbs, ["create", "delete"]);
    server.stop().await;
}

async fn events_of_writes_are_bounded_in_bytes(mut setup: Setup) {
    kept(&mut setup);
    let server = setup.start().await;
    for name in ["a", "b", "c", "d"] {
        server.post(CONFIGMAPS, &config_map(name, json!({}))).await.expect(201);
    }
    let events = async || server.backend.audit_rows(&query()).await.expect("finds");
    let all = events().await;
    let newest = &all[all.len() - 2..];
    let most_bytes = newest.iter().map(|event| event.len() as u64).sum();
    let removal = AuditRemoval { ring: AuditRing::Writes, before: 0, most: u64::MAX, most_bytes, limit: 1 };
    while server.backend.remove_audit_rows(removal).await.expect("removes") > 0 {}
    assert_eq!(events().await, newest);
    server.stop().await;
}

/// A server without a flag for it records who did what. After a crash, every object has the event of its creation, and every
/// such event its object: on the disk they are one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_and_writes_of_sqlite_survive_together() {
    kill_under_load(Installation::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_and_writes_of_postgres_survive_together() {
    let schema = Schema::create().await;
    let database = format!("--datastore={}", schema.url());
    kill_under_load(Installation::sqlite().with(&database)).await;
}

async fn kill_under_load(installation: Installation) {
    const DEFAULT: &str = "/api/v1/namespaces/default/configmaps";
    let installation = installation.without_heartbeats();
    for round in 0..2 {
        let server = installation.start().await;
        let client = installation.client().await;
        let answered = Arc::new(AtomicU32::new(0));
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let (client, answered) = (client.clone(), answered.clone());
                tokio::spawn(async move {
                    for number in 0.. {
                        let name = format!("r{round}-w{writer}-{number}");
                        let object =
                            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
                        if client.post(DEFAULT, &object).await.is_err() {
                            return;
                        }
                        answered.fetch_add(1, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        while answered.load(Ordering::SeqCst) < 100 {
            tokio::task::yield_now().await;
        }
        server.kill().await;
        join_all(writers).await;
    }
    let server = installation.start().await;
    let listed = installation.client().await.get(DEFAULT).await.expect("an answer").ok();
    let names = listed["items"].as_array().expect("items").iter().map(|item| &item["metadata"]["name"]);
    let objects: BTreeSet<String> =
        names.filter_map(Value::as_str).filter(|name| name.starts_with('r')).map(str::to_owned).collect();
    let shown = installation
        .run(&["audit", "--object=configmaps/default", "--verb=create", "--limit=10000", "--output=json"])
        .await;
    let events = shown.lines().map(|line| serde_json::from_str::<Value>(line).expect("an event"));
    let created = events.filter(|event| event["responseStatus"]["code"] == 201);
    let created: Vec<String> =
        created.map(|event| event["objectRef"]["name"].as_str().expect("a name").to_owned()).collect();
    assert!(objects.len() >= 200);
    assert_eq!(created.len(), objects.len());
    assert_eq!(BTreeSet::from_iter(created), objects);
    server.kill().await;
}

/// Lets the setup's servers send events to the hook, at most so many at once.
fn sent_to(setup: &mut Setup, hook: &Hook, mode: Mode, largest: usize) {
    let config_file = setup.file("audit-webhook.yaml");
    let (server, ca) = (format!("https://{}/audit", hook.address), &hook.ca_bundle);
    let text = format!(
        "current-context: c\ncontexts: [{{name: c, context: {{cluster: k}}}}]\n\
         clusters: [{{name: k, cluster: {{server: '{server}', certificate-authority-data: {ca}}}}}]\n"
    );
    std::fs::write(&config_file, text).expect("writes");
    let batches = Batching { largest, wait: Duration::from_secs(3600), overlap: true, ..batching() };
    setup.audit = Config {
        policy_file: Some(write_policy(setup, "\n- {level: Metadata, verbs: [list]}")),
        webhook: Some(WebhookConfig {
            config_file,
            initial_backoff: Duration::from_millis(1),
            delivery: Delivery { mode, batches, truncation: None },
        }),
        ..Config::default()
    };
}

fn ids(lists: &[Value]) -> Vec<Vec<String>> {
    let items = |list: &Value| {
        assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("EventList"), &json!("audit.k8s.io/v1")));
        let items = list["items"].as_array().expect("items");
        assert!(items.iter().all(|item| item["kind"] == Value::Null && item["level"] == "Metadata"));
        items.iter().map(|item| item["auditID"].as_str().expect("an id").to_owned()).collect()
    };
    lists.iter().map(items).collect()
}

/// 91: full batches go out, the rest when the server stops; and what the endpoint refuses is tried again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a091_a_webhook_gets_lists_of_events() {
    let hook = Hook::start().await;
    hook.answer(200, "");
    let mut setup = Setup::new(Database::memory());
    sent_to(&mut setup, &hook, Mode::Batch, 4);
    let server = setup.start().await;
    for id in ["a", "b", "c"] {
        server.get(CONFIGMAPS).header("audit-id", id).await.ok();
    }
    hook.arrived(1).await;
    assert_eq!(ids(&hook.seen()), [["a", "a", "b", "b"]]);
    server.stop().await;
    assert_eq!(ids(&hook.seen()), [["c", "c"]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a091_a_webhook_that_fails_holds_nobody_up_and_is_tried_again() {
    let hook = Hook::start().await;
    hook.answer(500, "no");
    let mut setup = Setup::new(Database::memory());
    sent_to(&mut setup, &hook, Mode::Batch, 2);
    let server = setup.start().await;
    server.get(CONFIGMAPS).header("audit-id", "a").await.ok();
    // Five tries, and then the events are lost.
    hook.arrived(5).await;
    let lost = "apiserver_audit_error_total{plugin=\"webhook\"} 2";
    while !server.get("/metrics").await.text().contains(lost) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    hook.answer(200, "");
    server.get(CONFIGMAPS).header("audit-id", "b").await.ok();
    hook.arrived(6).await;
    assert_eq!(ids(&hook.seen()).last().expect("a list"), &["b", "b"]);
    server.stop().await;
}

/// 43.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a043_both_users_of_an_impersonation_are_recorded() {
    let setup = audited(Setup::new(Database::memory()), Mode::Blocking, "\n- {level: Metadata}");
    let server = setup.start().await;
    let answer = server.get(CONFIGMAPS).header("impersonate-user", "bob").header("audit-id", "as bob").await;
    assert_eq!(answer.status, 403);
    server.stop().await;
    let recorded = of(&events(&setup), "as bob");
    assert!(recorded[0]["impersonatedUser"].is_null());
    let last = &recorded[1];
    assert_eq!(last["user"]["username"], "kubernetes-admin");
    assert_eq!(last["impersonatedUser"], json!({"username": "bob", "groups": ["system:authenticated"]}));
    assert_eq!(last["annotations"]["authorization.k8s.io/decision"], "forbid");
    assert_eq!(last["responseStatus"]["reason"], "Forbidden");
}

/// Which credential was issued, and that a token is an old one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_are_noted() {
    let setup = audited(Setup::new(Database::memory()), Mode::Blocking, "\n- {level: Metadata}");
    let server = setup.start().await;
    let (accounts, secrets) = ("/api/v1/namespaces/t/serviceaccounts", "/api/v1/namespaces/t/secrets");
    server.post(accounts, &json!({"metadata": {"name": "robot"}})).await.expect(201);
    let path = format!("{accounts}/robot/token");
    let issued = server.post(path, &json!({})).header("audit-id", "issued").await.expect(201);
    let annotations = json!({"kubernetes.io/service-account.name": "robot"});
    let metadata = json!({"name": "old", "annotations": annotations});
    let secret = json!({"metadata": metadata, "type": "kubernetes.io/service-account-token"});
    server.post(secrets, &secret).await.expect(201);
    let token = loop {
        let secret = server.get(format!("{secrets}/old")).await.ok();
        if let Some(token) = secret["data"]["token"].as_str() {
            break STANDARD.decode(token).expect("base64");
        }
        tokio::task::yield_now().await;
    };
    let token = String::from_utf8(token).expect("a token");
    assert_eq!(server.token(&token).get("/api").header("audit-id", "used").await.status, 200);
    server.stop().await;
    let events = events(&setup);
    let of = |id| of(&events, id).pop().expect("an event")["annotations"].clone();
    let id = of("issued")["authentication.kubernetes.io/issued-credential-id"].clone();
    let claims =
        issued["status"]["token"].as_str().expect("a token").split('.').nth(1).expect("claims").to_owned();
    let claims: Value =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).expect("base64")).expect("JSON");
    assert_eq!(id, format!("JTI={}", claims["jti"].as_str().expect("an id")));
    assert_eq!(of("used")["authentication.k8s.io/legacy-token-manual-secret"], "old");
}

/// 116, at the level that logs most.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a116_logs_hold_no_secrets() {
    let installation = Installation::sqlite().with("-v=10");
    let server = installation.start().await;
    let client = installation.client().await;
    let (namespace, password) = ("/api/v1/namespaces/default", "open sesame");
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"password": password}});
    client.post(&format!("{namespace}/secrets"), &secret).await.expect("an answer").ok();
    let account = json!({"metadata": {"name": "robot"}});
    client.post(&format!("{namespace}/serviceaccounts"), &account).await.expect("an answer").ok();
    let tokens = format!("{namespace}/serviceaccounts/robot/token");
    let token = client.post(&tokens, &json!({})).await.expect("an answer").ok()["status"]["token"].clone();
    let token = token.as_str().expect("a token");
    let review = json!({"spec": {"token": token}});
    client.post("/apis/authentication.k8s.io/v1/tokenreviews", &review).await.expect("an answer").ok();
    let forged = "forged.and.refused";
    let kubeconfig = Kubeconfig::read_from(installation.kubeconfig()).expect("a kubeconfig");
    for (token, status) in [(token, "403 Forbidden"), (forged, "401 Unauthorized")] {
        let mut stream = connect_as_nobody(&kubeconfig, "http/1.1").await.expect("a connection");
        let head =
            format!("GET {namespace}/secrets/s HTTP/1.1\r\nhost: k\r\nauthorization: Bearer {token}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.expect("sent");
        stream.flush().await.expect("sent");
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).await.expect("an answer");
        assert_eq!(line, format!("HTTP/1.1 {status}\r\n"));
    }
    server.terminate().await;
    assert_eq!(server.end().await.code(), Some(0));
    let log = std::fs::read_to_string(installation.dir().join("server.log")).expect("the log");
    assert!(log.contains("DEBUG") || log.contains("TRACE"), "it logs most: {log}");
    let signature = token.rsplit('.').next().expect("a signature");
    let mut secrets =
        vec![password.to_owned(), STANDARD.encode(password), signature.to_owned(), forged.to_owned()];
    for key in ["sa.key", "ca.key"] {
        let text = std::fs::read_to_string(installation.dir().join("pki").join(key)).expect("a key");
        secrets.extend(text.lines().filter(|line| !line.starts_with('-')).map(str::to_owned));
    }
    for secret in secrets {
        assert!(!log.contains(&secret), "{secret}: {log}");
    }
}
