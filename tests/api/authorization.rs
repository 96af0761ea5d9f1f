//! May they: roles and bindings, nodes, reviews of access (assertions 44 to 78 of `docs/spec/auth.md`).

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::database::Database;
use crate::support::postgres::Schema;
use crate::support::proxy::{Direction, Flow, Proxy};
use crate::support::server::{CONFIGMAPS, Setup, TestServer, config_map};
use rowplane::auth::authorizer::Mode;
use rowplane::server::datastore::Datastore;

on_every_store! {
    auth_44_47_48_what_is_asked_is_what_the_path_says,
    auth_46_52_53_roles_and_bindings,
    auth_49_a_put_that_creates_needs_the_right_to_create,
    auth_54_bindings_count_from_their_answer_on,
    auth_55_56_reasons,
    auth_57_what_roles_and_bindings_have_to_be,
    auth_58_59_nobody_grants_what_he_does_not_have,
    auth_60_61_bindings_and_aggregation_rules,
    auth_62_roles_that_consist_of_others,
    auth_64_65_what_is_missing_comes_back_at_the_next_start,
    auth_66_70_nodes,
    auth_71_modes,
    auth_76_78_reviews,
}

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const SECRETS: &str = "/api/v1/namespaces/t/secrets";

fn users(setup: &Setup) {
    let lines = [
        "root-token,root,u-2,system:masters",
        "alice-token,alice,u-1",
        "bob-token,bob,,devs",
        "sa-token,system:serviceaccount:t:robot,",
        "node-token,system:node:n,,system:nodes",
        "other-node-token,system:node:m,,system:nodes",
        "fake-node-token,system:node:n,",
    ];
    std::fs::write(setup.file("tokens.csv"), lines.map(|line| format!("{line}\n")).concat()).expect("write");
}

async fn start(setup: &Setup) -> TestServer {
    users(setup);
    setup.start().await
}

fn rule(verbs: &[&str], groups: &[&str], resources: &[&str]) -> Value {
    json!({"verbs": verbs, "apiGroups": groups, "resources": resources})
}

fn user(name: &str) -> Value {
    json!({"kind": "User", "name": name})
}

impl TestServer {
    async fn cluster_role(&self, name: &str, rules: &[Value]) -> Value {
        let role = json!({"metadata": {"name": name}, "rules": rules});
        self.post(format!("{RBAC}/clusterroles"), &role).await.expect(201)
    }

    async fn role(&self, name: &str, rules: &[Value]) -> Value {
        let role = json!({"metadata": {"name": name}, "rules": rules});
        self.post(format!("{RBAC}/namespaces/t/roles"), &role).await.expect(201)
    }

    async fn bind(&self, kind: &str, name: &str, subjects: &[Value]) -> Value {
        let binding = binding(kind, name, subjects);
        self.post(format!("{RBAC}/namespaces/t/rolebindings"), &binding).await.expect(201)
    }

    async fn bind_cluster(&self, name: &str, subjects: &[Value]) -> Value {
        let binding = binding("ClusterRole", name, subjects);
        self.post(format!("{RBAC}/clusterrolebindings"), &binding).await.expect(201)
    }
}

/// A binding that has the name of its role.
fn binding(kind: &str, name: &str, subjects: &[Value]) -> Value {
    json!({"metadata": {"name": name}, "roleRef": {"kind": kind, "name": name}, "subjects": subjects})
}

async fn message(refused: impl IntoFuture<Output = crate::support::client::Answer>) -> String {
    let refused = refused.await.failure();
    assert_eq!(refused["code"], 403, "{refused}");
    refused["message"].as_str().expect("a message").to_owned()
}

