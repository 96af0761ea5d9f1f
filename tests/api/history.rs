//! The history of objects: assertions 31 to 34 of `docs/spec/time-and-sql.md`.

use serde_json::{Value, json};

use crate::support::server::{CONFIGMAPS, Setup, deployment, rv};

on_every_store! {
    time_and_sql_31_who_has_changed_what,
    time_and_sql_32_changes_of_nothing,
    time_and_sql_33_impersonation,
    time_and_sql_34_pages,
    changes_of_a_namespace,
}

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/t/deployments";

fn items(history: &Value) -> &[Value] {
    history["items"].as_array().expect("items")
}

/// A member of all entries.
fn all<'a>(history: &'a Value, member: &str) -> Vec<&'a Value> {
    items(history).iter().map(|entry| &entry[member]).collect()
}

async fn time_and_sql_31_who_has_changed_what(setup: Setup) {
    let tokens = "root-token,root,u-2,\"system:masters\"\nanna-token,anna,u-3,\"system:masters\"\n";
    std::fs::write(setup.file("tokens.csv"), tokens).expect("write");
    let server = setup.start().await;
    let (root, anna) = (server.token("root-token"), server.token("anna-token"));
    let web = format!("{DEPLOYMENTS}/web");
    root.post(format!("{DEPLOYMENTS}?fieldManager=helm"), &deployment("web", json!({}))).await.expect(201);
    let patch = anna.patch(format!("{web}?fieldManager=kubectl"), &json!({"spec": {"replicas": 5}}));
    patch.await.ok();
    let mut object = root.get(&web).await.ok();
    object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("j");
    root.put(&web, &object).await.ok();
    let mut object = root.get(&web).await.ok();
    object["status"]["observedGeneration"] = json!(2);
    root.put(format!("{web}/status"), &object).await.ok();
    root.delete(format!("{web}?propagationPolicy=Background")).await.ok();
    root.post(DEPLOYMENTS, &deployment("web", json!({}))).await.expect(201);
    let history = root.get(format!("/history{web}")).await.ok();
    assert_eq!(history["kind"], "ObjectHistory");
    assert_eq!(history["apiVersion"], "history.rowplane.dev/v1alpha1");
    let events = ["ADDED", "DELETED", "MODIFIED", "MODIFIED", "MODIFIED", "ADDED"];
    assert_eq!(all(&history, "event"), events);
    assert_eq!(all(&history, "user"), ["root", "root", "root", "root", "anna", "root"]);
    assert_eq!(all(&history, "verb"), ["create", "delete", "update", "update", "patch", "create"]);
    let [_, _, status, image, replicas, added] = items(&history) else { panic!("{history}") };
    assert_eq!(status["subresource"], "status");
    assert_eq!(status["changed"], json!(["status.observedGeneration"]));
    assert_eq!(image["changed"], json!(["spec.template.spec.containers[name=app].image"]));
    assert_eq!((&replicas["changed"], &replicas["manager"]), (&json!(["spec.replicas"]), &json!("kubectl")));
    assert_eq!((&added["manager"], &added["previous"]), (&json!("helm"), &Value::Null));
    assert_eq!(replicas["previous"], added["revision"]);
    let mut uids = all(&history, "uid");
    uids.dedup();
    assert_eq!(uids.len(), 2, "{history}");
    assert!(all(&history, "time").windows(2).all(|pair| pair[0].as_str() >= pair[1].as_str()));
    let whole = root.get(format!("/history{web}?include=object&diff=true&limit=4")).await.ok();
    let image = &items(&whole)[3];
    assert_eq!(image["object"]["spec"]["template"]["spec"]["containers"][0]["image"], "j");
    assert!(!image["patch"].as_array().expect("a patch").is_empty(), "{whole}");
    assert_eq!(root.get(format!("/history{DEPLOYMENTS}/none")).await.status, 404);
}

async fn time_and_sql_32_changes_of_nothing(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({"n": "1"})).await;
    let before = server.revision().await;
    server.set("a", json!({"n": "1"})).await;
    assert_eq!(server.revision().await, before);
    // The same value from another manager changes who owns it.
    let path = format!("{CONFIGMAPS}/a?fieldManager=other&force=true");
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"n": "1"}});
    let body = serde_json::to_vec(&object).expect("JSON");
    server.request(http::Method::PATCH, path).body("application/apply-patch+yaml", body).await.ok();
    let history = server.get(format!("/history{CONFIGMAPS}/a")).await.ok();
    assert_eq!(all(&history, "event"), ["MODIFIED", "ADDED"]);
    let touched = &items(&history)[0];
    assert_eq!((&touched["changed"], &touched["manager"]), (&json!([]), &json!("other")));
}

