//! SQL over what is stored; assertions 44 to 55 of `docs/spec/time-and-sql.md` by number. 54 is a measurement.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use http::Method;
use serde_json::{Value, json};

use crate::support::client::{Answer, Client};
use crate::support::server::{CONFIGMAPS, Setup, TestServer, deployment};

mod generated;
mod rights;

on_every_store! {
    time_and_sql_44_tables_of_kinds,
    time_and_sql_44_tables_of_definitions_come_and_go,
    time_and_sql_45_a_statement_sees_one_revision,
    time_and_sql_46_the_past,
    time_and_sql_47_columns,
    time_and_sql_48_quantities_and_broken_rows,
    time_and_sql_49_nothing_but_select,
    time_and_sql_50_endless_statements,
    time_and_sql_52_a_broken_answer_has_no_end,
    time_and_sql_53_joins_scan_each_table_once,
    forms_of_answers,
    views_and_tables_of_all_kinds,
    too_many_statements,
}

on_both_databases! {
    time_and_sql_48_broken_rows_fail_by_name,
}

const SQL: &str = "/rowplane/sql";

/// Sends a statement with options.
async fn send(client: &Client, query: &str, mut options: Value) -> Answer {
    options["query"] = query.into();
    client.post(SQL, &options).accept("application/x-ndjson").await
}

/// The lines of an answer that is complete.
fn lines(query: &str, answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{query}: {}", answer.text());
    let lines: Vec<Value> =
        answer.text().lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    let end = lines.last().expect("a last line");
    assert_eq!(end["end"], true, "{query}: {end}");
    assert_eq!(end["rows"], lines.len() - 2, "{query}");
    lines
}

/// The rows of a statement.
async fn rows(client: &Client, query: &str) -> Vec<Value> {
    let mut lines = lines(query, &send(client, query, json!({})).await);
    lines.pop();
    lines.remove(0);
    lines
}

/// The warnings of a statement.
async fn warnings(client: &Client, query: &str) -> Vec<String> {
    let lines = lines(query, &send(client, query, json!({})).await);
    let warnings = lines.last().expect("a last line")["warnings"].as_array().expect("warnings");
    warnings.iter().map(|text| text.as_str().expect("a text").to_owned()).collect()
}

/// The message of a statement that is refused with 400.
async fn refused(client: &Client, query: &str) -> String {
    let answer = send(client, query, json!({})).await;
    assert_eq!(answer.status, 400, "{query}: {}", answer.text());
    answer.json()["message"].as_str().expect("a message").to_owned()
}

fn pod(name: &str, node: Option<&str>, cpu: &str) -> Value {
    let mut pod = json!({"metadata": {"name": name, "labels": {"app": name}}, "spec": {"containers": [
        {"name": "c", "image": "registry/a:1", "resources": {"requests": {"cpu": cpu}}}]}});
    if let Some(node) = node {
        pod["spec"]["nodeName"] = node.into();
    }
    pod
}

const PODS: &str = "/api/v1/namespaces/t/pods";

async fn time_and_sql_44_tables_of_kinds(setup: Setup) {
    let server = setup.start().await;
    let resources =
        rows(&server, "SELECT name, table_name, namespaced FROM resources WHERE NOT custom").await;
    assert!(resources.len() > 55, "{}", resources.len());
    for row in &resources {
        for name in [&row[0], &row[1]] {
            let query = format!("SELECT count(*), count(spec_x) FROM \"{}\"", name.as_str().expect("a name"));
            let message = refused(&server, &query).await;
            assert!(message.starts_with("no such column: spec_x"), "{message}");
            let query = format!("SELECT count(*) FROM \"{}\"", name.as_str().expect("a name"));
            rows(&server, &query).await;
        }
    }
    let names: BTreeSet<&str> = resources.iter().filter_map(|row| row[0].as_str()).collect();
    for name in ["pods", "secrets", "deployments.apps", "customresourcedefinitions.apiextensions.k8s.io"] {
        assert!(names.contains(name), "{name}");
    }
    assert!(!names.contains("tokenreviews.authentication.k8s.io"));
    server.create("a", json!({"k": "v"})).await;
    let found =
        rows(&server, "SELECT namespace, name, data->>'k', immutable FROM configmaps WHERE name = 'a'").await;
    assert_eq!(found, [json!(["t", "a", "v", null])]);
    let found = rows(&server, "SELECT namespace, name FROM namespaces WHERE name = 't'").await;
    assert_eq!(found, [json!([null, "t"])]);
    server.stop().await;
}