async fn auth_44_47_48_what_is_asked_is_what_the_path_says(setup: Setup) {
    let server = start(&setup).await;
    let alice = server.token("alice-token");
    let token = "/api/v1/namespaces/t/serviceaccounts/a/token";
    assert_eq!(
        message(alice.post(token, &json!({}))).await,
        "serviceaccounts \"a\" is forbidden: User \"alice\" cannot create resource \"serviceaccounts/token\" in API \
         group \"\" in the namespace \"t\""
    );
    assert_eq!(
        message(alice.get("/api/v1/namespaces/t")).await,
        "namespaces \"t\" is forbidden: User \"alice\" cannot get resource \"namespaces\" in API group \"\" in the \
         namespace \"t\""
    );
    for (path, verb) in [
        (format!("{CONFIGMAPS}?watch=false"), "list"),
        (format!("{CONFIGMAPS}?watch=1"), "watch"),
        ("/api/v1/watch/pods".to_owned(), "watch"),
    ] {
        assert!(message(alice.get(path)).await.contains(&format!("cannot {verb} resource")));
    }
    // With resourceNames, a list of one object is one object.
    let mut named = rule(&["list", "deletecollection", "create"], &[""], &["configmaps"]);
    named["resourceNames"] = json!(["x"]);
    server.role("named", &[named]).await;
    server.bind("Role", "named", &[user("alice")]).await;
    assert_eq!(alice.get(format!("{CONFIGMAPS}?fieldSelector=metadata.name=x")).await.status, 200);
    assert_eq!(alice.get(format!("{CONFIGMAPS}?fieldSelector=metadata.name=y")).await.status, 403);
    assert_eq!(alice.get(CONFIGMAPS).await.status, 403);
    assert_eq!(alice.delete(format!("{CONFIGMAPS}?fieldSelector=metadata.name=x")).await.status, 403);
    assert_eq!(alice.post(CONFIGMAPS, &config_map("x", json!({}))).await.status, 403);
}

/// 9, 45, 50: who asks in odd ways.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_9_45_50_names_that_are_not_believed_and_requests_that_make_no_sense() {
    let setup = Setup::new(crate::support::database::Database::memory());
    let server = start(&setup).await;
    let alice = server.token("alice-token");
    let text = message(
        alice.get(CONFIGMAPS).header("x-remote-user", "root").header("x-remote-group", "system:masters"),
    )
    .await;
    assert!(text.contains("User \"alice\" cannot list"), "{text}");
    let text = message(server.get(CONFIGMAPS).header("impersonate-user", "<b>\"")).await;
    assert!(text.contains("User \"&lt;b&gt;\\\"\" cannot list resource \"configmaps\""), "{text}");
    let (unknown, rubbish) = ("/api/v1/namespaces/t/nosuch", json!({"kind": "Pod", "spec": 7}));
    assert!(message(alice.get(unknown)).await.contains("cannot list resource \"nosuch\""));
    assert_eq!(server.get(unknown).await.status, 404);
    assert!(
        message(alice.post(CONFIGMAPS, &rubbish)).await.contains("cannot create resource \"configmaps\"")
    );
    assert_eq!(server.post(CONFIGMAPS, &rubbish).await.status, 400);
    let unknown = alice.get("/api/v1/watch").await;
    let why = "failed to create RequestInfo: unable to determine kind and namespace from url, /api/v1/watch";
    let text = format!("Internal Server Error: \"/api/v1/watch\": {why}\n");
    assert_eq!((unknown.status, unknown.text()), (500, text));
}

async fn auth_46_52_53_roles_and_bindings(setup: Setup) {
    let server = start(&setup).await;
    server.cluster_role("reader", &[rule(&["get", "list"], &[""], &["configmaps", "namespaces"])]).await;
    let subjects = [
        user("alice"),
        json!({"kind": "Group", "name": "devs"}),
        json!({"kind": "ServiceAccount", "name": "robot"}),
    ];
    server.bind("ClusterRole", "reader", &subjects).await;
    for token in ["alice-token", "bob-token", "sa-token"] {
        let user = server.token(token);
        user.get(CONFIGMAPS).await.ok();
        user.get("/api/v1/namespaces/t").await.ok();
        for path in ["/api/v1/namespaces", "/api/v1/configmaps", "/api/v1/namespaces/default/configmaps"] {
            assert_eq!(user.get(path).await.status, 403, "{token} {path}");
        }
        assert_eq!(user.post(CONFIGMAPS, &config_map("x", json!({}))).await.status, 403);
    }
    // Of the cluster, everywhere; paths only so.
    let paths = json!({"verbs": ["get"], "nonResourceURLs": ["/metrics"]});
    server.cluster_role("everywhere", &[rule(&["list"], &[""], &["configmaps"]), paths]).await;
    let alice = server.token("alice-token");
    server.bind("ClusterRole", "everywhere", &[user("alice")]).await;
    assert_eq!(alice.get("/metrics").await.status, 403);
    server.bind_cluster("everywhere", &[user("alice")]).await;
    assert_eq!(alice.get("/metrics").await.status, 200);
    alice.get("/api/v1/configmaps").await.ok();
    // Discovery is for everybody who has a name.
    alice.get("/apis").await.ok();
    alice.get("/openapi/v3").await.ok();
}

