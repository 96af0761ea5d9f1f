//! Branches: forks of a cluster below `/branches/NAME`. Assertions 78 of `docs/spec/cluster.md` and 77 of
//! `docs/spec/time-and-sql.md`, and what is said beside them.

use rowplane::revision::Revision;
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::server::{CONFIGMAPS, Setup, TestServer, config_map, names, rv};
use crate::support::webhook::WebhookServer;

on_every_store! {
    cluster_78_forks_of_one_state_go_apart,
    time_and_sql_77_a_fork_of_a_past_state,
    a_past_that_nobody_can_fork,
    a_watch_on_a_branch_tells_of_the_branch,
    a_fork_can_be_forked,
    users_and_rights_are_the_parents,
    a_branch_needs_a_right_of_its_own,
    tokens_of_a_branch_are_good_there_alone,
    values_of_secrets_are_replaced,
    no_webhook_is_called_for_a_branch,
    definitions_and_their_objects_are_in_a_branch,
    bad_branches_are_refused,
    a_deleted_branch_is_gone,
    changes_are_told_to_who_may_read_them,
}

const BRANCHES: &str = "/rowplane/v1/branches";
const SECRETS: &str = "/api/v1/namespaces/t/secrets";

async fn branch(server: &Client, name: &str) -> Value {
    server.post(BRANCHES, &json!({"name": name})).await.expect(201)
}

fn on(branch: &str, path: &str) -> String {
    format!("/branches/{branch}{path}")
}

async fn cluster_78_forks_of_one_state_go_apart(setup: Setup) {
    let server = setup.start().await;
    let a = server.create("a", json!({"k": "0"})).await;
    let before = server.revision().await;
    for name in ["one", "two"] {
        let made = branch(&server, name).await;
        assert_eq!(
            (&made["base"], &made["newest"]),
            (&json!(before.to_string()), &json!(before.to_string()))
        );
        let there = server.get(on(name, &format!("{CONFIGMAPS}/a"))).await.ok();
        assert_eq!(there, a, "the same uid, version and times");
        let list = server.get(on(name, CONFIGMAPS)).await.ok();
        assert_eq!((names(&list), rv(&list)), (vec!["a".to_owned()], before));
    }
    let first = server.post(on("one", CONFIGMAPS), &config_map("b", json!({}))).await.expect(201);
    assert_eq!(rv(&first), before + 1, "revisions go on from the base");
    let changed = server.put(on("one", &format!("{CONFIGMAPS}/a")), &config_map("a", json!({"k": "1"})));
    changed.await.ok();
    server.delete(on("two", &format!("{CONFIGMAPS}/a"))).await.ok();
    server.create("c", json!({})).await;
    assert_eq!(names(&server.get(CONFIGMAPS).await.ok()), ["a", "c"]);
    assert_eq!(names(&server.get(on("one", CONFIGMAPS)).await.ok()), ["a", "b"]);
    assert_eq!(names(&server.get(on("two", CONFIGMAPS)).await.ok()), [""; 0]);
    let value = async |path: String| server.get(path).await.ok()["data"]["k"].clone();
    assert_eq!(value(format!("{CONFIGMAPS}/a")).await, "0");
    assert_eq!(value(on("one", &format!("{CONFIGMAPS}/a"))).await, "1");
    // A list in pages is one of the base's revision, and reads the store once the objects have changed.
    let page = server.get(on("one", &format!("{CONFIGMAPS}?limit=1"))).await.ok();
    let token = page["metadata"]["continue"].as_str().expect("a second page");
    server.delete(on("one", &format!("{CONFIGMAPS}/b"))).await.ok();
    let rest = server.get(on("one", &format!("{CONFIGMAPS}?limit=1&continue={token}"))).await.ok();
    assert_eq!(names(&rest), ["b"]);
}

