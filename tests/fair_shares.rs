//! Priority and Fairness over real HTTPS: the objects every server has, who is counted where, and what a flood does.

mod support;

use std::time::Duration;

use futures_util::future::join_all;
use rowplane::auth::authorizer::Mode;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::task::JoinHandle;

use crate::support::client::{Client, connect_as_nobody};
use crate::support::database::Database;
use crate::support::server::{ALICE, CONFIGMAPS, ROOT, Setup, TestServer, config_map};
use crate::support::webhook::{WebhookServer, held_creates};

const LEVELS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations";
const FLOWS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
const DUMPS: &str = "/debug/api_priority_and_fairness";
const FLOW_UID: &str = "x-kubernetes-pf-flowschema-uid";
const LEVEL_UID: &str = "x-kubernetes-pf-prioritylevel-uid";

async fn uid(server: &TestServer, path: &str, name: &str) -> String {
    let object = server.get(format!("{path}/{name}")).await.ok();
    object["metadata"]["uid"].as_str().expect("a uid").to_owned()
}

/// The flow and the level that a request was counted in.
async fn counted(client: &Client, path: &str) -> (String, String) {
    let answer = client.get(path).await;
    let header = |name| answer.header(name).unwrap_or_else(|| panic!("{answer:?}")).to_owned();
    (header(FLOW_UID), header(LEVEL_UID))
}

fn flow(name: &str, precedence: u32, level: &str, user: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "matchingPrecedence": precedence,
        "priorityLevelConfiguration": {"name": level},
        "distinguisherMethod": {"type": "ByUser"},
        "rules": [{
            "subjects": [{"kind": "User", "user": {"name": user}}],
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"],
                "clusterScope": true}],
        }],
    }})
}

fn level(name: &str, shares: u32, response: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {"type": "Limited", "limited": {
        "nominalConcurrencyShares": shares, "lendablePercent": 0, "borrowingLimitPercent": 0,
        "limitResponse": response}}})
}

/// Repeats a check until it succeeds: replicas follow the objects soon after they have changed.
async fn soon(check: impl AsyncFn() -> bool) {
    while !check().await {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn open_to_everybody(mut setup: Setup) -> Setup {
    setup.authorization = vec![Mode::AlwaysAllow].into();
    setup
}

/// 95: what a kube-apiserver 1.37.2 has after its first start; and the next start changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_95_a_fresh_server_has_upstreams_objects() {
    let setup = Setup::new(Database::sqlite());
    let server = setup.start().await;
    let expected: Value =
        serde_json::from_str(include_str!("../testdata/flowcontrol/bootstrap.json")).expect("JSON");
    let mut versions = Vec::new();
    for (path, list) in [(LEVELS, "prioritylevelconfigurations"), (FLOWS, "flowschemas")] {
        let found = server.get(path).await.ok();
        let found = found["items"].as_array().expect("items");
        let expected = expected[list].as_array().expect("a list");
        assert_eq!(found.len(), expected.len());
        for expected in expected {
            let object = found.iter().find(|object| object["metadata"]["name"] == expected["name"]);
            let mut object = object.expect("an object").clone();
            for condition in
                object.pointer_mut("/status/conditions").and_then(Value::as_array_mut).into_iter().flatten()
            {
                condition.as_object_mut().expect("a condition").remove("lastTransitionTime");
            }
            assert_eq!(object["spec"], expected["spec"]);
            assert_eq!(object["metadata"]["annotations"], expected["annotations"]);
            assert_eq!(object["status"], expected["status"]);
            versions.push(object["metadata"]["resourceVersion"].clone());
        }
    }
    server.stop().await;
    let server = setup.start().await;
    let mut again = Vec::new();
    for (path, list) in [(LEVELS, "prioritylevelconfigurations"), (FLOWS, "flowschemas")] {
        let found = server.get(path).await.ok();
        for expected in expected[list].as_array().expect("a list") {
            let mut items = found["items"].as_array().expect("items").iter();
            let object =
                items.find(|object| object["metadata"]["name"] == expected["name"]).expect("an object");
            again.push(object["metadata"]["resourceVersion"].clone());
        }
    }
    assert_eq!(again, versions);
}

/// 96, 98, 99.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_96_98_99_answers_tell_where_requests_are_counted() {
    let setup = open_to_everybody(Setup::new(Database::memory()));
    let server = setup.start().await;
    let alice = server.token("alice-token");
    let pair =
        async |flow: &str, level: &str| (uid(&server, FLOWS, flow).await, uid(&server, LEVELS, level).await);
    assert_eq!(counted(&server, CONFIGMAPS).await, pair("exempt", "exempt").await);
    assert_eq!(counted(&alice, CONFIGMAPS).await, pair("global-default", "global-default").await);
    assert_eq!(counted(&alice, "/healthz").await, pair("probes", "exempt").await);
    assert_eq!(counted(&alice, "/nothing").await, pair("global-default", "global-default").await);
    let log = alice.get("/api/v1/namespaces/t/pods/p/log").await;
    assert_eq!(log.header(FLOW_UID), None);

    server.post(FLOWS, &flow("mine", 500, "absent", "alice")).await.expect(201);
    let dangling = async || {
        let flow = server.get(format!("{FLOWS}/mine")).await.ok();
        flow["status"]["conditions"][0]["status"].as_str().unwrap_or_default().to_owned()
    };
    soon(async || dangling().await == "True").await;
    assert_eq!(counted(&alice, CONFIGMAPS).await, pair("global-default", "global-default").await);
    server.post(LEVELS, &level("absent", 10, json!({"type": "Reject"}))).await.expect(201);
    soon(async || dangling().await == "False").await;
    soon(async || counted(&alice, CONFIGMAPS).await == pair("mine", "absent").await).await;
}

