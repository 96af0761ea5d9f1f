//! The endpoints for tests (`--test-endpoints`). Assertions 78 to 81 of `docs/spec/cluster.md`.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::server::{CONFIGMAPS, Setup, TestServer, config_map, names, rv};

on_every_store! {
    cluster_78_forks_of_a_snapshot,
    cluster_79_a_reset_of_a_branch,
    cluster_79_a_reset_of_the_server,
    a_reset_brings_definitions_back,
    cluster_80_time_that_is_set,
    cluster_81_faults,
    cluster_81_requests_that_are_recorded,
    cluster_81_who_may_use_them,
    watches_that_are_ended,
    objects_that_are_seeded,
    a_server_that_is_quiet,
    bad_requests_are_refused,
}

const BRANCHES: &str = "/rowplane/v1/branches";
const SNAPSHOTS: &str = "/rowplane/v1/snapshots";
const EVENTS: &str = "/api/v1/namespaces/t/events";

/// The path of an endpoint of the server itself.
fn own(rest: &str) -> String {
    format!("{BRANCHES}/-/{rest}")
}

async fn start(setup: &mut Setup) -> TestServer {
    setup.test_endpoints = true;
    setup.start().await
}

async fn snapshot(server: &Client, name: &str) -> u64 {
    let taken = server.post(SNAPSHOTS, &json!({"name": name})).await.expect(201);
    number(&taken["revision"])
}

async fn fork(server: &Client, name: &str, from: &str) -> Value {
    server.post(BRANCHES, &json!({"name": name, "from": from})).await.expect(201)
}

fn number(text: &Value) -> u64 {
    text.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{text} is no number"))
}

fn on(branch: &str, path: &str) -> String {
    format!("/branches/{branch}{path}")
}

async fn cluster_78_forks_of_a_snapshot(mut setup: Setup) {
    let server = start(&mut setup).await;
    server.create("a", json!({"k": "0"})).await;
    let taken = snapshot(&server, "base").await;
    server.set("a", json!({"k": "later"})).await;
    for name in ["one", "two"] {
        assert_eq!(number(&fork(&server, name, "base").await["base"]), taken);
    }
    let value = async |path: String| server.get(path).await.ok()["data"]["k"].clone();
    let path = format!("{CONFIGMAPS}/a");
    assert_eq!(value(on("one", &path)).await, "0");
    server.put(on("one", &path), &config_map("a", json!({"k": "1"}))).await.ok();
    assert_eq!((value(on("two", &path)).await, value(path.clone()).await), (json!("0"), json!("later")));
    let begun = Instant::now();
    for n in 0..90 {
        fork(&server, &format!("many-{n}"), "base").await;
    }
    eprintln!("90 forks in {:?}", begun.elapsed());
    assert_eq!(server.get(SNAPSHOTS).await.ok()["items"][0]["name"], "base");
    server.delete(format!("{SNAPSHOTS}/base")).await.ok();
    let gone = server.post(BRANCHES, &json!({"name": "x", "from": "base"})).await;
    assert_eq!(gone.failure()["message"], "snapshots.rowplane.dev \"base\" not found");
    assert_eq!(value(on("one", &path)).await, "1", "forks outlive the snapshot");
}

async fn cluster_79_a_reset_of_a_branch(mut setup: Setup) {
    let server = start(&mut setup).await;
    let a = server.create("a", json!({"k": "0"})).await;
    let gone = server.create("gone", json!({})).await;
    server.post(BRANCHES, &json!({"name": "b"})).await.expect(201);
    let at = |path: &str| on("b", path);
    reset_goes_back(&server, &at, &format!("{BRANCHES}/b/reset"), &json!({}), (&a, &gone)).await;
    // As if it had just been made, and again, from whatever state.
    let same = server.post(format!("{BRANCHES}/b/reset"), &json!({})).await.ok();
    assert_eq!(names(&server.get(at(CONFIGMAPS)).await.ok()), ["a", "gone"]);
    assert!(number(&same["revision"]) > rv(&a));
}