async fn time_and_sql_77_a_fork_of_a_past_state(setup: Setup) {
    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    const WIDGETS: &str = "/apis/example.com/v1/namespaces/t/widgets";
    let server = setup.start().await;
    let secret = json!({"metadata": {"name": "s"}, "data": {"a": "c2VjcmV0"}});
    let secret = server.post(SECRETS, &secret).await.expect(201);
    let changed = server.create("changed", json!({"k": "0"})).await;
    let gone = server.create("gone", json!({})).await;
    server.post(DEFINITIONS, &definition()).await.expect(201);
    let widget = json!({"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"name": "w"}, "spec": {"n": 1}});
    let widget = server.post(WIDGETS, &widget).await.expect(201);
    let then = server.revision().await;
    server.set("changed", json!({"k": "1"})).await;
    server.remove("gone").await;
    server.create("came", json!({})).await;
    server.delete(format!("{SECRETS}/s")).await.ok();
    server.delete(format!("{DEFINITIONS}/widgets.example.com")).await.ok();
    while server.get(WIDGETS).await.status != 404 {
        tokio::task::yield_now().await;
    }
    let now = server.get(CONFIGMAPS).await.ok()["items"].clone();
    let made = server.post(BRANCHES, &json!({"name": "b", "at": format!("rv-{then}")})).await.expect(201);
    assert_eq!(made["base"], json!(then.to_string()), "{made}");
    // The same objects, with the uids and versions that they had.
    let there = server.get(on("b", CONFIGMAPS)).await.ok();
    assert_eq!((names(&there), rv(&there)), (vec!["changed".to_owned(), "gone".to_owned()], then));
    for object in [&changed, &gone] {
        let name = object["metadata"]["name"].as_str().expect("a name");
        assert_eq!(server.get(on("b", &format!("{CONFIGMAPS}/{name}"))).await.ok(), *object);
    }
    assert_eq!(server.get(on("b", &format!("{WIDGETS}/w"))).await.ok(), widget);
    let replaced = server.get(on("b", &format!("{SECRETS}/s"))).await.ok();
    assert_eq!(rv(&replaced), rv(&secret));
    assert_ne!(replaced["data"]["a"], "c2VjcmV0");
    // It can be written to, and the cluster is as it was.
    let first = server.post(on("b", CONFIGMAPS), &config_map("new", json!({}))).await.expect(201);
    assert!(rv(&first) > then, "revisions go on from those of then");
    let again = json!({"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"name": "v"}, "spec": {"n": 2}});
    server.post(on("b", WIDGETS), &again).await.expect(201);
    server.delete(on("b", &format!("{CONFIGMAPS}/gone"))).await.ok();
    assert_eq!(server.get(CONFIGMAPS).await.ok()["items"], now);
    // A time of day names the newest state before it.
    let time = server.backend.moment_of(Revision(then)).await.expect("a moment").0.committed_ms;
    let time = jiff::Timestamp::from_millisecond(time).expect("a time").to_string();
    let made = server.post(BRANCHES, &json!({"name": "c", "at": time})).await.expect(201);
    let base: u64 = made["base"].as_str().and_then(|base| base.parse().ok()).expect("a revision");
    assert!(base >= then, "{base}");
}

async fn a_past_that_nobody_can_fork(setup: Setup) {
    let server = setup.start().await;
    let then = rv(&server.create("a", json!({})).await);
    let refused = async |at: &str| {
        let refused = server.post(BRANCHES, &json!({"name": "b", "at": at})).await;
        (refused.status, refused.failure()["message"].to_string())
    };
    for (at, why) in [
        ("2999-01-01T00:00:00Z", "is in the future"),
        ("rv-999999999", "is in the future"),
        ("-1h", "is no time to look back to"),
        ("", "is no time to look back to"),
    ] {
        let (status, message) = refused(at).await;
        assert!(status == 400 && message.contains(why), "{at}: {message}");
    }
    assert_eq!(refused("1999-12-31T23:59:59Z").await.0, 410);
    assert_eq!(server.post(BRANCHES, &json!({"name": "b", "at": 7})).await.status, 400);
    // What was given up cannot be forked.
    server.set("a", json!({"k": "1"})).await;
    let newest = server.revision().await;
    server.compact(newest).await;
    server.backend.raise_floors(Revision(newest), &[]).await.expect("raised");
    let (status, message) = refused(&format!("rv-{then}")).await;
    assert!(status == 410 && message.contains("is not kept"), "{message}");
    assert_eq!(server.get(BRANCHES).await.ok()["items"], json!([]));
}

async fn a_watch_on_a_branch_tells_of_the_branch(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({})).await;
    let at = branch(&server, "b").await["base"].as_str().expect("a revision").to_owned();
    let watch = format!("{CONFIGMAPS}?watch=1&resourceVersion={at}");
    let (mut there, mut here) = (server.watch(on("b", &watch)).await, server.watch(&watch).await);
    server.delete(on("b", &format!("{CONFIGMAPS}/a"))).await.ok();
    server.set("a", json!({"k": "1"})).await;
    there.expect_named("DELETED", "a").await;
    here.expect_named("MODIFIED", "a").await;
    server.delete(format!("{BRANCHES}/b")).await.ok();
    there.expect_end().await;
}

async fn a_fork_can_be_forked(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({})).await;
    branch(&server, "b").await;
    server.post(on("b", CONFIGMAPS), &config_map("in-b", json!({}))).await.expect(201);
    server.post(on("b", BRANCHES), &json!({"name": "c"})).await.expect(201);
    let deep = on("b", &on("c", CONFIGMAPS));
    server.post(&deep, &config_map("in-c", json!({}))).await.expect(201);
    assert_eq!(names(&server.get(&deep).await.ok()), ["a", "in-b", "in-c"]);
    assert_eq!(names(&server.get(on("b", CONFIGMAPS)).await.ok()), ["a", "in-b"]);
    assert_eq!(names(&server.get(CONFIGMAPS).await.ok()), ["a"]);
    // A fork of a fork ends with it.
    server.delete(format!("{BRANCHES}/b")).await.ok();
    assert_eq!(server.get(&deep).await.status, 404);
}

/// Makes a ClusterRole with one rule, and binds it to alice.
async fn allow(server: &Client, prefix: &str, name: &str, rule: Value) {
    let rbac = format!("{prefix}/apis/rbac.authorization.k8s.io/v1");
    let role = json!({"metadata": {"name": name}, "rules": [rule]});
    server.post(format!("{rbac}/clusterroles"), &role).await.expect(201);
    let role_ref = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name});
    let subjects = json!([{"kind": "User", "name": "alice"}]);
    let binding = json!({"metadata": {"name": name}, "roleRef": role_ref, "subjects": subjects});
    server.post(format!("{rbac}/clusterrolebindings"), &binding).await.expect(201);
}