/// 97.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_97_mandatory_and_suggested_objects_are_kept() {
    let setup = Setup::new(Database::memory());
    let server = setup.start().await;
    for path in [format!("{FLOWS}/probes"), format!("{FLOWS}/exempt"), format!("{LEVELS}/exempt")] {
        let before = server.get(&*path).await.ok();
        server.delete(&*path).await.ok();
        soon(async || server.get(&*path).await.status == 200).await;
        let after = server.get(&*path).await.ok();
        assert_eq!(before["spec"], after["spec"]);
        assert_ne!(before["metadata"]["uid"], after["metadata"]["uid"]);
    }
    let low = format!("{LEVELS}/workload-low");
    let edit = async |automatic: &str| {
        let body = json!({"metadata": {"annotations": {"apf.kubernetes.io/autoupdate-spec": automatic}},
            "spec": {"limited": {"nominalConcurrencyShares": 7}}});
        server.patch(&*low, &body).await.ok();
    };
    let shares = async || {
        server.get(&*low).await.ok()["spec"]["limited"]["nominalConcurrencyShares"]
            .as_u64()
            .expect("a number")
    };
    edit("true").await;
    soon(async || shares().await == 100).await;
    edit("false").await;
    // Something else is put right meanwhile, which shows that the server has looked.
    server.delete(format!("{FLOWS}/probes")).await.ok();
    soon(async || server.get(format!("{FLOWS}/probes")).await.status == 200).await;
    assert_eq!(shares().await, 7);
    let changed = server
        .patch(format!("{LEVELS}/catch-all"), &json!({"spec": {"limited": {"nominalConcurrencyShares": 7}}}));
    let failure = changed.await.failure();
    assert_eq!(failure["code"], 422);
    let text = failure["message"].as_str().expect("a message");
    assert!(text.ends_with("spec of 'catch-all' must equal the fixed value"), "{text}");
    let exempt = json!({"spec": {"exempt": {"nominalConcurrencyShares": 7}}});
    server.patch(format!("{LEVELS}/exempt"), &exempt).await.ok();
}