async fn cluster_79_a_reset_of_the_server(mut setup: Setup) {
    let server = start(&mut setup).await;
    let a = server.create("a", json!({"k": "0"})).await;
    let gone = server.create("gone", json!({})).await;
    snapshot(&server, "base").await;
    let at = |path: &str| path.to_owned();
    reset_goes_back(&server, &at, &own("reset"), &json!({"to": "base"}), (&a, &gone)).await;
    assert_eq!(server.post(own("reset"), &json!({})).await.status, 400, "it was made of nothing");
    assert_eq!(server.post(own("reset"), &json!({"to": "none"})).await.status, 404);
}

/// Changes, deletes and creates objects, and resets the server at these paths.
async fn reset_goes_back(
    server: &Client,
    at: &dyn Fn(&str) -> String,
    path: &str,
    body: &Value,
    (a, gone): (&Value, &Value),
) {
    server.put(at(&format!("{CONFIGMAPS}/a")), &config_map("a", json!({"k": "1"}))).await.ok();
    server.delete(at(&format!("{CONFIGMAPS}/gone"))).await.ok();
    server.post(at(CONFIGMAPS), &config_map("new", json!({}))).await.expect(201);
    let account = json!({"metadata": {"name": "new"}});
    server.post(at("/api/v1/namespaces"), &account).await.expect(201);
    let list = server.get(at(CONFIGMAPS)).await.ok();
    let newest = rv(&list);
    let mut watch = server.watch(at(&format!("{CONFIGMAPS}?watch=1&resourceVersion={newest}"))).await;
    let reset = server.post(path, body).await.ok();
    let after = server.get(at(CONFIGMAPS)).await.ok();
    assert!(number(&reset["revision"]) > newest && rv(&after) >= number(&reset["revision"]), "{reset}");
    assert_eq!(names(&after), ["a", "gone"]);
    for then in [a, gone] {
        let name = then["metadata"]["name"].as_str().expect("a name");
        let mut now = server.get(at(&format!("{CONFIGMAPS}/{name}"))).await.ok();
        assert!(rv(&now) > newest || rv(&now) == rv(then), "no revision twice");
        now["metadata"]["resourceVersion"] = then["metadata"]["resourceVersion"].clone();
        assert_eq!(now, *then, "the same uid, times and data");
    }
    assert_eq!(server.get(at("/api/v1/namespaces/new")).await.status, 404);
    let last = loop {
        let event = watch.next().await.expect("an event");
        if event["type"] == "ERROR" {
            break event["object"].clone();
        }
    };
    assert_eq!((&last["code"], &last["reason"]), (&json!(410), &json!("Expired")));
    watch.expect_end().await;
    let old = server.watch(at(&format!("{CONFIGMAPS}?watch=1&resourceVersion={newest}"))).await.next().await;
    assert_eq!(old.expect("an event")["object"]["code"], 410, "who resumes from before lists anew");
    // An informer goes on from the list.
    let mut again = server.watch(at(&format!("{CONFIGMAPS}?watch=1&resourceVersion={}", rv(&after)))).await;
    server.post(at(CONFIGMAPS), &config_map("later", json!({}))).await.expect(201);
    again.expect_named("ADDED", "later").await;
}