async fn auth_49_a_put_that_creates_needs_the_right_to_create(setup: Setup) {
    let server = start(&setup).await;
    server.role("updater", &[rule(&["get", "update", "patch"], &["coordination.k8s.io"], &["leases"])]).await;
    server.bind("Role", "updater", &[user("alice")]).await;
    let alice = server.token("alice-token");
    let lease = "/apis/coordination.k8s.io/v1/namespaces/t/leases/l";
    let text = "leases.coordination.k8s.io \"l\" is forbidden: User \"alice\" cannot create resource \"leases\" in API \
                group \"coordination.k8s.io\" in the namespace \"t\"";
    assert_eq!(message(alice.put(lease, &json!({"metadata": {"name": "l"}}))).await, text);
    let applied = json!({"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": "l"}});
    let apply = alice.request(http::Method::PATCH, format!("{lease}?fieldManager=m"));
    assert_eq!(message(apply.body("application/apply-patch+yaml", applied.to_string())).await, text);
}

async fn auth_54_bindings_count_from_their_answer_on(setup: Setup) {
    let server = start(&setup).await;
    server.role("reader", &[rule(&["list"], &[""], &["configmaps"])]).await;
    let alice = server.token("alice-token");
    for _ in 0..20 {
        assert_eq!(alice.get(CONFIGMAPS).await.status, 403);
        server.bind("Role", "reader", &[user("alice")]).await;
        assert_eq!(alice.get(CONFIGMAPS).await.status, 200);
        server.delete(format!("{RBAC}/namespaces/t/rolebindings/reader")).await.ok();
    }
    server.bind("Role", "reader", &[user("alice")]).await;
    for verb in ["get", "list"] {
        let rules = json!({"rules": [rule(&[verb], &[""], &["configmaps"])]});
        server.patch(format!("{RBAC}/namespaces/t/roles/reader"), &rules).await.ok();
        assert_eq!(alice.get(CONFIGMAPS).await.status == 200, verb == "list");
    }
}

/// What one server has answered counts for whatever another one is asked afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_54_rights_come_and_go_on_every_server_at_once() {
    let setup = Setup::new(crate::support::database::Database::postgres().await);
    let one = start(&setup).await;
    let other = setup.start_empty().await;
    one.role("reader", &[rule(&["list"], &[""], &["configmaps"])]).await;
    let alice = other.token("alice-token");
    for _ in 0..20 {
        assert_eq!(alice.get(CONFIGMAPS).await.status, 403);
        one.bind("Role", "reader", &[user("alice")]).await;
        assert_eq!(alice.get(CONFIGMAPS).await.status, 200);
        one.delete(format!("{RBAC}/namespaces/t/rolebindings/reader")).await.ok();
    }
    for verb in ["get", "list", "get", "list"] {
        if verb == "get" {
            one.bind("Role", "reader", &[user("alice")]).await;
        }
        let rules = json!({"rules": [rule(&[verb], &[""], &["configmaps"])]});
        one.patch(format!("{RBAC}/namespaces/t/roles/reader"), &rules).await.ok();
        assert_eq!(alice.get(CONFIGMAPS).await.status == 200, verb == "list");
        if verb == "list" {
            one.delete(format!("{RBAC}/namespaces/t/rolebindings/reader")).await.ok();
        }
    }
}

async fn review(client: &Client, spec: Value) -> Value {
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    client.post(path, &json!({"spec": spec})).await.expect(201)["status"].clone()
}