fn definition(plural: &str, kind: &str) -> Value {
    json!({
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": {
                    "size": {"type": "integer"}, "ratio": {"type": "number"}, "on": {"type": "boolean", "default": true},
                    "hostPort": {"x-kubernetes-int-or-string": true},
                    "deep": {"type": "object", "properties": {"er": {"type": "string"}}},
                    "list": {"type": "array", "items": {"type": "string"}}}}}}}}]},
    })
}

async fn time_and_sql_44_tables_of_definitions_come_and_go(setup: Setup) {
    let server = setup.start().await;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(refused(&server, "SELECT * FROM wheels").await, "no such table: wheels");
    server.post(definitions, &definition("wheels", "Wheel")).await.expect(201);
    // It can be queried as soon as it is served.
    let path = "/apis/example.com/v1/namespaces/t/wheels";
    server.get(path).await.ok();
    assert_eq!(rows(&server, "SELECT name FROM wheels").await, [] as [Value; 0]);
    let wheel = json!({"apiVersion": "example.com/v1", "kind": "Wheel", "metadata": {"name": "w"},
        "spec": {"size": 3, "ratio": 2, "hostPort": "http", "deep": {"er": "x"}, "list": ["a"]}});
    server.post(path, &wheel).await.expect(201);
    let query = "SELECT name, spec_size, spec_ratio, spec_on, spec_host_port, spec_deep_er, spec->'list' \
                 FROM \"wheels.example.com\"";
    assert_eq!(rows(&server, query).await, [json!(["w", 3, 2, 1, "http", "x", "[\"a\"]"])]);
    server.delete(format!("{definitions}/wheels.example.com")).await.ok();
    while server.get(path).await.status == 200 {
        tokio::task::yield_now().await;
    }
    assert!(refused(&server, "SELECT * FROM wheels").await.starts_with("no such table: wheels"));
    server.stop().await;
}

/// A token is created in one kind before it is deleted in the other, so each revision has one or two, and two only of the same
/// number.
async fn time_and_sql_45_a_statement_sees_one_revision(setup: Setup) {
    let server = setup.start().await;
    let (secrets, token) = ("/api/v1/namespaces/t/secrets", "token");
    server.create(token, json!({})).await;
    let writer = async {
        for _ in 0..40 {
            let secret = json!({"metadata": {"name": token}});
            server.post(secrets, &secret).await.expect(201);
            server.remove(token).await;
            server.create(token, json!({})).await;
            server.delete(format!("{secrets}/{token}")).await.ok();
        }
    };
    let reader = async {
        let mut seen = BTreeSet::new();
        for _ in 0..80 {
            let query = "SELECT (SELECT count(*) FROM configmaps WHERE name = 'token'), \
                         (SELECT count(*) FROM secrets WHERE name = 'token')";
            let found = rows(&server, query).await;
            seen.insert(found[0].to_string());
        }
        assert!(!seen.contains("[0,0]"), "{seen:?}");
    };
    tokio::join!(writer, reader);
    server.stop().await;
}

