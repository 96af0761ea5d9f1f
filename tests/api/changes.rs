//! The stream of changes: assertions 73 to 75 of `docs/spec/time-and-sql.md`.

use std::collections::BTreeMap;

use rowplane::revision::Revision;
use serde_json::{Value, json};

use crate::support::client::{Client, Watch};
use crate::support::server::{CONFIGMAPS, Setup, TestServer, deployment, names, rv};

on_every_store! {
    time_and_sql_73_every_change_once_and_in_order,
    time_and_sql_74_a_snapshot_and_its_changes_are_a_state,
    time_and_sql_75_forms_of_lines,
    who_sees_which_changes,
    what_is_no_stream,
    a_stream_that_falls_behind,
}

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/t/deployments";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const MINE: &str = "namespaces=t&resources=configmaps,deployments.apps";

async fn stream(client: &Client, query: &str) -> Watch {
    client.watch(format!("/rowplane/changes?{query}")).await
}

/// All lines of a stream that ends with what there is.
async fn lines(client: &Client, query: &str) -> Vec<Value> {
    let answer = client.get(format!("/rowplane/changes?follow=false&{query}")).await;
    assert_eq!(answer.status, 200, "{query}: {}", answer.text());
    answer.text().lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

fn revision(line: &Value) -> u64 {
    line["revision"].as_str().unwrap_or_else(|| panic!("no revision: {line}")).parse().expect("a number")
}

fn is_heartbeat(line: &Value) -> bool {
    line.get("heartbeat").is_some()
}

/// Numbers that look random, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

impl TestServer {
    /// Writes to one of a few ConfigMaps. Returns the revision, the event, and the name.
    async fn any_change(
        &self,
        numbers: &mut Numbers,
        there: &mut BTreeMap<String, Value>,
    ) -> (u64, &'static str, String) {
        let name = format!("c{}", numbers.below(6));
        let data = json!({"n": numbers.below(1 << 30).to_string()});
        if !there.contains_key(&name) {
            let made = self.create(&name, data).await;
            there.insert(name.clone(), made.clone());
            return (rv(&made), "ADDED", name);
        }
        if numbers.below(4) == 0 {
            self.remove(&name).await;
            there.remove(&name);
            return (self.revision().await, "DELETED", name);
        }
        let made = self.set(&name, data).await;
        there.insert(name.clone(), made.clone());
        (rv(&made), "MODIFIED", name)
    }
}

async fn time_and_sql_73_every_change_once_and_in_order(setup: Setup) {
    let server = setup.start().await;
    let (mut numbers, mut there) = (Numbers(73), BTreeMap::new());
    let began = server.revision().await;
    let mut expected = Vec::new();
    let mut stored = began;
    let mut told = Vec::new();
    let query = "namespaces=t&resources=configmaps&heartbeat=1s";
    let mut open = stream(&server, &format!("after={stored}&{query}")).await;
    for step in 0..200 {
        expected.push(server.any_change(&mut numbers, &mut there).await);
        // The consumer reads for a while, and loses its connection at any time.
        let reads = numbers.below(3);
        for _ in 0..reads {
            if told.len() == expected.len() {
                break;
            }
            let line = open.next().await.expect("a line");
            stored = revision(&line);
            if !is_heartbeat(&line) {
                told.push(line);
            }
        }
        if step % 17 == 0 {
            open = stream(&server, &format!("after={stored}&{query}")).await;
        }
    }
    while told.len() < expected.len() {
        let line = open.next().await.expect("a line");
        if !is_heartbeat(&line) {
            told.push(line);
        }
    }
    let told: Vec<(u64, &str, String)> = told
        .iter()
        .map(|line| {
            let (event, name) =
                (line["event"].as_str().expect("an event"), line["name"].as_str().expect("a name"));
            assert_eq!((&line["resource"], &line["namespace"]), (&json!("configmaps"), &json!("t")));
            assert_eq!(
                (&line["user"], &line["time"].is_string()),
                (&json!("kubernetes-admin"), &true),
                "{line}"
            );
            (revision(line), event, name.to_owned())
        })
        .collect();
    let expected: Vec<(u64, &str, String)> = expected;
    assert_eq!(told, expected);
    // Once more, from the table alone.
    let again = lines(&server, &format!("after={began}&{query}")).await;
    let again: Vec<u64> = again.iter().filter(|line| !is_heartbeat(line)).map(revision).collect();
    assert_eq!(again, expected.iter().map(|(revision, ..)| *revision).collect::<Vec<_>>());
}

async fn time_and_sql_74_a_snapshot_and_its_changes_are_a_state(setup: Setup) {
    let server = setup.start().await;
    let (mut numbers, mut there) = (Numbers(74), BTreeMap::new());
    for _ in 0..10 {
        server.any_change(&mut numbers, &mut there).await;
    }
    server.post(DEPLOYMENTS, &deployment("web", json!({}))).await.expect(201);
    let mut open = stream(&server, &format!("snapshot=true&include=object,previous&{MINE}")).await;
    let mut state: BTreeMap<String, Value> = BTreeMap::new();
    let at = loop {
        let line = open.next().await.expect("a line");
        if is_heartbeat(&line) {
            break revision(&line);
        }
        assert_eq!(line["event"], "SNAPSHOT");
        state.insert(format!("{}/{}", line["resource"], line["name"]), line["object"].clone());
    };
    assert_eq!(at, server.revision().await);
    let newest = async |state: &BTreeMap<String, Value>| {
        let mut expected = BTreeMap::new();
        for (resource, path) in [("configmaps", CONFIGMAPS), ("deployments.apps", DEPLOYMENTS)] {
            for name in names(&server.get(path).await.ok()) {
                let object = server.get(format!("{path}/{name}")).await.ok();
                expected.insert(format!("\"{resource}\"/\"{name}\""), object);
            }
        }
        assert_eq!(*state, expected);
    };
    newest(&state).await;
    for _ in 0..5 {
        let mut last = 0;
        for _ in 0..10 {
            last = server.any_change(&mut numbers, &mut there).await.0;
        }
        while last > 0 {
            let line = open.next().await.expect("a line");
            let key = format!("{}/{}", line["resource"], line["name"]);
            if is_heartbeat(&line) {
                continue;
            }
            match line["event"].as_str().expect("an event") {
                "DELETED" => {
                    assert_eq!(line.get("object"), None);
                    assert_eq!(Some(&line["previous"]), state.remove(&key).as_ref());
                }
                event => {
                    let before = state.insert(key, line["object"].clone());
                    assert_eq!(line.get("previous"), before.as_ref(), "{event}");
                }
            }
            if revision(&line) == last {
                last = 0;
            }
        }
        newest(&state).await;
    }
}

async fn time_and_sql_75_forms_of_lines(setup: Setup) {
    let server = setup.start().await;
    let cluster = server.get("/api/v1/namespaces/kube-system").await.ok()["metadata"]["uid"].clone();
    let cluster = cluster.as_str().expect("a uid");
    let began = server.revision().await;
    server.create("a", json!({"n": "1"})).await;
    server.set("a", json!({"n": "2"})).await;
    server.remove("a").await;
    let query = format!("after={began}&namespaces=t&resources=configmaps");
    let events = lines(&server, &format!("format=cloudevents&include=changed&{query}")).await;
    assert_eq!(events.len(), 4, "{events:?}");
    let kinds = ["object.added", "object.modified", "object.deleted", "heartbeat"];
    for (event, kind) in events.iter().zip(kinds) {
        assert_eq!(
            (&event["specversion"], &event["type"]),
            (&json!("1.0"), &json!(format!("dev.rowplane.{kind}")))
        );
        assert_eq!(event["source"], format!("/rowplane/{cluster}"));
        assert_eq!(event["datacontenttype"], "application/json");
        assert!(
            event["id"].as_str().is_some_and(|id| !id.is_empty()) && event["data"].is_object(),
            "{event}"
        );
        event["time"].as_str().expect("a time").parse::<jiff::Timestamp>().expect("RFC 3339");
        // Attributes of CloudEvents are lower case letters and digits.
        let is_plain =
            |name: &String| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        assert!(event.as_object().expect("an object").keys().all(is_plain), "{event}");
    }
    assert_eq!(events[1]["subject"], format!("{CONFIGMAPS}/a"));
    assert_eq!(events[1]["id"], events[1]["data"]["revision"]);
    assert_eq!(events[1]["data"]["changed"], json!(["data.n"]));
    assert_eq!(events[1]["data"].get("object"), None);
    let changes = lines(&server, &format!("format=debezium&{query}")).await;
    let envelopes: Vec<_> = changes.iter().filter(|line| !is_heartbeat(line)).collect();
    let parts: Vec<Value> = envelopes
        .iter()
        .map(|line| json!([line["op"], line["before"]["data"]["n"], line["after"]["data"]["n"]]))
        .collect();
    assert_eq!(parts, [json!(["c", null, "1"]), json!(["u", "1", "2"]), json!(["d", "2", null])]);
    for line in envelopes {
        let source = &line["source"];
        assert_eq!((&source["connector"], &source["db"]), (&json!("rowplane"), &json!(cluster)));
        assert_eq!((&source["table"], &source["user"]), (&json!("configmaps"), &json!("kubernetes-admin")));
        assert!(line["ts_ms"].is_i64() && source["version"].is_string(), "{line}");
    }
    server.create("b", json!({})).await;
    let first = &lines(&server, &format!("format=debezium&snapshot=true&{MINE}")).await[0];
    assert_eq!((&first["op"], &first["before"]), (&json!("r"), &Value::Null), "{first}");
    // No later line is at or before a heartbeat.
    let mut open = stream(&server, &format!("heartbeat=1s&{MINE}")).await;
    let mut told = 0;
    for step in 0..3 {
        while !is_heartbeat(&{
            let line = open.next().await.expect("a line");
            assert!(revision(&line) > told || is_heartbeat(&line), "{line} after {told}");
            told = told.max(revision(&line));
            line
        }) {}
        server.create(&format!("h{step}"), json!({})).await;
    }
}

async fn who_sees_which_changes(setup: Setup) {
    let server = setup.start().await;
    let alice = server.token("alice-token");
    assert_eq!(alice.get("/rowplane/changes").await.status, 403);
    let bind = async |name: &str, rules: Value, path: String| {
        let role = json!({"metadata": {"name": name}, "rules": rules});
        server.post(format!("{RBAC}/clusterroles"), &role).await.expect(201);
        let binding = json!({"metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "User", "name": "alice"}]});
        server.post(path, &binding).await.expect(201);
    };
    let stream_of = json!([{"verbs": ["get"], "nonResourceURLs": ["/rowplane/changes"]}]);
    bind("stream", stream_of, format!("{RBAC}/clusterrolebindings")).await;
    let mine = json!([{"verbs": ["list", "watch"], "apiGroups": [""], "resources": ["configmaps"]}]);
    bind("mine", mine, format!("{RBAC}/namespaces/t/rolebindings")).await;
    server.namespace("other").await;
    let began = server.revision().await;
    server.post("/api/v1/namespaces/other/configmaps", &json!({"metadata": {"name": "x"}})).await.expect(201);
    server.post("/api/v1/namespaces/t/secrets", &json!({"metadata": {"name": "x"}})).await.expect(201);
    server.create("mine", json!({})).await;
    let seen = |lines: Vec<Value>| -> Vec<String> {
        let shown = lines.iter().filter(|line| !is_heartbeat(line));
        shown.map(|line| format!("{} {}", line["namespace"], line["name"])).collect()
    };
    assert_eq!(seen(lines(&alice, &format!("after={began}")).await), ["\"t\" \"mine\""]);
    let snapshot = seen(lines(&alice, "snapshot=true").await);
    assert!(snapshot.contains(&"\"t\" \"mine\"".to_owned()), "{snapshot:?}");
    assert!(snapshot.iter().all(|row| row.starts_with("\"t\"")), "{snapshot:?}");
    // A right that has ended ends what it showed, while the stream goes on.
    let mut open = stream(&alice, "heartbeat=1s").await;
    server.create("seen", json!({})).await;
    let line = open.next().await.expect("a line");
    assert_eq!(line["name"], "seen");
    server.delete(format!("{RBAC}/namespaces/t/rolebindings/mine")).await.ok();
    server.create("unseen", json!({})).await;
    let after = server.revision().await;
    loop {
        let line = open.next().await.expect("a line");
        assert!(is_heartbeat(&line), "{line}");
        if revision(&line) >= after {
            break;
        }
    }
    // Without the right to the stream, it ends.
    server.delete(format!("{RBAC}/clusterrolebindings/stream")).await.ok();
    server.create("last", json!({})).await;
    let rest = open.rest().await;
    let last = rest.last().expect("a last line");
    assert!(last.get("error").is_some_and(|error| error["code"] == 403), "{last}");
}

async fn what_is_no_stream(setup: Setup) {
    let server = setup.start().await;
    for (query, why) in [
        ("after=x", "after: invalid value \"x\""),
        ("format=xml", "format: invalid value \"xml\""),
        ("include=all", "include: invalid value \"all\""),
        ("heartbeat=never", "heartbeat: invalid value \"never\""),
        ("resources=nothing", "resources: \"nothing\" is not served"),
        ("snapshot=true&after=1", "give either snapshot or after"),
    ] {
        let refused = server.get(format!("/rowplane/changes?{query}")).await.failure();
        assert_eq!(refused["code"], 400, "{query}: {refused}");
        assert!(refused["message"].as_str().is_some_and(|message| message.contains(why)), "{refused}");
    }
    assert_eq!(server.get("/rowplane/changes?after=99999999").await.status, 504);
    assert_eq!(server.post("/rowplane/changes", &json!({})).await.status, 405);
    assert_eq!(server.anonymous().get("/rowplane/changes").await.status, 403);
    let answer = server.get("/rowplane/changes?timeoutSeconds=1").await;
    assert_eq!((answer.status, answer.text().lines().count()), (200, 1), "{}", answer.text());
}

async fn a_stream_that_falls_behind(setup: Setup) {
    let server = setup.start().await;
    let began = server.revision().await;
    for at in 0..5 {
        server.create(&format!("c{at}"), json!({})).await;
    }
    let now = server.revision().await;
    server.compact(now).await;
    // Above the floors it goes on from the table; below them, it is 410.
    let query = format!("/rowplane/changes?follow=false&after={began}&{MINE}");
    if server.get(query.clone()).await.status == 200 {
        server.backend.raise_floors(Revision(now), &[]).await.expect("raised floors");
    }
    let gone = server.get(query).await.failure();
    assert_eq!((&gone["code"], &gone["reason"]), (&json!(410), &json!("Expired")), "{gone}");
    assert!(gone["message"].as_str().is_some_and(|text| text.starts_with("history of ")), "{gone}");
}