async fn auth_55_56_reasons(setup: Setup) {
    let server = start(&setup).await;
    server.bind("ClusterRole", "nowhere", &[user("alice")]).await;
    server.bind("Role", "missing", &[user("alice")]).await;
    let text = message(server.token("alice-token").get(CONFIGMAPS)).await;
    assert!(
        text.ends_with(
            ": rbac: RBAC: [role.rbac.authorization.k8s.io \"missing\" not found, clusterrole.rbac.authorization.k8s.io \
             \"nowhere\" not found]"
        ),
        "{text}"
    );
    server.cluster_role("c", &[rule(&["list"], &[""], &["configmaps"])]).await;
    server.role("r", &[rule(&["get"], &[""], &["configmaps"])]).await;
    server.bind_cluster("c", &[user("alice")]).await;
    let robot = json!({"kind": "ServiceAccount", "name": "robot", "namespace": "t"});
    server.bind("Role", "r", &[robot]).await;
    let asked = |user: &str, verb: &str| {
        let attributes = json!({"verb": verb, "resource": "configmaps", "namespace": "t"});
        json!({"user": user, "resourceAttributes": attributes})
    };
    assert_eq!(
        review(&server, asked("alice", "list")).await,
        json!({"allowed": true, "reason": "RBAC: allowed by ClusterRoleBinding \"c\" of ClusterRole \"c\" to User \"alice\""})
    );
    assert_eq!(
        review(&server, asked("system:serviceaccount:t:robot", "get")).await,
        json!({"allowed": true, "reason": "RBAC: allowed by RoleBinding \"r/t\" of Role \"r\" to ServiceAccount \"robot/t\""})
    );
}

async fn auth_57_what_roles_and_bindings_have_to_be(setup: Setup) {
    let server = start(&setup).await;
    let role = |rules: Value| json!({"metadata": {"name": "r"}, "rules": [rules]});
    let text = async |path: &str, object: &Value| {
        let refused = server.post(format!("{RBAC}/{path}"), object).await.failure();
        assert_eq!(refused["code"], 422, "{refused}");
        refused["message"].as_str().expect("a message").to_owned()
    };
    for (path, rules, why) in [
        ("clusterroles", json!({"apiGroups": [""], "resources": ["pods"]}), "rules[0].verbs: Required value"),
        (
            "clusterroles",
            json!({"verbs": ["get"], "resources": ["pods"]}),
            "must supply at least one api group",
        ),
        ("clusterroles", json!({"verbs": ["get"], "apiGroups": [""]}), "must supply at least one resource"),
        (
            "clusterroles",
            json!({"verbs": ["get"], "nonResourceURLs": ["/"], "apiGroups": [""], "resources": ["pods"]}),
            "rules cannot apply to both regular resources and non-resource URLs",
        ),
        (
            "namespaces/t/roles",
            json!({"verbs": ["get"], "nonResourceURLs": ["/"]}),
            "namespaced rules cannot apply to non-resource URLs",
        ),
    ] {
        let text = text(path, &role(rules)).await;
        assert!(text.contains(why), "{text}");
    }
    server.cluster_role("a", &[]).await;
    server.bind_cluster("a", &[user("alice")]).await;
    let changed = json!({"roleRef": {"kind": "ClusterRole", "name": "view"}});
    let refused = server.patch(format!("{RBAC}/clusterrolebindings/a"), &changed).await.failure();
    assert!(
        refused["message"].as_str().is_some_and(|text| text.ends_with("field is immutable")),
        "{refused}"
    );
}

async fn auth_58_59_nobody_grants_what_he_does_not_have(setup: Setup) {
    let server = start(&setup).await;
    let roles = format!("{RBAC}/namespaces/t/roles");
    server
        .role(
            "maker",
            &[
                rule(&["create", "update", "get", "patch"], &["rbac.authorization.k8s.io"], &["roles"]),
                rule(&["get"], &[""], &["configmaps"]),
            ],
        )
        .await;
    server.bind("Role", "maker", &[user("alice")]).await;
    let alice = server.token("alice-token");
    let wanted = |name: &str, rules: &[Value]| json!({"metadata": {"name": name}, "rules": rules});
    let too_much = wanted(
        "much",
        &[rule(&["get", "list"], &[""], &["secrets"]), rule(&["get"], &[""], &["configmaps"])],
    );
    assert_eq!(
        message(alice.post(&roles, &too_much)).await,
        "roles.rbac.authorization.k8s.io \"much\" is forbidden: user \"alice\" (groups=[\"system:authenticated\"]) is \
         attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"secrets\"], \
         Verbs:[\"get\" \"list\"]}"
    );
    alice.post(&roles, &wanted("held", &[rule(&["get"], &[""], &["configmaps"])])).await.expect(201);
    // A label is a change as any other; what garbage collection changes is not.
    server.post(&roles, &too_much).await.expect(201);
    let label = json!({"metadata": {"labels": {"a": "b"}, "finalizers": null}});
    assert_eq!(alice.patch(format!("{roles}/much"), &label).await.status, 403);
    server.patch(format!("{roles}/much"), &json!({"metadata": {"finalizers": ["x.io/y"]}})).await.ok();
    alice.patch(format!("{roles}/much"), &json!({"metadata": {"finalizers": []}})).await.ok();
    server.role("escalator", &[rule(&["escalate"], &["rbac.authorization.k8s.io"], &["roles"])]).await;
    server.bind("Role", "escalator", &[user("alice")]).await;
    alice.post(&roles, &wanted("more", &[rule(&["*"], &["*"], &["*"])])).await.expect(201);
    server.post(&roles, &wanted("all", &[rule(&["*"], &["*"], &["*"])])).await.expect(201);
}