async fn a_reset_brings_definitions_back(mut setup: Setup) {
    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let server = start(&mut setup).await;
    let definition = |plural: &str, kind: &str| {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        json!({
            "kind": "CustomResourceDefinition",
            "apiVersion": "apiextensions.k8s.io/v1",
            "metadata": {"name": format!("{plural}.example.com")},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]},
        })
    };
    let widgets = "/apis/example.com/v1/namespaces/t/widgets";
    server.post(DEFINITIONS, &definition("widgets", "Widget")).await.expect(201);
    let widget = json!({"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"name": "w"}});
    let widget = server.post(widgets, &widget).await.expect(201);
    snapshot(&server, "base").await;
    server.delete(format!("{DEFINITIONS}/widgets.example.com")).await.ok();
    while server.get(widgets).await.status != 404 {
        tokio::task::yield_now().await;
    }
    server.post(DEFINITIONS, &definition("gadgets", "Gadget")).await.expect(201);
    server.post(own("reset"), &json!({"to": "base"})).await.ok();
    let mut back = server.get(format!("{widgets}/w")).await;
    while back.status != 200 {
        tokio::task::yield_now().await;
        back = server.get(format!("{widgets}/w")).await;
    }
    assert_eq!(back.ok()["metadata"]["uid"], widget["metadata"]["uid"]);
    assert_eq!(names(&server.get(DEFINITIONS).await.ok()), ["widgets.example.com"]);
}

fn event(name: &str) -> Value {
    let about = json!({"kind": "Pod", "namespace": "t", "name": "p"});
    json!({"metadata": {"name": name}, "involvedObject": about, "reason": "Tested"})
}

async fn cluster_80_time_that_is_set(mut setup: Setup) {
    let server = start(&mut setup).await;
    server.post(BRANCHES, &json!({"name": "b"})).await.expect(201);
    for (prefix, time) in [("/branches/b", format!("{BRANCHES}/b/time")), ("", own("time"))] {
        let at = |path: &str| format!("{prefix}{path}");
        let stamp = async |name: &str| {
            let made = server.post(at(CONFIGMAPS), &config_map(name, json!({}))).await.expect(201);
            made["metadata"]["creationTimestamp"].clone()
        };
        let frozen = server.post(time.clone(), &json!({"freeze": "2030-01-01T00:00:00Z"})).await.ok();
        assert_eq!(frozen["now"], "2030-01-01T00:00:00.000000Z");
        assert_eq!(stamp("one").await, "2030-01-01T00:00:00Z");
        assert_eq!(stamp("two").await, "2030-01-01T00:00:00Z");
        // A token of an hour, and an Event, which lives an hour.
        let accounts = "/api/v1/namespaces/t/serviceaccounts";
        server.post(at(accounts), &json!({"metadata": {"name": "robot"}})).await.expect(201);
        let request = json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
            "spec": {"expirationSeconds": 3600}});
        let made = server.post(at(&format!("{accounts}/robot/token")), &request).await.expect(201);
        assert_eq!(made["status"]["expirationTimestamp"], "2030-01-01T01:00:00Z");
        let token = made["status"]["token"].as_str().expect("a token").to_owned();
        let review = json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"});
        let ask = async || {
            let asked =
                server.token(&token).post(at("/apis/authentication.k8s.io/v1/selfsubjectreviews"), &review);
            asked.await.status
        };
        assert_eq!(ask().await, 201);
        server.post(at(EVENTS), &event("old")).await.expect(201);
        let mut watch = server.watch(at(&format!("{EVENTS}?watch=1"))).await;
        watch.expect_named("ADDED", "old").await;
        let later = server.post(time.clone(), &json!({"advance": "1h1m"})).await.ok();
        assert_eq!(later["now"], "2030-01-01T01:01:00.000000Z");
        watch.expect_named("DELETED", "old").await;
        assert_eq!(ask().await, 401, "the token has expired");
        assert_eq!(stamp("three").await, "2030-01-01T01:01:00Z");
        // TLS goes by the time that clients have: the admin's certificate of ten years is good on a new connection.
        server.post(time.clone(), &json!({"advance": "200000h"})).await.ok();
        let admin = Client::of_certificate(&server.kubeconfig, crate::support::client::Protocol::Any);
        assert_eq!(admin.get(at(CONFIGMAPS)).await.status, 200);
        server.post(time.clone(), &json!({"run": true})).await.ok();
        let (now, then) = (server.get(time.clone()).await.ok(), server.get(time.clone()).await.ok());
        assert!(now["now"].as_str() < then["now"].as_str(), "{now} {then}");
        if !prefix.is_empty() {
            let own = server.create("own", json!({})).await;
            let own = own["metadata"]["creationTimestamp"].as_str().expect("a time");
            assert!(own < "2030", "the time of the cluster is its own: {own}");
        }
    }
}

