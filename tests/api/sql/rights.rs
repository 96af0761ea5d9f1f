//! Whose rows: nobody sees by SQL what a list would not show him.

use serde_json::{Value, json};

use super::{lines, pod, refused, rows, send, warnings};
use crate::support::client::Client;
use crate::support::server::{Setup, TestServer};

on_every_store! {
    time_and_sql_51_rows_of_some_namespaces,
    time_and_sql_51_no_trick_shows_more,
    who_may_ask,
}

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Alice may ask, and list ConfigMaps and Pods in two of five namespaces.
async fn start(setup: &Setup) -> TestServer {
    let server = setup.start().await;
    let rules = json!([{"verbs": ["post"], "nonResourceURLs": ["/rowplane/sql"]}]);
    role(&server, "sql", &rules).await;
    let binding = binding("sql");
    server.post(format!("{RBAC}/clusterrolebindings"), &binding).await.expect(201);
    let rules = json!([{"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps", "pods"]},
        {"verbs": ["list"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["secret"]}]);
    role(&server, "lists", &rules).await;
    for at in 1..=5 {
        let namespace = format!("n{at}");
        server.namespace(&namespace).await;
        for plural in ["configmaps", "secrets"] {
            let name = plural.trim_end_matches('s').trim_start_matches("config");
            let object = json!({"metadata": {"name": name}});
            server.post(format!("/api/v1/namespaces/{namespace}/{plural}"), &object).await.expect(201);
        }
        server.post(format!("/api/v1/namespaces/{namespace}/pods"), &pod("p", None, "1")).await.expect(201);
        if at % 2 == 0 {
            let path = format!("{RBAC}/namespaces/{namespace}/rolebindings");
            server.post(path, &self::binding("lists")).await.expect(201);
        }
    }
    server
}

async fn role(server: &TestServer, name: &str, rules: &Value) {
    let role = json!({"metadata": {"name": name}, "rules": rules});
    server.post(format!("{RBAC}/clusterroles"), &role).await.expect(201);
}

fn binding(role: &str) -> Value {
    json!({"metadata": {"name": role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "name": "alice"}]})
}

async fn time_and_sql_51_rows_of_some_namespaces(setup: Setup) {
    let server = start(&setup).await;
    let alice = server.token("alice-token");
    let query = "SELECT namespace, name FROM configmaps ORDER BY 1";
    let found = rows(&alice, query).await;
    assert_eq!(found, [json!(["n2", "map"]), json!(["n4", "map"])]);
    assert_eq!(
        warnings(&alice, query).await,
        ["configmaps: only rows of 2 namespaces, which \"alice\" may list"]
    );
    // Where all is asked for, anything less is refused.
    let answer = send(&alice, query, json!({"strict": true})).await;
    assert_eq!(answer.status, 403, "{}", answer.text());
    let within = |namespaces: Value, strict: bool| {
        send(&alice, query, json!({"namespaces": namespaces, "strict": strict}))
    };
    let answer = within(json!(["n2"]), true).await;
    assert_eq!(lines(query, &answer)[1], json!(["n2", "map"]));
    assert_eq!(within(json!(["n1", "n2"]), true).await.status, 403);
    assert_eq!(lines(query, &within(json!(["n1", "n4"]), false).await)[1], json!(["n4", "map"]));
    for plural in ["secrets", "nodes", "namespaces"] {
        let query = format!("SELECT * FROM {plural}");
        assert_eq!(rows(&alice, &query).await, [] as [Value; 0]);
        assert_eq!(
            warnings(&alice, &query).await,
            [format!("{plural}: no rows, since \"alice\" may list none")]
        );
    }
    // The admin sees all.
    assert_eq!(rows(&server, "SELECT count(*) FROM secrets WHERE name = 'secret'").await, [json!([5])]);
    assert_eq!(warnings(&server, "SELECT count(*) FROM secrets").await, [] as [&str; 0]);
    server.stop().await;
}