async fn auth_60_61_bindings_and_aggregation_rules(setup: Setup) {
    let server = start(&setup).await;
    server
        .cluster_role(
            "binder",
            &[rule(&["create"], &["rbac.authorization.k8s.io"], &["rolebindings", "clusterroles"])],
        )
        .await;
    server.bind_cluster("binder", &[user("alice")]).await;
    let alice = server.token("alice-token");
    let bindings = format!("{RBAC}/namespaces/t/rolebindings");
    let held = binding("ClusterRole", "system:basic-user", &[user("bob")]);
    alice.post(&bindings, &held).await.expect(201);
    let secrets = binding("ClusterRole", "view", &[user("bob")]);
    let text = message(alice.post(&bindings, &secrets)).await;
    assert!(
        text.starts_with("rolebindings.rbac.authorization.k8s.io \"view\" is forbidden: user \"alice\""),
        "{text}"
    );
    let missing = binding("ClusterRole", "x", &[user("bob")]);
    let text = "rolebindings.rbac.authorization.k8s.io \"x\" not found";
    let details = json!({"name": "x", "group": "rbac.authorization.k8s.io", "kind": "rolebindings"});
    alice.post(&bindings, &missing).await.fails(404, "NotFound", text, details);
    let mut bind = rule(&["bind"], &["rbac.authorization.k8s.io"], &["clusterroles"]);
    bind["resourceNames"] = json!(["view", "x"]);
    server.role("may-bind", &[bind]).await;
    server.bind("Role", "may-bind", &[user("alice")]).await;
    alice.post(&bindings, &secrets).await.expect(201);
    alice.post(&bindings, &missing).await.expect(201);
    let aggregated = json!({"metadata": {"name": "sum"},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}});
    assert_eq!(
        message(alice.post(format!("{RBAC}/clusterroles"), &aggregated)).await,
        "clusterroles.rbac.authorization.k8s.io \"sum\" is forbidden: must have cluster-admin privileges to use the \
         aggregationRule"
    );
}