async fn cluster_81_faults(mut setup: Setup) {
    let server = start(&mut setup).await;
    server.create("a", json!({"n": "0"})).await;
    let (faults, a) = (own("faults"), format!("{CONFIGMAPS}/a"));
    let which = json!({"verb": "update", "resource": "configmaps"});
    let second = json!({"match": which, "answer": {"code": 409}, "skip": 1, "count": 1});
    server.post(faults.clone(), &second).await.expect(201);
    let put = async |n: &str| server.put(a.clone(), &config_map("a", json!({"n": n}))).await;
    assert_eq!(put("1").await.status, 200);
    let refused = put("2").await.failure();
    assert_eq!((&refused["code"], &refused["reason"]), (&json!(409), &json!("Conflict")));
    assert!(refused["message"].as_str().is_some_and(|why| why.contains("configmaps \"a\"")), "{refused}");
    assert_eq!(put("3").await.status, 200, "once");
    assert_eq!(server.get(faults.clone()).await.ok()["items"], json!([]));
    for (code, resource) in [(429, "configmaps"), (500, "configmaps")] {
        let fault = json!({"match": {"resource": resource, "user": "alice"}, "answer": {"code": code}});
        server.post(faults.clone(), &fault).await.expect(201);
        assert_eq!(server.get(a.clone()).await.status, 200, "another user");
        let rule = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]});
        let role = json!({"metadata": {"name": format!("r{code}")}, "rules": [rule]});
        let rbac = "/apis/rbac.authorization.k8s.io/v1";
        server.post(format!("{rbac}/clusterroles"), &role).await.expect(201);
        let role_ref = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": format!("r{code}")});
        let binding = json!({"metadata": {"name": format!("r{code}")}, "roleRef": role_ref,
            "subjects": [{"kind": "User", "name": "alice"}]});
        server.post(format!("{rbac}/clusterrolebindings"), &binding).await.expect(201);
        assert_eq!(server.token("alice-token").get(a.clone()).await.status, code);
        server.delete(faults.clone()).await.ok();
    }
    let close =
        json!({"match": {"verb": "get", "resource": "configmaps"}, "answer": {"code": "close"}, "count": 1});
    server.post(faults.clone(), &close).await.expect(201);
    let broken = server.get(a.clone()).try_send().await;
    let broken = match broken {
        Err(_) => true,
        Ok(response) => http_body_util::BodyExt::collect(response.into_body()).await.is_err(),
    };
    assert!(broken, "the answer breaks off");
    assert_eq!(server.get(a.clone()).await.status, 200);
    let late = json!({"match": {"verb": "list"}, "delay": "50ms", "count": 1});
    server.post(faults.clone(), &late).await.expect(201);
    let begun = Instant::now();
    server.get(CONFIGMAPS).await.ok();
    assert!(begun.elapsed() >= Duration::from_millis(50));
    let never = json!({"match": {"verb": "list"}, "answer": {"code": 500}, "probability": 0});
    server.post(faults.clone(), &never).await.expect(201);
    server.get(CONFIGMAPS).await.ok();
    // A branch has faults of its own.
    server.post(BRANCHES, &json!({"name": "b"})).await.expect(201);
    let fault = json!({"answer": {"code": 500}});
    server.post(format!("{BRANCHES}/b/faults"), &fault).await.expect(201);
    assert_eq!(server.get(on("b", CONFIGMAPS)).await.status, 500);
    assert_eq!(server.get(CONFIGMAPS).await.status, 200);
    // The branch judges who asks, by whatever he shows.
    server.token("root-token").delete(format!("{BRANCHES}/b/faults")).await.ok();
    assert_eq!(server.get(on("b", CONFIGMAPS)).await.status, 200);
}

async fn cluster_81_requests_that_are_recorded(mut setup: Setup) {
    let server = start(&mut setup).await;
    let requests = own("requests");
    server.create("before", json!({})).await;
    server.post(requests.clone(), &json!({"record": true})).await.ok();
    let made = server.create("a", json!({"k": "v"})).await;
    server.token("alice-token").get(CONFIGMAPS).header("user-agent", "spy/1").await.failure();
    server.get(format!("{CONFIGMAPS}/none")).await.failure();
    let recorded = async |query: &str| {
        let text = server.get(format!("{requests}?{query}")).await.text();
        let read = |line: &str| serde_json::from_str::<Value>(line).expect("a line of JSON");
        text.lines().map(read).collect::<Vec<_>>()
    };
    let all = recorded("").await;
    let line = |one: &Value| format!("{} {} {}", one["verb"], one["name"], one["code"]).replace('"', "");
    assert_eq!(
        all.iter().map(line).collect::<Vec<_>>(),
        ["create a 201", "get none 404"],
        "who may not is not let in"
    );
    let [first] = &recorded("verb=create&resource=configmaps").await[..] else { panic!("one request") };
    assert_eq!(first["revision"], made["metadata"]["resourceVersion"]);
    assert_eq!((&first["request"]["data"], &first["response"]), (&json!({"k": "v"}), &made));
    assert_eq!((&first["path"], &first["namespace"]), (&json!(CONFIGMAPS), &json!("t")));
    assert_eq!(recorded(&format!("since={}", first["number"])).await.len(), 1);
    assert_eq!(recorded("user=alice").await.len(), 0);
    server.post(requests.clone(), &json!({"record": false})).await.ok();
    server.create("after", json!({})).await;
    assert_eq!(recorded("").await.len(), 2);
    server.delete(requests.clone()).await.ok();
    assert_eq!(recorded("").await.len(), 0);
}