/// Begins a create, the rest of whose body does not come.
async fn begin_create(server: &TestServer, token: &str) -> impl Sized {
    let mut stream = connect_as_nobody(&server.kubeconfig, "http/1.1").await.expect("a connection");
    let head = format!(
        "POST {CONFIGMAPS} HTTP/1.1\r\nhost: kubernetes\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: 1000\r\n\r\n{{"
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    stream.flush().await.expect("sent");
    stream
}

/// A create of alice's that keeps its seat until her webhook answers.
struct Occupied {
    hook: WebhookServer,
    create: JoinHandle<u16>,
}

impl Occupied {
    async fn new(server: &TestServer) -> Self {
        let hook = held_creates(server).await;
        let mut object = config_map("held", json!({}));
        object["metadata"]["labels"] = json!({"held": "1"});
        let create = server.token("alice-token").post(CONFIGMAPS, &object);
        let create = tokio::spawn(async move { create.await.status });
        hook.arrived(1).await;
        Self { hook, create }
    }

    async fn ends(self) {
        self.hook.release();
        assert_eq!(self.create.await.expect("no panic"), 201);
    }
}

/// The seats of a level's FlowSchemas that have some.
async fn seats(server: &TestServer, level: &str) -> String {
    let metrics = server.get("/metrics").await.text();
    let start =
        format!("apiserver_flowcontrol_current_executing_seats{{priority_level=\"{level}\",flow_schema=");
    let lines = metrics.lines().filter_map(|line| line.strip_prefix(&start)?.split_once("} "));
    lines
        .filter(|(_, seats)| *seats != "0")
        .map(|(flow, seats)| format!("{flow} {seats}"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// 100.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_100_a_level_without_seats_refuses_and_others_go_on() {
    let setup = open_to_everybody(Setup::new(Database::memory()));
    let server = setup.start().await;
    let alice = server.token("alice-token");
    server.post(LEVELS, &level("small", 0, json!({"type": "Reject"}))).await.expect(201);
    server.post(FLOWS, &flow("mine", 500, "small", "alice")).await.expect(201);
    let small = uid(&server, LEVELS, "small").await;
    soon(async || counted(&alice, CONFIGMAPS).await.1 == small).await;
    // One request passes all the same, as long as it is alone.
    let held = Occupied::new(&server).await;
    let refused = alice.get(CONFIGMAPS).await;
    assert_eq!(refused.text(), "Too many requests, please try again later.\n");
    let wait: u64 = refused.header("retry-after").expect("a number").parse().expect("a number");
    assert!((1..=32).contains(&wait), "{wait}");
    assert_eq!(refused.header(LEVEL_UID), Some(&*small));
    // Only what is asked of resources is in this flow.
    assert_eq!(alice.get("/healthz").await.status, 200);
    server.post(CONFIGMAPS, &config_map("other", json!({}))).await.expect(201);
    let metrics = server.get("/metrics").await.text();
    let counted = "apiserver_flowcontrol_rejected_requests_total{priority_level=\"small\",flow_schema=\"mine\",reason=\"concurrency-limit\"}";
    assert!(metrics.contains(counted), "{metrics}");
    held.ends().await;
}

/// 101: excess waits, and is served when a seat is free.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_101_requests_wait_for_a_seat() {
    let mut setup = open_to_everybody(Setup::new(Database::memory()));
    // 5 of the 245 shares of a fresh server, and of those of the level that is added.
    (setup.limits.in_flight.reading, setup.limits.in_flight.mutating) = (25, 25);
    setup.limits.request_timeout = Duration::from_secs(600);
    let server = setup.start().await;
    let queues = json!({"type": "Queue", "queuing": {"queues": 1, "handSize": 1, "queueLengthLimit": 3}});
    server.post(LEVELS, &level("small", 1, queues)).await.expect(201);
    server.post(FLOWS, &flow("mine", 500, "small", "alice")).await.expect(201);
    let alice = server.token("alice-token");
    let small = uid(&server, LEVELS, "small").await;
    soon(async || counted(&alice, CONFIGMAPS).await.1 == small).await;
    let held = Occupied::new(&server).await;
    assert_eq!(seats(&server, "small").await, "\"mine\" 1");
    let waiting: Vec<_> = (0..3).map(|_| alice.get(CONFIGMAPS)).collect();
    let waiting =
        tokio::spawn(join_all(waiting.into_iter().map(|request| async move { request.await.status })));
    let full = async || {
        let metrics = server.get("/metrics").await.text();
        metrics.contains(
            "apiserver_flowcontrol_current_inqueue_requests{priority_level=\"small\",flow_schema=\"mine\"} 3",
        )
    };
    soon(full).await;
    let refused = alice.get(CONFIGMAPS).await;
    assert_eq!((refused.status, refused.header(LEVEL_UID)), (429, Some(&*small)));
    the_queues_can_be_looked_at(&server).await;
    // Whoever is in another level passes by.
    server.get(CONFIGMAPS).await.ok();
    held.ends().await;
    assert_eq!(waiting.await.expect("no panic"), [200, 200, 200]);
}

/// One request runs, three wait, and one has been refused.
async fn the_queues_can_be_looked_at(server: &TestServer) {
    let dump = async |what: &str| {
        let answer = server.get(format!("{DUMPS}/{what}")).await;
        assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
        answer.text()
    };
    let cells = |line: &str| line.split(',').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let levels = dump("dump_priority_levels").await;
    let header = "PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, ExecutingRequests, \
                  DispatchedRequests, RejectedRequests, TimedoutRequests, CancelledRequests\n";
    assert!(levels.starts_with(header), "{levels}");
    let small = levels.lines().find(|line| line.starts_with("small,")).expect("the level");
    let small = cells(small);
    assert_eq!(small[1..6], ["1", "false", "false", "3", "1"], "{levels}");
    assert_eq!(small[7..], ["1", "0", "0"], "{levels}");
    let queues = dump("dump_queues").await;
    let small = queues.lines().find(|line| line.starts_with("small,")).expect("the queue");
    assert_eq!(cells(small)[1..5], ["0", "3", "1", "1"], "{queues}");
    assert_eq!(queues.lines().filter(|line| line.starts_with("workload-low,")).count(), 128);
    let requests = dump("dump_requests?includeRequestDetails=1").await;
    let waiting: Vec<_> = requests.lines().filter(|line| line.starts_with("small,")).map(cells).collect();
    let places: Vec<&str> = waiting.iter().map(|cells| &*cells[3]).collect();
    assert_eq!(places, ["0", "1", "2", "-1"], "{requests}");
    let never = "0001-01-01T00:00:00Z";
    let times: Vec<bool> = waiting.iter().map(|cells| cells[9] == never).collect();
    assert_eq!(times, [true, true, true, false], "{requests}");
    let running = &waiting[3];
    assert_eq!([&*running[1], &running[2], &running[4]], ["mine", "0", "alice"], "{requests}");
    assert_eq!([&*running[10], &running[11], &running[12]], ["alice", "create", CONFIGMAPS], "{requests}");
    assert_eq!((&*waiting[0][1], &*waiting[0][4]), ("mine", "alice"));
    let namespace = CONFIGMAPS.split('/').nth(4).expect("a namespace");
    let asked = ["alice", "list", CONFIGMAPS, namespace, "", "v1", "configmaps", ""];
    assert_eq!(waiting[2][10..], asked, "{requests}");
    assert_eq!(dump("dump_requests").await.lines().next().map(|line| cells(line).len()), Some(10));
}

/// 102.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_102_watches_occupy_no_seats() {
    let setup = open_to_everybody(Setup::new(Database::memory()));
    let server = setup.start().await;
    let alice = server.token("alice-token");
    let mut watches = Vec::new();
    for _ in 0..100 {
        watches.push(alice.watch(format!("{CONFIGMAPS}?watch=1")).await);
    }
    soon(async || seats(&server, "global-default").await.is_empty()).await;
    server.post(CONFIGMAPS, &config_map("a", json!({}))).await.expect(201);
    for watch in &mut watches {
        watch.expect("ADDED").await;
    }
}

/// 103.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_103_without_priority_and_fairness_only_numbers_count() {
    let mut setup = open_to_everybody(Setup::new(Database::memory()));
    setup.limits.priority_and_fairness = false;
    setup.limits.in_flight.mutating = 1;
    let server = setup.start().await;
    let alice = server.token("alice-token");
    assert_eq!(server.get(LEVELS).await.ok()["items"], json!([]));
    assert_eq!(alice.get(CONFIGMAPS).await.header(FLOW_UID), None);
    let held = begin_create(&server, "alice-token").await;
    let one = r#"apiserver_current_inflight_requests{request_kind="mutating"} 1"#;
    soon(async || server.get("/metrics").await.text().contains(one)).await;
    let refused = alice.post(CONFIGMAPS, &config_map("a", json!({}))).await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
    server.post(CONFIGMAPS, &config_map("masters", json!({}))).await.expect(201);
    drop(held);
    assert_eq!(server.get(format!("{DUMPS}/dump_queues")).await.status, 404);
}