async fn users_and_rights_are_the_parents(setup: Setup) {
    let server = setup.start().await;
    let alice = server.token("alice-token");
    let rule = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]});
    allow(&server, "", "lists", rule).await;
    branch(&server, "b").await;
    assert_eq!(alice.get(on("b", CONFIGMAPS)).await.status, 200);
    assert_eq!(alice.get(on("b", SECRETS)).await.status, 403);
    assert_eq!(server.anonymous().get(on("b", CONFIGMAPS)).await.status, 403);
    assert_eq!(server.token("nobody").get(on("b", CONFIGMAPS)).await.status, 401);
    // A right that is given on the branch counts there alone.
    let rule = json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]});
    allow(&server, "/branches/b", "secrets", rule).await;
    assert_eq!(alice.get(on("b", SECRETS)).await.status, 200);
    assert_eq!(alice.get(SECRETS).await.status, 403);
}

async fn a_branch_needs_a_right_of_its_own(setup: Setup) {
    let server = setup.start().await;
    let alice = server.token("alice-token");
    let wanted = json!({"name": "b"});
    assert_eq!(alice.post(BRANCHES, &wanted).await.status, 403);
    assert_eq!(alice.get(BRANCHES).await.status, 403);
    let urls = json!([BRANCHES, format!("{BRANCHES}/*")]);
    allow(&server, "", "posts", json!({"nonResourceURLs": urls, "verbs": ["post", "get"]})).await;
    assert_eq!(alice.post(BRANCHES, &wanted).await.status, 403, "the verb is not that of HTTP");
    allow(&server, "", "branches", json!({"nonResourceURLs": urls, "verbs": ["branch"]})).await;
    let made = alice.post(BRANCHES, &wanted).await.expect(201);
    assert_eq!((&made["user"], &made["secrets"]), (&json!("alice"), &json!("replace")));
    // Secrets are kept for who may read them all.
    let keeping = json!({"name": "k", "secrets": "keep"});
    assert_eq!(alice.post(BRANCHES, &keeping).await.status, 403);
    let rule = json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]});
    allow(&server, "", "secrets", rule).await;
    assert_eq!(alice.post(BRANCHES, &keeping).await.expect(201)["secrets"], "keep");
    assert_eq!(alice.get(BRANCHES).await.ok()["items"].as_array().map(Vec::len), Some(2));
    assert_eq!(alice.delete(format!("{BRANCHES}/k")).await.status, 200);
}