async fn auth_62_roles_that_consist_of_others(setup: Setup) {
    let server = start(&setup).await;
    let view = server.get(format!("{RBAC}/clusterroles/view")).await.ok();
    let count = view["rules"].as_array().expect("rules").len();
    assert!(count > 5, "{view}");
    let has_widgets = |role: &Value| role["rules"].to_string().contains("widgets");
    let version =
        server.get(format!("{RBAC}/clusterroles")).await.ok()["metadata"]["resourceVersion"].clone();
    let watch = |name: &str| {
        let version = version.as_str().expect("a version");
        format!("{RBAC}/clusterroles?watch=1&fieldSelector=metadata.name={name}&resourceVersion={version}")
    };
    let mut views = server.watch(watch("view")).await;
    let mut widgets = json!({"metadata": {"name": "widgets", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}});
    widgets["rules"] = json!([rule(&["get"], &["ex.io"], &["widgets"])]);
    server.post(format!("{RBAC}/clusterroles"), &widgets).await.expect(201);
    for whole in ["view", "edit", "admin"] {
        assert!(has_widgets(&server.get(format!("{RBAC}/clusterroles/{whole}")).await.ok()), "{whole}");
    }
    let grown = views.expect("MODIFIED").await;
    let managers = grown["metadata"]["managedFields"].to_string();
    assert!(has_widgets(&grown) && managers.contains("clusterrole-aggregation-controller"), "{managers}");
    let unlabelled = json!({"metadata": {"labels": null}});
    server.patch(format!("{RBAC}/clusterroles/widgets"), &unlabelled).await.ok();
    assert_eq!(views.expect("MODIFIED").await["rules"], view["rules"]);
    // Rules that a client writes into it are not kept, and its next write changes nothing.
    let rules = json!({"rules": widgets["rules"], "metadata": {"annotations": {"seen": "yes"}}});
    let kept = server.patch(format!("{RBAC}/clusterroles/view"), &rules).await.ok();
    assert_eq!((&kept["rules"], &kept["metadata"]["annotations"]["seen"]), (&view["rules"], &json!("yes")));
    assert_eq!(server.patch(format!("{RBAC}/clusterroles/view"), &rules).await.ok(), kept);
    // A new one has its rules when it is answered, and loses those of roles that go.
    let mut own = json!({"metadata": {"name": "own"}, "rules": [rule(&["get"], &["ex.io"], &["gone"])]});
    own["aggregationRule"] =
        json!({"clusterRoleSelectors": [{"matchLabels": {"part": "of"}}, {"matchLabels": {"of": "own"}}]});
    let parted = json!({"metadata": {"labels": {"of": "own"}}});
    server.patch(format!("{RBAC}/clusterroles/widgets"), &parted).await.ok();
    let own = server.post(format!("{RBAC}/clusterroles"), &own).await.expect(201);
    assert_eq!(own["rules"], widgets["rules"]);
    let dry = server.delete(format!("{RBAC}/clusterroles/widgets?dryRun=All")).await;
    assert_eq!(dry.status, 200);
    assert_eq!(server.get(format!("{RBAC}/clusterroles/own")).await.ok(), own);
    server.delete(format!("{RBAC}/clusterroles/widgets")).await.ok();
    assert_eq!(server.get(format!("{RBAC}/clusterroles/own")).await.ok()["rules"], Value::Null);
}

/// At the revision of every write of a role, roles consist of what their selectors match, whichever server wrote them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_62_no_write_leaves_a_role_without_what_it_consists_of() {
    let setup = Setup::new(crate::support::database::Database::postgres().await);
    let one = start(&setup).await;
    let other = setup.start_empty().await;
    let servers = [&one, &other];
    let writes = (0..24).map(|index| {
        let server = servers[index % 2];
        async move {
            let path = format!("{RBAC}/clusterroles");
            let mut role = json!({"metadata": {"name": format!("role-{index}"), "labels": {"part": "yes"}}});
            role["rules"] = json!([rule(&["get"], &["ex.io"], &[&format!("things{index}")])]);
            if index % 8 == 0 {
                // Its own rules would stay as long as there is no part: then upstream's controller applies none, and owns none.
                role["rules"] = json!([]);
                role["metadata"]["labels"] = json!({"whole": "yes"});
                role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"part": "yes"}}]});
            }
            let role = server.post(&path, &role).await.expect(201);
            if index % 3 == 1 {
                server.delete(format!("{path}/role-{index}")).await.ok();
            }
            role["metadata"]["resourceVersion"].as_str().expect("a version").to_owned()
        }
    });
    let mut versions = futures_util::future::join_all(writes).await;
    versions.push(other.revision().await.to_string());
    for version in versions {
        let exact = format!("resourceVersion={version}&resourceVersionMatch=Exact");
        let list = one.get(format!("{RBAC}/clusterroles?{exact}")).await.ok();
        let labelled = |label: &str| {
            let roles = list["items"].as_array().expect("items").iter();
            let roles = roles.filter(|role| role["metadata"]["labels"][label] == "yes");
            roles.map(|role| role["rules"].as_array().cloned().unwrap_or_default()).collect::<Vec<_>>()
        };
        let parts = labelled("part").concat();
        for whole in labelled("whole") {
            assert_eq!(whole, parts, "at {version}");
        }
    }
}