/// The statements of an attacker: none of them has a row, a count or a message that tells of other namespaces or Secrets.
async fn time_and_sql_51_no_trick_shows_more(setup: Setup) {
    let server = start(&setup).await;
    let alice = server.token("alice-token");
    let then = server.revision().await;
    for query in [
        "SELECT * FROM secrets UNION ALL SELECT * FROM secrets",
        "SELECT object, data FROM secrets",
        "SELECT managed_fields FROM secrets WHERE namespace = 'n2' AND name = 'secret'",
        "SELECT s.uid FROM configmaps c JOIN secrets s USING (namespace)",
        "SELECT namespace FROM configmaps WHERE namespace IN ('n1', 'n3', 'n5')",
        "SELECT namespace FROM configmaps WHERE namespace = 'n1' AND name = 'map'",
        "SELECT 1 FROM configmaps c, pods p WHERE p.namespace = 'n' || (1 + 0 * length(c.name))",
        "SELECT * FROM pods WHERE namespace || '' = 'n1' OR uid IS NULL",
        "SELECT * FROM containers WHERE namespace NOT IN ('n2', 'n4')",
        "SELECT * FROM conditions WHERE resource IN ('secrets', 'nodes')",
        "SELECT * FROM ownership WHERE namespace = 'n1'",
        "WITH s AS MATERIALIZED (SELECT * FROM secrets) SELECT * FROM s",
        "SELECT name FROM configmaps WHERE json_array_length((SELECT json_group_array(data) FROM secrets)) > 0",
    ] {
        assert_eq!(rows(&alice, query).await, [] as [Value; 0], "{query}");
    }
    for (query, expected) in [
        ("SELECT count(*) FROM secrets", json!([0])),
        ("SELECT count(*), max(namespace), min(namespace) FROM pods", json!([2, "n4", "n2"])),
        (
            "SELECT (SELECT group_concat(name) FROM secrets), (SELECT count(*) FROM namespaces)",
            json!([null, 0]),
        ),
        ("SELECT count(DISTINCT resource_version) FROM configmaps", json!([2])),
        ("SELECT count(*) FROM pods a, pods b", json!([4])),
    ] {
        assert_eq!(rows(&alice, query).await, [expected], "{query}");
    }
    let past = format!("SELECT * FROM configmaps('rv-{then}')");
    assert_eq!(rows(&alice, &past).await, [] as [Value; 0], "the past needs a right of its own");
    // Plans and messages are the same whether there are rows or not.
    let plan = |client: Client| async move {
        let query = "EXPLAIN QUERY PLAN SELECT * FROM secrets s JOIN pods p ON p.uid = s.owner_uid";
        rows(&client, query).await
    };
    let before = plan(server.token("alice-token")).await;
    let message = refused(&alice, "SELECT json(name) FROM configmaps").await;
    for at in 0..20 {
        let object = json!({"metadata": {"name": format!("more{at}")}});
        server.post("/api/v1/namespaces/n1/secrets", &object).await.expect(201);
        server.post("/api/v1/namespaces/n1/configmaps", &object).await.expect(201);
    }
    assert_eq!(plan(server.token("alice-token")).await, before);
    assert_eq!(refused(&alice, "SELECT json(name) FROM configmaps").await, message);
    assert_eq!(
        refused(&alice, "SELECT json(name) FROM secretz").await,
        refused(&server, "SELECT json(name) FROM secretz").await
    );
    server.stop().await;
}

async fn who_may_ask(setup: Setup) {
    let server = setup.start().await;
    let alice = server.token("alice-token");
    assert_eq!(send(&alice, "SELECT 1", json!({})).await.status, 403);
    assert_eq!(send(&server.anonymous(), "SELECT 1", json!({})).await.status, 403);
    server.stop().await;
    let mut setup = setup;
    setup.limits.sql.is_on = false;
    let server = setup.start().await;
    assert_eq!(send(&server, "SELECT 1", json!({})).await.status, 404);
    server.stop().await;
}