async fn tokens_of_a_branch_are_good_there_alone(setup: Setup) {
    let server = setup.start().await;
    let accounts = "/api/v1/namespaces/t/serviceaccounts";
    server.post(accounts, &json!({"metadata": {"name": "robot"}})).await.expect(201);
    branch(&server, "b").await;
    branch(&server, "c").await;
    let token = async |prefix: &str| {
        let path = format!("{prefix}{accounts}/robot/token");
        let made =
            server.post(path, &json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1"}));
        made.await.expect(201)["status"]["token"].as_str().expect("a token").to_owned()
    };
    let (own, of_branch) = (token("").await, token("/branches/b").await);
    let who = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let ask = async |token: &str, prefix: &str| {
        let asked = json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"});
        server.token(token).post(format!("{prefix}{who}"), &asked).await.status
    };
    assert_eq!((ask(&own, "").await, ask(&own, "/branches/b").await), (201, 201));
    assert_eq!((ask(&of_branch, "").await, ask(&of_branch, "/branches/b").await), (401, 201));
    assert_eq!(ask(&of_branch, "/branches/c").await, 401);
}

async fn values_of_secrets_are_replaced(setup: Setup) {
    let server = setup.start().await;
    let put = async |name: &str, kind: &str, data: Value| {
        let secret = json!({"metadata": {"name": name}, "type": kind, "data": data});
        server.post(SECRETS, &secret).await.expect(201)
    };
    let one = put("one", "Opaque", json!({"a": "c2VjcmV0", "b": "c2VjcmV0", "c": "b3RoZXI="})).await;
    put("pull", "kubernetes.io/dockerconfigjson", json!({".dockerconfigjson": "eyJhdXRocyI6e319"})).await;
    let release = put("release", "helm.sh/release.v1", json!({"release": "c2VjcmV0"})).await;
    branch(&server, "b").await;
    let read = async |name: &str| server.get(on("b", &format!("{SECRETS}/{name}"))).await.ok();
    let replaced = read("one").await;
    assert_eq!((rv(&replaced), &replaced["metadata"]["uid"]), (rv(&one), &one["metadata"]["uid"]));
    let data = &replaced["data"];
    assert!(data["a"] != "c2VjcmV0" && data["a"] == data["b"] && data["a"] != data["c"], "{data}");
    assert_eq!(read("release").await, release, "helm reads its releases there");
    // A Secret with other values is valid.
    let label = json!({"metadata": {"labels": {"l": "v"}}});
    for name in ["one", "pull"] {
        let path = on("b", &format!("{SECRETS}/{name}"));
        server.patch(path, &label).await.ok();
    }
    server.post(BRANCHES, &json!({"name": "k", "secrets": "keep"})).await.expect(201);
    assert_eq!(server.get(on("k", &format!("{SECRETS}/one"))).await.ok(), one);
}

async fn no_webhook_is_called_for_a_branch(setup: Setup) {
    let server = setup.start().await;
    let hook = WebhookServer::start(&[], |seen| {
        let response = json!({"uid": seen.body["request"]["uid"], "allowed": false});
        let review =
            json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response});
        (200, review.to_string())
    })
    .await;
    branch(&server, "before").await;
    let configuration = json!({"metadata": {"name": "denies"}, "webhooks": [{
        "name": "denies.example.com",
        "clientConfig": hook.client_config("/"),
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }]});
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    server.post(path, &configuration).await.expect(201);
    let made = branch(&server, "b").await;
    assert!(made["cut"].to_string().contains("admission webhooks"), "{made}");
    assert_eq!(names(&server.get(on("b", path)).await.ok()), ["denies"], "it is there, and not called");
    assert_eq!(server.post(CONFIGMAPS, &config_map("a", json!({}))).await.status, 400);
    hook.seen();
    server.post(on("b", CONFIGMAPS), &config_map("a", json!({}))).await.expect(201);
    server.post(on("before", path), &configuration).await.expect(201);
    server.post(on("before", CONFIGMAPS), &config_map("a", json!({}))).await.expect(201);
    assert_eq!(hook.seen().len(), 0);
}

/// A definition of Widgets.
fn definition() -> Value {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"n": {"type": "integer"}}}}});
    json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