async fn time_and_sql_46_the_past(setup: Setup) {
    let server = setup.start().await;
    for name in ["a", "b"] {
        server.create(name, json!({"v": "1"})).await;
    }
    let then = server.revision().await;
    server.set("a", json!({"v": "2"})).await;
    server.remove("b").await;
    server.create("c", json!({})).await;
    let list =
        server.get(format!("{CONFIGMAPS}?resourceVersion={then}&resourceVersionMatch=Exact")).await.ok();
    let listed: Vec<Value> = list["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|item| json!([item["metadata"]["name"], item["metadata"]["resourceVersion"], item["data"]]))
        .collect();
    let columns = "name, resource_version, json(data) FROM";
    let read = |rows: Vec<Value>| -> Vec<Value> {
        let row = |row: Value| {
            let data: Value = serde_json::from_str(row[2].as_str().expect("data")).expect("JSON");
            json!([row[0], row[1].to_string(), data])
        };
        rows.into_iter().map(row).collect()
    };
    let of_t = "namespace = 't'";
    let past = rows(&server, &format!("SELECT {columns} configmaps('rv-{then}') WHERE {of_t}")).await;
    assert_eq!(read(past), listed);
    let past =
        rows(&server, &format!("SELECT {columns} configmaps WHERE as_of = 'rv-{then}' AND {of_t}")).await;
    assert_eq!(read(past), listed);
    let query = format!("SELECT {columns} configmaps WHERE {of_t}");
    let lines = lines(&query, &send(&server, &query, json!({"asOf": format!("rv-{then}")})).await);
    assert_eq!(lines[0]["revision"], then.to_string());
    assert_eq!(read(lines[1..lines.len() - 1].to_vec()), listed);
    // What has changed, in one statement.
    let query = format!(
        "SELECT name, b.data->>'v', a.data->>'v' FROM configmaps('rv-{then}') b \
         JOIN configmaps a USING (namespace, name, uid) WHERE a.data <> b.data"
    );
    assert_eq!(rows(&server, &query).await, [json!(["a", "1", "2"])]);
    let future = format!("SELECT * FROM pods('rv-{}')", then + 1_000_000);
    assert_eq!(send(&server, &future, json!({})).await.status, 400);
    assert!(refused(&server, "SELECT * FROM pods('yesterday')").await.contains("yesterday"));
    let answer = send(&server, "SELECT * FROM configmaps('2001-01-01T00:00:00Z')", json!({})).await;
    assert_eq!(answer.status, 410, "{}", answer.text());
    // Who has changed what.
    let query = format!(
        "SELECT event, name, username, verb, previous->>'$.data.v', object->>'$.data.v' FROM changes \
         WHERE resource = 'configmaps' AND namespace = 't' AND revision > {then}"
    );
    let found = rows(&server, &query).await;
    let changed: Vec<Value> = found.iter().map(|row| json!([row[0], row[1], row[4], row[5]])).collect();
    let expected = [
        json!(["ADDED", "c", null, null]),
        json!(["DELETED", "b", "1", null]),
        json!(["MODIFIED", "a", "1", "2"]),
    ];
    assert_eq!(changed, expected);
    server.stop().await;
}

async fn time_and_sql_47_columns(setup: Setup) {
    let server = setup.start().await;
    server.post("/api/v1/nodes", &json!({"metadata": {"name": "n"}})).await.expect(201);
    server.post(PODS, &pod("a", Some("n"), "1500m")).await.expect(201);
    let lines = lines("*", &send(&server, "SELECT * FROM pods", json!({})).await);
    let names: Vec<&str> = lines[0]["columns"]
        .as_array()
        .expect("columns")
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    let expected = [
        "namespace",
        "name",
        "uid",
        "resource_version",
        "generation",
        "created",
        "deleted",
        "labels",
        "annotations",
        "owners",
        "finalizers",
        "spec",
        "status",
    ];
    assert_eq!(names, expected);
    let query = "SELECT spec_node_name, spec->>'nodeName', status_phase, spec_termination_grace_period_seconds, \
                 spec_host_network, labels->>'app', jsonpath(object, '{.spec.containers[0].image}'), \
                 selects(labels, 'app in (a,b)'), selects(labels, 'app!=a'), object->'$.metadata.managedFields', \
                 json_array_length(managed_fields), stored_version, owner_uid, age(created) < 3600 FROM pods";
    let found = rows(&server, query).await;
    let expected = json!(["n", "n", "Pending", 30, null, "a", "registry/a:1", 1, 0, null, 1, "v1", null, 1]);
    assert_eq!(found, [expected]);
    server.stop().await;
}

async fn time_and_sql_48_quantities_and_broken_rows(setup: Setup) {
    let server = setup.start().await;
    server.post(PODS, &pod("a", None, "1500m")).await.expect(201);
    let query = "SELECT quantity(spec->>'$.containers[0].resources.requests.cpu'), quantity('1Ki'), quantity('?'), \
                 quantity(NULL), age('never') FROM pods";
    assert_eq!(rows(&server, query).await, [json!([1.5, 1024.0, null, null, null])]);
    server.stop().await;
}

async fn time_and_sql_48_broken_rows_fail_by_name(setup: Setup) {
    let server = setup.start().await;
    for name in ["a", "bad", "c"] {
        server.create(name, json!({})).await;
    }
    server.stop().await;
    let garbage = if setup.is_sqlite() { "x'7b7b'" } else { "'\\x7b7b'" };
    setup.database.execute(&format!("UPDATE objects SET value = {garbage} WHERE name = 'bad'")).await;
    let server = setup.start().await;
    for columns in ["name", "count(*)", "data"] {
        let query = format!("SELECT {columns} FROM configmaps WHERE namespace = 't'");
        let answer = send(&server, &query, json!({})).await;
        let told = answer.json()["message"].to_string();
        assert!(answer.status == 500 && told.contains("bad"), "{query}: {} {told}", answer.status);
    }
    let query = "SELECT name FROM configmaps WHERE namespace = 't'";
    let lines = lines(query, &send(&server, query, json!({"skipBroken": true})).await);
    assert_eq!(lines[1..3], [json!(["a"]), json!(["c"])]);
    assert_eq!(lines[3]["warnings"], json!(["objects that cannot be decoded were left out: 1"]));
    server.stop().await;
}

async fn time_and_sql_49_nothing_but_select(setup: Setup) {
    let server = setup.start().await;
    for query in [
        "INSERT INTO pods VALUES (1)",
        "UPDATE pods SET name = 'b'",
        "DELETE FROM pods",
        "CREATE TABLE a (b)",
        "ATTACH '/tmp/rowplane-attached' AS a",
        "PRAGMA table_list",
        "VACUUM INTO '/tmp/rowplane-vacuumed'",
        "SELECT load_extension('a')",
        "SELECT readfile('/etc/passwd')",
        "SELECT * FROM sqlite_master",
        "SELECT * FROM pragma_table_list",
        "SELECT 1; SELECT 2",
        "",
    ] {
        refused(&server, query).await;
    }
    for name in ["attached", "vacuumed"] {
        assert!(!std::path::Path::new(&format!("/tmp/rowplane-{name}")).exists());
    }
    let too_long = format!("SELECT '{}'", "a".repeat(70_000));
    assert_eq!(send(&server, &too_long, json!({})).await.status, 413);
    assert!(refused(&server, "SELECT ?").await.contains("1 parameters, and 0 were given"));
    let answer = send(&server, "SELECT ? + 1, ?2", json!({"params": [1, "a"]})).await;
    assert_eq!(lines("params", &answer)[1], json!([2, "a"]));
    let answer = send(&server, "SELECT 1", json!({"surprise": 1})).await;
    assert_eq!(answer.status, 400);
    let answer = server.request(Method::POST, SQL).body("text/plain", "SELECT 1").await;
    assert_eq!(answer.status, 415);
    assert_eq!(server.get(SQL).await.status, 405);
    server.stop().await;
}

const ENDLESS: &str =
    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c";

async fn time_and_sql_50_endless_statements(mut setup: Setup) {
    setup.limits.sql.concurrent = 1;
    setup.limits.sql.timeout = Duration::from_millis(300);
    let server = setup.start().await;
    assert_eq!(send(&server, ENDLESS, json!({})).await.status, 504);
    assert_eq!(send(&server, ENDLESS, json!({"timeout": "0s"})).await.status, 504);
    // The only place is free again, or the next one would wait in vain.
    rows(&server, "SELECT 1").await;
    server.stop().await;
    // A client that goes away ends its statement, though its time is not over.
    setup.limits.sql.timeout = Duration::from_secs(1 << 20);
    let server = setup.start().await;
    let mut statement = Box::pin(send(&server, ENDLESS, json!({})));
    loop {
        // Nobody else gets the place while the statement runs.
        let other = Box::pin(send(&server, "SELECT 1", json!({"timeout": "0s"})));
        match select(statement, other).await {
            Either::Left((ended, _)) => panic!("{ended:?}"),
            Either::Right((other, running)) => {
                statement = running;
                if other.status == 429 {
                    break;
                }
            }
        }
    }
    drop(statement);
    rows(&server, "SELECT 1").await;
    server.stop().await;
}

/// Rows were sent when the error came.
async fn time_and_sql_52_a_broken_answer_has_no_end(setup: Setup) {
    let server = setup.start().await;
    let query = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 100000) \
                 SELECT n, CASE WHEN n = 90000 THEN json('{') ELSE n END FROM c";
    let answer = send(&server, query, json!({})).await;
    assert_eq!(answer.status, 200);
    let text = answer.text();
    let last: Value = serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
    assert_eq!(last, json!({"error": {"reason": "BadRequest", "message": "malformed JSON"}}));
    for accept in ["text/csv", "application/json"] {
        let request = server.post(SQL, &json!({"query": query})).accept(accept);
        let response = request.send().await;
        assert_eq!(response.status(), 200);
        let body = http_body_util::BodyExt::collect(response.into_body()).await;
        assert!(body.is_err(), "{accept}");
    }
    server.stop().await;
}