async fn auth_64_65_what_is_missing_comes_back_at_the_next_start(setup: Setup) {
    let server = start(&setup).await;
    let readiness = server.get("/readyz?verbose").await.text();
    assert!(readiness.contains("[+]poststarthook/rbac/bootstrap-roles ok"), "{readiness}");
    let node = format!("{RBAC}/clusterroles/system:node");
    let original = server.get(&node).await.ok();
    assert_eq!(original["metadata"]["labels"], json!({"kubernetes.io/bootstrapping": "rbac-defaults"}));
    let extra = rule(&["get"], &["ex.io"], &["widgets"]);
    server.patch(&node, &json!({"rules": [extra]})).await.ok();
    let protected = format!("{RBAC}/clusterroles/system:heapster");
    let kept = json!({"rules": null, "metadata": {"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}}});
    server.patch(&protected, &kept).await.ok();
    let foreign = format!("{RBAC}/clusterrolebindings/system:basic-user");
    let uid = server.get(&foreign).await.ok()["metadata"]["uid"].clone();
    server.delete(&foreign).await.ok();
    let taken = json!({"metadata": {"name": "system:basic-user"}, "roleRef": {"kind": "ClusterRole", "name": "view"}});
    server.post(format!("{RBAC}/clusterrolebindings"), &taken).await.expect(201);
    server.delete(format!("{RBAC}/clusterroles/system:kube-dns")).await.ok();
    let before = server.revision().await;
    server.stop().await;

    let server = setup.start().await;
    let rules = server.get(&node).await.ok()["rules"].clone();
    assert_eq!(rules[0], extra);
    assert!(rules.as_array().is_some_and(|rules| rules.len() > 50), "{rules}");
    assert_eq!(server.get(&protected).await.ok()["rules"], Value::Null);
    let binding = server.get(&foreign).await.ok();
    assert_eq!(binding["roleRef"]["name"], "system:basic-user");
    assert_ne!(binding["metadata"]["uid"], uid);
    server.get(format!("{RBAC}/clusterroles/system:kube-dns")).await.ok();
    assert!(server.revision().await > before);
}

async fn auth_66_70_nodes(setup: Setup) {
    let server = start(&setup).await;
    let (node, other) = (server.token("node-token"), server.token("other-node-token"));
    let secret = format!("{SECRETS}/s");
    server.post(SECRETS, &json!({"metadata": {"name": "s"}})).await.expect(201);
    let refused = message(node.get(&secret)).await;
    assert!(refused.ends_with(": node: no relationship found between node 'n' and this object"), "{refused}");
    let pods = "/api/v1/namespaces/t/pods";
    let pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n", "serviceAccountName": "a",
        "containers": [{"name": "c", "image": "i"}],
        "volumes": [{"name": "v", "secret": {"secretName": "s"}}]}});
    server.post(pods, &pod).await.expect(201);
    node.get(&secret).await.ok();
    assert_eq!(other.get(&secret).await.status, 403);
    assert_eq!(server.token("fake-node-token").get(&secret).await.status, 403);
    node.get(format!("{pods}/p")).await.ok();
    assert!(message(other.get(format!("{pods}/p"))).await.contains("node 'm'"));
    // Lists by selector alone.
    let refused = message(node.get(pods)).await;
    assert!(
        refused.ends_with(": node: can only list/watch pods with spec.nodeName field selector"),
        "{refused}"
    );
    node.get("/api/v1/pods?fieldSelector=spec.nodeName=n").await.ok();
    assert_eq!(node.get("/api/v1/pods?fieldSelector=spec.nodeName=m").await.status, 403);
    let refused = message(node.get("/api/v1/nodes")).await;
    assert!(
        refused.ends_with(": node: node 'n' cannot read all nodes, only its own Node object"),
        "{refused}"
    );
    let refused = message(node.get("/api/v1/nodes/m")).await;
    assert!(refused.ends_with(": node: node 'n' cannot read 'm', only its own Node object"), "{refused}");
    assert_eq!(node.get("/api/v1/nodes/n").await.status, 404);
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    assert_eq!(node.get(format!("{leases}/n")).await.status, 404);
    let refused = message(node.get(format!("{leases}/m"))).await;
    assert!(
        refused.ends_with("can only access node lease with the same name as the requesting node"),
        "{refused}"
    );
    server.delete(format!("{pods}/p?gracePeriodSeconds=0")).await.ok();
    assert_eq!(node.get(&secret).await.status, 403);
}

async fn auth_71_modes(mut setup: Setup) {
    setup.authorization = vec![Mode::AlwaysDeny].into();
    let server = start(&setup).await;
    let refused = message(server.token("alice-token").get(CONFIGMAPS)).await;
    assert!(refused.ends_with(": alwaysdeny: Everything is forbidden."), "{refused}");
    server.get(CONFIGMAPS).await.ok();
    server.stop().await;
    setup.authorization = vec![Mode::AlwaysAllow].into();
    let server = setup.start().await;
    server.token("alice-token").get(CONFIGMAPS).await.ok();
}