/// An exempt request passes over everything: also over seats that are all taken, and over as many writes as may run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn masters_pass_while_all_seats_are_taken() {
    let mut setup = open_to_everybody(Setup::new(Database::memory()));
    // Each level has one seat.
    (setup.limits.in_flight.reading, setup.limits.in_flight.mutating) = (1, 1);
    let server = setup.start().await;
    let held = Occupied::new(&server).await;
    assert_eq!(seats(&server, "global-default").await, "\"global-default\" 1");
    server.post(CONFIGMAPS, &config_map("masters", json!({}))).await.expect(201);
    server.delete(format!("{CONFIGMAPS}/masters")).await.ok();
    for path in [CONFIGMAPS, "/openapi/v2", "/metrics"] {
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }
    held.ends().await;
}

/// A request whose body does not come waits for its client, and nobody waits for its seat.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_does_not_come_has_no_seat() {
    const UNFINISHED: usize = 20;
    let mut setup = open_to_everybody(Setup::new(Database::memory()));
    setup.replace("tokens.csv", &format!("{ALICE}{ROOT}bob-token,bob,u-3\n"));
    (setup.limits.in_flight.reading, setup.limits.in_flight.mutating) = (2, 2);
    setup.limits.request_timeout = Duration::from_secs(600);
    let server = setup.start().await;
    let mut unfinished = Vec::new();
    for _ in 0..UNFINISHED {
        unfinished.push(begin_create(&server, "alice-token").await);
        // A further one would wait for the seat of this one otherwise.
        let count = unfinished.len();
        let running = format!("apiserver_current_inflight_requests{{request_kind=\"mutating\"}} {count}\n");
        soon(async || server.get("/metrics").await.text().contains(&running)).await;
    }
    soon(async || seats(&server, "global-default").await.is_empty()).await;
    server.post(CONFIGMAPS, &config_map("masters", json!({}))).await.expect(201);
    for user in ["alice", "bob"] {
        let client = server.token(&format!("{user}-token"));
        client.post(CONFIGMAPS, &config_map(user, json!({"n": "x".repeat(100_000)}))).await.expect(201);
        client.get(CONFIGMAPS).await.ok();
    }
    drop(unfinished);
}