async fn scanned(server: &TestServer) -> u64 {
    let text = server.get("/metrics").await.text();
    let line = text.lines().find_map(|line| line.strip_prefix("rowplane_sql_rows_scanned_total "));
    line.map_or(0, |count| count.parse().expect("a number"))
}

async fn time_and_sql_53_joins_scan_each_table_once(setup: Setup) {
    let server = setup.start().await;
    for at in 0..60 {
        server.create(&format!("a{at}"), json!({"next": format!("a{}", at + 1)})).await;
    }
    let before = scanned(&server).await;
    let query = "SELECT count(*) FROM configmaps a JOIN configmaps b ON b.name = a.data->>'next' \
                 JOIN configmaps c ON c.data->>'next' = a.name WHERE a.namespace = 't'";
    let names: Vec<String> = (0..1_000).map(|at| format!("'a{}'", at * 2)).collect();
    let of_list = format!("SELECT count(*) FROM configmaps WHERE name IN ({})", names.join(","));
    assert_eq!(rows(&server, query).await, [json!([58])]);
    assert_eq!(rows(&server, &of_list).await, [json!([30])]);
    let read = scanned(&server).await - before;
    // The third table is joined by an expression, which no index helps.
    assert!(read < 8_000, "{read}");
    server.stop().await;
}