async fn definitions_and_their_objects_are_in_a_branch(setup: Setup) {
    let server = setup.start().await;
    let (definitions, widgets) = (
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "/apis/example.com/v1/namespaces/t/widgets",
    );
    server.post(definitions, &definition()).await.expect(201);
    let widget = |name: &str| json!({"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"name": name}, "spec": {"n": 1}});
    let first = server.post(widgets, &widget("a")).await.expect(201);
    branch(&server, "b").await;
    assert_eq!(server.get(on("b", &format!("{widgets}/a"))).await.ok(), first);
    server.post(on("b", widgets), &widget("b")).await.expect(201);
    // Without the definition in the branch, the objects stay in the parent.
    server.delete(on("b", &format!("{definitions}/widgets.example.com"))).await.ok();
    let mut there = server.get(on("b", widgets)).await.status;
    while there != 404 {
        tokio::task::yield_now().await;
        there = server.get(on("b", widgets)).await.status;
    }
    assert_eq!(names(&server.get(widgets).await.ok()), ["a"]);
    // Another definition of the name begins without objects.
    server.post(on("b", definitions), &definition()).await.expect(201);
    assert_eq!(names(&server.get(on("b", widgets)).await.ok()), [""; 0]);
}

async fn bad_branches_are_refused(setup: Setup) {
    let server = setup.start().await;
    branch(&server, "b").await;
    let refused = async |body: Value| server.post(BRANCHES, &body).await.status;
    assert_eq!(refused(json!({"name": "b"})).await, 409);
    for bad in [
        json!({}),
        json!({"name": ""}),
        json!({"name": "A"}),
        json!({"name": "a/b"}),
        json!({"name": ".."}),
        json!({"name": "a".repeat(64)}),
        json!({"name": 7}),
        json!({"name": "c", "secrets": "show"}),
        json!({"name": "c", "color": "red"}),
        json!([]),
    ] {
        assert_eq!(refused(bad.clone()).await, 400, "{bad}");
    }
    assert_eq!(refused(json!({"name": "c", "x": "y".repeat(70_000)})).await, 413);
    assert_eq!(server.put(BRANCHES, &json!({"name": "c"})).await.status, 405);
    for path in [format!("{BRANCHES}/none"), format!("{BRANCHES}/none/changes"), format!("{BRANCHES}/b/x")] {
        assert_eq!(server.get(&path).await.status, 404, "{path}");
    }
    let none = server.get(on("none", CONFIGMAPS)).await;
    assert_eq!(none.failure()["message"], "branches.rowplane.dev \"none\" not found");
    assert_eq!(server.anonymous().get(on("none", CONFIGMAPS)).await.status, 403);
}

async fn a_deleted_branch_is_gone(setup: Setup) {
    let server: TestServer = setup.start().await;
    let metric = async || {
        let text = server.get("/metrics").await.text();
        let line = text.lines().find(|line| line.starts_with("rowplane_branches ")).map(str::to_owned);
        line.expect("the metric")
    };
    branch(&server, "b").await;
    assert_eq!(metric().await, "rowplane_branches 1");
    server.delete(format!("{BRANCHES}/b")).await.ok();
    assert_eq!(metric().await, "rowplane_branches 0");
    assert_eq!(server.get(on("b", CONFIGMAPS)).await.status, 404);
    assert_eq!(server.delete(format!("{BRANCHES}/b")).await.status, 404);
    // Its name is free again, and nothing is left of it.
    server.create("new", json!({})).await;
    branch(&server, "b").await;
    assert_eq!(names(&server.get(on("b", CONFIGMAPS)).await.ok()), ["new"]);
}

async fn changes_are_told_to_who_may_read_them(setup: Setup) {
    let server = setup.start().await;
    for name in ["changed", "gone", "same"] {
        server.create(name, json!({"k": "0"})).await;
    }
    branch(&server, "b").await;
    let path = |name: &str| on("b", &format!("{CONFIGMAPS}/{name}"));
    server.put(path("changed"), &config_map("changed", json!({"k": "1"}))).await.ok();
    server.post(on("b", CONFIGMAPS), &config_map("came", json!({}))).await.expect(201);
    server.delete(path("gone")).await.ok();
    server.create("elsewhere", json!({})).await;
    let told = server.get(format!("{BRANCHES}/b/changes")).await.ok();
    let items = told["items"].as_array().expect("items");
    let line =
        |item: &Value| format!("{} {} {}", item["event"], item["resource"], item["name"]).replace('"', "");
    let lines: Vec<String> = items.iter().map(line).collect();
    assert_eq!(lines, ["MODIFIED configmaps changed", "ADDED configmaps came", "DELETED configmaps gone"]);
    assert_eq!(
        (&items[0]["before"]["data"]["k"], &items[0]["after"]["data"]["k"]),
        (&json!("0"), &json!("1"))
    );
    let alice = server.token("alice-token");
    let urls = json!([format!("{BRANCHES}/*")]);
    allow(&server, "", "branches", json!({"nonResourceURLs": urls, "verbs": ["branch"]})).await;
    let told = alice.get(format!("{BRANCHES}/b/changes")).await.ok();
    assert_eq!((&told["hidden"], &told["items"]), (&json!(3), &json!([])));
}