async fn time_and_sql_33_impersonation(setup: Setup) {
    let server = setup.start().await;
    let body = json!({"metadata": {"name": "a"}});
    let request = server.post(CONFIGMAPS, &body).header("impersonate-user", "clara");
    request.header("impersonate-group", "system:masters").await.expect(201);
    let history = server.get(format!("/history{CONFIGMAPS}/a")).await.ok();
    let entry = &items(&history)[0];
    assert_eq!((&entry["user"], &entry["impersonator"]), (&json!("clara"), &json!("kubernetes-admin")));
}

async fn time_and_sql_34_pages(setup: Setup) {
    let server = setup.start().await;
    let first = rv(&server.create("a", json!({"n": "0"})).await);
    for n in 1..7 {
        server.set("a", json!({"n": n.to_string()})).await;
    }
    let path = format!("/history{CONFIGMAPS}/a?limit=2");
    let whole = server.get(format!("/history{CONFIGMAPS}/a")).await.ok();
    let (mut seen, mut page) = (Vec::new(), server.get(&path).await.ok());
    for n in 7.. {
        seen.extend(items(&page).to_vec());
        let rest = page["metadata"]["continue"].as_str().expect("a token").to_owned();
        if rest.is_empty() {
            break;
        }
        server.set("a", json!({"n": n.to_string()})).await;
        page = server.get(format!("{path}&continue={rest}")).await.ok();
    }
    assert_eq!(seen, items(&whole));
    let between = server.get(format!("/history{CONFIGMAPS}/a?after={first}&before={}", first + 3)).await.ok();
    for revision in all(&between, "revision") {
        let revision: u64 = revision.as_str().expect("text").parse().expect("a number");
        assert!(first < revision && revision < first + 3, "{between}");
    }
    let refused = server.get(format!("/history{CONFIGMAPS}/a?limit=x")).await.failure();
    assert_eq!(refused["code"], 400);
}

async fn changes_of_a_namespace(setup: Setup) {
    const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
    let server = setup.start().await;
    server.namespace("u").await;
    server.create("a", json!({"n": "0"})).await;
    let b = json!({"metadata": {"name": "b"}});
    server.post("/api/v1/namespaces/u/configmaps", &b).await.expect(201);
    let secret = json!({"metadata": {"name": "s"}});
    server.post("/api/v1/namespaces/t/secrets", &secret).await.expect(201);
    server.set("a", json!({"n": "1"})).await;
    let names = |list: &Value| -> Vec<String> {
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let name = |entry: &Value| format!("{}/{}", text(&entry["resource"]), text(&entry["name"]));
        items(list).iter().map(name).collect()
    };
    let list = server.get("/history?namespace=t&resource=configmaps,secrets").await.ok();
    assert_eq!(list["kind"], "ChangeList");
    assert_eq!(names(&list), ["configmaps/a", "secrets/s", "configmaps/a"]);
    let list = server.get("/history?resource=configmaps&limit=1").await.ok();
    assert_eq!(names(&list), ["configmaps/a"]);
    let rest = list["metadata"]["continue"].as_str().expect("a token");
    let list = server.get(format!("/history?resource=configmaps&limit=1&continue={rest}")).await.ok();
    assert_eq!(names(&list), ["configmaps/b"]);
    assert_eq!(server.get("/history?resource=nothing").await.failure()["code"], 400);
    // Others see only the kinds that they may list, now and in the past.
    let alice = server.token("alice-token");
    assert_eq!(alice.get("/history?namespace=t").await.status, 403);
    assert_eq!(alice.get(format!("/history{CONFIGMAPS}/a")).await.status, 403);
    assert_eq!(server.anonymous().get("/history?namespace=t").await.status, 403);
    let rule = json!({"verbs": ["get", "list", "asof"], "apiGroups": [""], "resources": ["configmaps"]});
    let role = json!({"metadata": {"name": "r"}, "rules": [rule]});
    server.post(format!("{RBAC}/namespaces/t/roles"), &role).await.expect(201);
    let binding = json!({"metadata": {"name": "r"}, "roleRef": {"kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "name": "alice"}]});
    server.post(format!("{RBAC}/namespaces/t/rolebindings"), &binding).await.expect(201);
    let list = alice.get("/history?namespace=t").await.ok();
    assert_eq!(names(&list), ["configmaps/a", "configmaps/a"]);
    assert!(list["warnings"][0].as_str().expect("a warning").contains("secrets"), "{list}");
    assert_eq!(alice.get("/history").await.status, 403);
    assert_eq!(alice.get(format!("/history{CONFIGMAPS}/a")).await.status, 200);
    let range = server.get("/history/range?buckets=10").await.ok();
    assert_eq!(range["now"]["revision"], server.revision().await.to_string());
    assert_eq!(range["buckets"].as_array().expect("buckets").len(), 10);
}