async fn forms_of_answers(setup: Setup) {
    let server = setup.start().await;
    let query = "SELECT 1 AS a, 'x,\"y\"' AS b, NULL AS c, 0.5 AS d";
    let of = |accept: &'static str| server.post(SQL, &json!({"query": query})).accept(accept);
    assert_eq!(of("text/csv").await.text(), "a,b,c,d\r\n1,\"x,\"\"y\"\"\",,0.5\r\n");
    let whole = of("application/json").await.ok();
    assert_eq!(whole["rows"], json!([[1, "x,\"y\"", null, 0.5]]));
    assert_eq!(whole["columns"][0], json!({"name": "a", "type": "INTEGER"}));
    assert_eq!((&whole["asOf"], &whole["warnings"]), (&Value::Null, &json!([])));
    let none = server.post(SQL, &json!({"query": "SELECT 1 WHERE 0"})).accept("application/json").await.ok();
    assert_eq!(none["rows"], json!([]));
    assert_eq!(of("image/png").await.status, 406);
    let text = server.request(Method::POST, SQL).body("application/sql", "SELECT 2").accept("text/csv").await;
    assert_eq!(text.text(), "2\r\n2\r\n");
    server.stop().await;
}

async fn views_and_tables_of_all_kinds(setup: Setup) {
    let server = setup.start().await;
    server.post(PODS, &pod("a", None, "250m")).await.expect(201);
    let condition = json!({"type": "Ready", "status": "False", "reason": "R", "message": "m",
        "lastTransitionTime": "2026-01-02T03:04:05Z"});
    let status = json!({"status": {"phase": "Running", "conditions": [condition],
        "containerStatuses": [{"name": "c", "ready": false, "restartCount": 2, "image": "i", "imageID": "", "state": {}}]}});
    server.patch(format!("{PODS}/a/status"), &status).await.ok();
    let found = rows(
        &server,
        "SELECT namespace, pod, kind, name, image, cpu_request, ready, restarts FROM containers",
    )
    .await;
    assert_eq!(found, [json!(["t", "a", "container", "c", "registry/a:1", 0.25, 0, 2])]);
    let query = "SELECT resource, namespace, name, type, status, reason, message, since FROM conditions WHERE reason = 'R'";
    let expected = json!(["pods", "t", "a", "Ready", "False", "R", "m", "2026-01-02T03:04:05Z"]);
    assert_eq!(rows(&server, query).await, std::slice::from_ref(&expected));
    assert_eq!(rows(&server, &format!("{query} AND resource = 'pods'")).await, [expected]);
    assert_eq!(rows(&server, &format!("{query} AND resource = 'nodes'")).await, [] as [Value; 0]);
    let owned = deployment(
        "d",
        json!({"replicas": 0, "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}),
    );
    let made = server.post("/apis/apps/v1/namespaces/t/deployments", &owned).await.expect(201);
    let uid = &made["metadata"]["uid"];
    let child = json!({"metadata": {"name": "child", "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment",
        "name": "d", "uid": uid, "controller": true}]}});
    server.post(CONFIGMAPS, &child).await.expect(201);
    let query = "SELECT o.resource, o.name, o.owner_kind, o.controller, c.owner_uid = o.owner_uid FROM ownership o \
                 JOIN configmaps c ON c.uid = o.uid";
    assert_eq!(rows(&server, query).await, [json!(["configmaps", "child", "Deployment", 1, 1])]);
    server.stop().await;
}

async fn too_many_statements(mut setup: Setup) {
    setup.limits.sql.concurrent = 1;
    setup.limits.sql.timeout = Duration::from_secs(1 << 20);
    let server = setup.start().await;
    // One runs and sixteen wait: there is no place for the eighteenth, which is told at once.
    let mut statements: FuturesUnordered<_> = (0..18).map(|_| send(&server, ENDLESS, json!({}))).collect();
    let answer = statements.next().await.expect("an answer");
    assert_eq!(answer.status, 429, "{}", answer.text());
    assert_eq!(answer.header("retry-after"), Some("1"));
    drop(statements);
    rows(&server, "SELECT 1").await;
    server.stop().await;
}