async fn auth_76_78_reviews(setup: Setup) {
    let server = start(&setup).await;
    server.role("reader", &[rule(&["list"], &[""], &["configmaps"])]).await;
    server
        .bind("Role", "reader", &[user("alice"), json!({"kind": "Group", "name": "system:authenticated"})])
        .await;
    let attributes = json!({"verb": "list", "resource": "configmaps", "namespace": "t"});
    let alice = server.token("alice-token");
    let path = |kind: &str| format!("/apis/authorization.k8s.io/v1/{kind}");
    let own = json!({"spec": {"resourceAttributes": attributes}});
    let own = alice.post(path("selfsubjectaccessreviews"), &own).await.expect(201);
    assert_eq!(own["status"]["allowed"], true);
    // Groups are taken as they are given.
    assert_eq!(
        review(&server, json!({"user": "bob", "resourceAttributes": attributes})).await,
        json!({"allowed": false})
    );
    let mut selected = attributes.clone();
    selected["fieldSelector"] = json!({"rawSelector": "a"});
    let status = review(&server, json!({"user": "alice", "resourceAttributes": selected})).await;
    assert_eq!(status["evaluationError"], "spec.resourceAttributes.fieldSelector ignored due to parse error");
    assert_eq!(status["allowed"], true);
    let rules =
        alice.post(path("selfsubjectrulesreviews"), &json!({"spec": {"namespace": "t"}})).await.expect(201);
    let status = &rules["status"];
    assert_eq!(status["incomplete"], false);
    let of_role = rule(&["list"], &[""], &["configmaps"]);
    assert!(status["resourceRules"].as_array().is_some_and(|rules| rules.contains(&of_role)), "{status}");
    let of_discovery = status["nonResourceRules"].to_string();
    assert!(of_discovery.contains("/openapi/*"), "{status}");
    assert!(rules["spec"] == json!({}));
    let nowhere = alice.post(path("selfsubjectrulesreviews"), &json!({"spec": {}})).await;
    nowhere.bad_request("no namespace on request");
    let named = json!({"metadata": {"name": "x"}, "spec": {"user": "u", "resourceAttributes": attributes}});
    let refused = server.post(path("subjectaccessreviews"), &named).await.failure();
    assert!(refused["message"].as_str().is_some_and(|text| text.ends_with("must be empty")), "{refused}");
}

/// A write that goes ahead by what its server knows, and fails before its commit: the text of the failure names what
/// somebody without the right must not know. The server hears late that another one has taken the right away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_is_not_told_to_whose_right_has_ended() {
    let schema = Schema::create().await;
    let proxy = Proxy::start(schema.target()).await;
    let detour = Datastore::Postgres(schema.url_through(proxy.address().port()).into());
    let mut setup = Setup::new(Database::Postgres(schema));
    let other = start(&setup).await;
    other.create("bad", json!({})).await;
    other.role("writer", &[rule(&["patch"], &[""], &["configmaps"])]).await;
    let bindings = format!("{RBAC}/namespaces/t/rolebindings");
    let binding = json!({"metadata": {"name": "alice"}, "roleRef": {"kind": "Role", "name": "writer"},
        "subjects": [user("alice")]});
    other.post(&bindings, &binding).await.expect(201);
    setup.database.execute("UPDATE objects SET value = '\\x7b7b' WHERE name = 'bad'").await;
    setup.detour = Some(detour);
    let server = setup.start_empty().await;
    let (alice, path) = (server.token("alice-token"), format!("{CONFIGMAPS}/bad"));
    let patch = async || alice.patch(&path, &json!({"data": {}})).await;
    let told = patch().await;
    assert!(told.status == 500 && told.text().contains("bad"), "{told:?}");

    proxy.set_flow(Direction::Down, Flow::Delayed(Duration::from_millis(200)));
    other.delete(format!("{bindings}/alice")).await.ok();
    let answer = patch().await;
    proxy.set_flow(Direction::Down, Flow::Open);
    assert_eq!(answer.status, 403, "{answer:?}");
    assert_eq!(answer.failure()["reason"], "Forbidden");
    server.stop().await;
    other.stop().await;
}