/// When its body has come, a request waits for a seat as others do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_has_come_waits_for_a_seat() {
    let mut setup = open_to_everybody(Setup::new(Database::memory()));
    let server = {
        setup.limits.request_timeout = Duration::from_secs(600);
        setup.start().await
    };
    server.post(LEVELS, &level("small", 0, json!({"type": "Reject"}))).await.expect(201);
    server.post(FLOWS, &flow("mine", 500, "small", "alice")).await.expect(201);
    let small = uid(&server, LEVELS, "small").await;
    let alice = server.token("alice-token");
    soon(async || counted(&alice, CONFIGMAPS).await.1 == small).await;
    let mut late = connect_as_nobody(&server.kubeconfig, "http/1.1").await.expect("a connection");
    let body = config_map("late", json!({})).to_string();
    let (begin, rest) = body.split_at(1);
    let head = format!(
        "POST {CONFIGMAPS} HTTP/1.1\r\nhost: kubernetes\r\nauthorization: Bearer alice-token\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{begin}",
        body.len()
    );
    late.write_all(head.as_bytes()).await.expect("sent");
    late.flush().await.expect("sent");
    let running = "apiserver_current_inflight_requests{request_kind=\"mutating\"} 1\n";
    soon(async || server.get("/metrics").await.text().contains(running)).await;
    soon(async || seats(&server, "small").await.is_empty()).await;
    let held = Occupied::new(&server).await;
    late.write_all(rest.as_bytes()).await.expect("sent");
    late.flush().await.expect("sent");
    let mut answer = String::new();
    let mut lines = BufReader::new(late);
    while !answer.ends_with("\r\n\r\n") {
        assert_ne!(lines.read_line(&mut answer).await.expect("an answer"), 0);
    }
    assert!(answer.starts_with("HTTP/1.1 429 ") && answer.contains("retry-after: "), "{answer}");
    held.ends().await;
}

/// The rest of a list is made as its reader takes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_nobody_reads_has_no_seat() {
    let mut setup = open_to_everybody(Setup::new(Database::memory()));
    (setup.limits.in_flight.reading, setup.limits.in_flight.mutating) = (2, 2);
    let server = setup.start().await;
    for n in 0..200 {
        server
            .post(CONFIGMAPS, &config_map(&format!("n{n}"), json!({"n": "x".repeat(60_000)})))
            .await
            .expect(201);
    }
    let alice = server.token("alice-token");
    let watch = format!("{CONFIGMAPS}?watch=1&resourceVersion=0");
    let mut unread = Vec::new();
    for path in [CONFIGMAPS, &watch, CONFIGMAPS, &watch, CONFIGMAPS] {
        unread.push(alice.get(path).send().await);
    }
    assert!(unread.iter().all(|answer| answer.status() == 200));
    assert_eq!(seats(&server, "global-default").await, "");
    // On a connection of its own: what is unread fills the window of the other one.
    server.token("alice-token").get(format!("{CONFIGMAPS}/n0")).await.ok();
    drop(unread);
}