async fn cluster_81_who_may_use_them(mut setup: Setup) {
    let paths =
        ["reset", "time", "requests", "faults", "watches/close", "watches/compact", "quiet", "objects"];
    let plain = setup.start().await;
    for path in paths.map(own).into_iter().chain([SNAPSHOTS.to_owned()]) {
        assert_eq!(plain.post(path.clone(), &json!({})).await.status, 404, "{path}");
        assert_eq!(plain.get(path.clone()).await.status, 404, "{path}");
    }
    let unknown = plain.post(BRANCHES, &json!({"name": "b", "from": "base"})).await;
    unknown.bad_request("there are no snapshots without --test-endpoints");
    plain.stop().await;
    let server = start(&mut setup).await;
    // Whoever may make branches may not do this.
    let rule = json!({"nonResourceURLs": ["/rowplane/*"], "verbs": ["*"]});
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({"metadata": {"name": "all"}, "rules": [rule]});
    server.post(format!("{rbac}/clusterroles"), &role).await.expect(201);
    let role_ref = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "all"});
    let binding = json!({"metadata": {"name": "all"}, "roleRef": role_ref, "subjects": [{"kind": "User", "name": "alice"}]});
    server.post(format!("{rbac}/clusterrolebindings"), &binding).await.expect(201);
    let alice = server.token("alice-token");
    alice.post(BRANCHES, &json!({"name": "b"})).await.expect(201);
    for path in paths.map(own).into_iter().chain([SNAPSHOTS.to_owned(), format!("{BRANCHES}/b/reset")]) {
        assert_eq!(alice.post(path.clone(), &json!({})).await.status, 403, "{path}");
        assert_eq!(server.anonymous().get(path.clone()).await.status, 403, "{path}");
    }
}

async fn watches_that_are_ended(mut setup: Setup) {
    let server = start(&mut setup).await;
    let at = rv(&server.create("a", json!({})).await);
    let watch = format!("{CONFIGMAPS}?watch=1&resourceVersion={at}");
    let mut maps = server.watch(watch.clone()).await;
    let mut namespaces = server.watch("/api/v1/namespaces?watch=1&resourceVersion=0").await;
    let ended = server.post(own("watches/close"), &json!({"resource": "configmaps"})).await.ok();
    assert_eq!(ended["ended"], 1);
    maps.expect_end().await;
    let mut again = server.watch(watch).await;
    server.create("b", json!({})).await;
    again.expect_named("ADDED", "b").await;
    server.post(own("watches/compact"), &json!({})).await.ok();
    assert_eq!(again.expect("ERROR").await["code"], 410);
    again.expect_end().await;
    let events = namespaces.rest().await;
    assert_eq!(events.last().expect("an event")["object"]["code"], 410);
    assert_eq!(server.post(own("watches/other"), &json!({})).await.status, 404);
}

async fn objects_that_are_seeded(mut setup: Setup) {
    let server = start(&mut setup).await;
    let uid = "8a1c6e5e-0000-4000-8000-000000000001";
    let pod = json!({
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "p", "namespace": "t", "uid": uid, "creationTimestamp": "2020-01-01T00:00:00Z"},
        "spec": {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"},
        "status": {"phase": "Running", "podIP": "10.1.2.3"},
    });
    let map = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "m", "namespace": "t"}});
    let list = json!({"kind": "List", "apiVersion": "v1", "items": [pod, map]});
    let before = server.revision().await;
    let seeded = server.put(own("objects"), &list).await.ok();
    assert_eq!(number(&seeded["revision"]), before + 2);
    let read = server.get("/api/v1/namespaces/t/pods/p").await.ok();
    assert_eq!((&read["status"]["phase"], &read["metadata"]["uid"]), (&json!("Running"), &json!(uid)));
    assert_eq!(read["metadata"]["creationTimestamp"], "2020-01-01T00:00:00Z");
    assert_eq!(read["spec"]["restartPolicy"], "Always", "with defaults");
    let first = server.get(format!("{CONFIGMAPS}/m")).await.ok();
    assert!(first["metadata"]["uid"].is_string(), "{first}");
    // Again, it replaces.
    let map = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "m", "namespace": "t"}, "data": {"k": "v"}});
    server.put(own("objects"), &map).await.ok();
    let second = server.get(format!("{CONFIGMAPS}/m")).await.ok();
    assert_eq!((&second["data"]["k"], &second["metadata"]["uid"]), (&json!("v"), &first["metadata"]["uid"]));
    let yaml = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: yaml, namespace: t}\n---\n\
                kind: Namespace\napiVersion: v1\nmetadata: {name: z}\n";
    let put = server.request(::http::Method::PUT, own("objects")).body("application/yaml", yaml);
    put.await.ok();
    assert_eq!(server.get(format!("{CONFIGMAPS}/yaml")).await.status, 200);
    assert_eq!(server.get("/api/v1/namespaces/z").await.status, 200);
    // All or nothing.
    let newest = server.revision().await;
    for (bad, why) in [
        (json!({"kind": "List", "items": [map, {"kind": "Nothing", "apiVersion": "v1"}]}), "nothing of kind"),
        (json!({"kind": "List", "items": [map, map]}), "twice"),
        (json!({"kind": "ConfigMap", "apiVersion": "v1"}), "has no name"),
        (json!([]), "is no object"),
    ] {
        let refused = server.put(own("objects"), &bad).await.failure();
        assert!(refused["code"] == 400 && refused["message"].to_string().contains(why), "{refused}");
    }
    assert_eq!(server.revision().await, newest);
}

async fn a_server_that_is_quiet(mut setup: Setup) {
    let server = start(&mut setup).await;
    server.create("a", json!({})).await;
    let quiet = server.get(own("quiet?for=20ms")).await.ok();
    assert!(number(&quiet["revision"]) >= 2, "{quiet}");
    assert_eq!(server.get(own("quiet?for=2h&timeout=20ms")).await.status, 504);
    assert_eq!(server.get(own("quiet?for=-1s")).await.status, 400);
    assert_eq!(server.get(own("quiet?for=soon")).await.status, 400);
}

async fn bad_requests_are_refused(mut setup: Setup) {
    let server = start(&mut setup).await;
    snapshot(&server, "base").await;
    assert_eq!(server.post(SNAPSHOTS, &json!({"name": "base"})).await.status, 409);
    assert_eq!(server.post(BRANCHES, &json!({"name": "b", "from": "base", "at": "rv-1"})).await.status, 400);
    assert_eq!(server.post(BRANCHES, &json!({"name": "b", "from": 1})).await.status, 400);
    for (path, bad) in [
        ("snapshots", json!({})),
        ("snapshots", json!({"name": "A b"})),
        ("time", json!({"advance": "soon"})),
        ("time", json!({"advance": "-1h"})),
        ("time", json!({"freeze": "noon"})),
        ("time", json!({"stop": true})),
        ("requests", json!({})),
        ("faults", json!({})),
        ("faults", json!({"answer": {"code": 404}})),
        ("faults", json!({"answer": {"code": 500}, "probability": 2})),
        ("faults", json!({"answer": {"code": 500}, "count": 0})),
        ("faults", json!({"answer": {"code": 500}, "match": {"kind": "Pod"}})),
        ("faults", json!({"answer": 500})),
        ("reset", json!({"to": 1})),
        ("reset", json!({"from": "base"})),
        ("watches/close", json!({"resource": 1})),
    ] {
        let path = if path == "snapshots" { SNAPSHOTS.to_owned() } else { own(path) };
        assert_eq!(server.post(path.clone(), &bad).await.status, 400, "{path} {bad}");
    }
    assert_eq!(server.put(own("time"), &json!({})).await.status, 405);
    assert_eq!(server.post(format!("{BRANCHES}/none/reset"), &json!({})).await.status, 404);
}
