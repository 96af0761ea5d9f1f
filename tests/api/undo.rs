//! The commands that look back: assertions 35 to 43 of `docs/spec/time-and-sql.md`, by the program itself.

use std::process::Output;

use serde_json::{Value, json};

use crate::support::server::{CONFIGMAPS, Setup, TestServer, deployment, rv};

on_every_store! {
    time_and_sql_35_a_diff_and_its_exit_codes,
    time_and_sql_36_each_field_is_blamed_once,
    time_and_sql_37_undo_plans_first,
    time_and_sql_38_39_what_was_deleted_comes_back,
    time_and_sql_40_what_was_made_again_is_refused,
    time_and_sql_41_owners_that_are_gone,
    time_and_sql_42_prune,
    time_and_sql_43_without_the_right,
    a_command_sees_the_past,
}

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/t/deployments";

/// Runs the program as the admin.
async fn run(setup: &Setup, arguments: &[&str]) -> Output {
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_rowplane"));
    command.args(arguments).env("KUBECONFIG", setup.file("admin.kubeconfig")).env("TZ", "UTC");
    command.output().await.expect("it runs")
}

/// The output of the program in the namespace `t`, and its exit code.
async fn printed(setup: &Setup, arguments: &[&str]) -> (String, i32) {
    let output = run(setup, &[arguments, &["-n", "t"]].concat()).await;
    let text = String::from_utf8(output.stdout).expect("text");
    let errors = String::from_utf8(output.stderr).expect("text");
    (text + &errors, output.status.code().expect("a code"))
}

/// The revision of now as a time.
async fn now(server: &TestServer) -> String {
    format!("rv-{}", server.revision().await)
}

async fn time_and_sql_35_a_diff_and_its_exit_codes(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({"n": "1"})).await;
    server.create("gone", json!({})).await;
    let then = now(&server).await;
    server.set("a", json!({"n": "2"})).await;
    server.remove("gone").await;
    server.create("b", json!({})).await;
    let (text, code) = printed(&setup, &["diff", "cm/a", "--from", &then]).await;
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("\n-  \"n\": \"1\"\n+  \"n\": \"2\"\n"), "{text}");
    let (text, code) = printed(&setup, &["diff", "cm/a", "--from", &then, "--to", &then]).await;
    assert_eq!((text.as_str(), code), ("", 0));
    let (text, code) = printed(&setup, &["diff", "--from", &then]).await;
    assert_eq!(
        (text.as_str(), code),
        ("changed  configmaps/a  data.n\nadded    configmaps/b\ndeleted  configmaps/gone\n", 1)
    );
    let (text, code) = printed(&setup, &["diff", "cm/none", "--from", &then]).await;
    assert!(code > 1, "{code} {text}");
}

async fn time_and_sql_36_each_field_is_blamed_once(setup: Setup) {
    let server = setup.start().await;
    let first = rv(&server.create("a", json!({"n": "0", "same": "x"})).await);
    for n in 1..120 {
        server.set("a", json!({"n": (n % 7).to_string(), "m": (n / 50).to_string()})).await;
    }
    let versions = server.get(format!("/history{CONFIGMAPS}/a?include=object&limit=500")).await.ok();
    let versions = versions["items"].as_array().expect("items");
    let since = |pointer: &str| {
        let newest = versions[0]["object"].pointer(pointer);
        let count = versions.iter().take_while(|one| one["object"].pointer(pointer) == newest).count();
        versions[count - 1]["revision"].clone()
    };
    let (text, code) = printed(&setup, &["blame", "cm/a", "-o", "json"]).await;
    assert_eq!(code, 0, "{text}");
    let blamed: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    let of = |path: &str| {
        let found: Vec<_> = blamed.iter().filter(|one| one["path"] == path).collect();
        assert_eq!(found.len(), 1, "{path}: {text}");
        found[0].clone()
    };
    assert_eq!(of("data.n")["revision"], since("/data/n"));
    assert_eq!(of("data.m")["revision"], since("/data/m"));
    assert_eq!(of("data.m")["was"], "1");
    assert_eq!(of("data.same")["revision"], first.to_string());
    assert_eq!(of("data.same")["user"], "kubernetes-admin");
}

async fn time_and_sql_37_undo_plans_first(setup: Setup) {
    let server = setup.start().await;
    let web = format!("{DEPLOYMENTS}/web");
    server.post(DEPLOYMENTS, &deployment("web", json!({"replicas": 3}))).await.expect(201);
    let then = now(&server).await;
    server.patch(&web, &json!({"spec": {"replicas": 5}, "metadata": {"labels": {"x": "y"}}})).await.ok();
    let status = json!({"status": {"observedGeneration": 2}});
    server.patch(format!("{web}/status"), &status).await.ok();
    let before = server.get(&web).await.ok();
    let (text, code) = printed(&setup, &["undo", "deploy/web", "--to", &then]).await;
    assert_eq!(code, 0, "{text}");
    let line = "update  apps/v1 Deployment t/web   metadata.labels.x y -> -; spec.replicas 5 -> 3\n";
    assert_eq!(text, format!("{line}1 change; nothing was written. Repeat with --yes.\n"));
    assert_eq!(server.get(&web).await.ok(), before);
    let (text, code) = printed(&setup, &["undo", "deploy/web", "--to", &then, "--yes"]).await;
    assert_eq!((text, code), (format!("{line}1 change written\n"), 0));
    let after = server.get(&web).await.ok();
    assert_eq!(after["spec"], server.get(format!("/asof/{then}{web}")).await.ok()["spec"]);
    assert_eq!(after["metadata"].get("labels"), None);
    assert_eq!(
        (&after["status"], &after["metadata"]["uid"]),
        (&before["status"], &before["metadata"]["uid"])
    );
    let history = server.get(format!("/history{web}?limit=1")).await.ok();
    assert_eq!(history["items"][0]["manager"], "rowplane-undo");
    let (text, code) = printed(&setup, &["undo", "deploy/web", "--to", &then]).await;
    assert_eq!((text.as_str(), code), ("nothing to change\n", 0));
}

async fn time_and_sql_38_39_what_was_deleted_comes_back(setup: Setup) {
    let server = setup.start().await;
    let definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    server.post(definitions, &definition).await.expect(201);
    server.namespace("shop").await;
    let shop = |path: &str| path.replace("/t/", "/shop/");
    server.post(shop(DEPLOYMENTS), &deployment("web", json!({}))).await.expect(201);
    let widgets = "/apis/example.com/v1/namespaces/shop/widgets";
    let widget =
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "size": 3});
    server.post(widgets, &widget).await.expect(201);
    for n in 0..20 {
        let object = json!({"metadata": {"name": format!("c{n}")}, "data": {"n": n.to_string()}});
        server.post(shop(CONFIGMAPS), &object).await.expect(201);
    }
    let uid = server.get(shop(&format!("{DEPLOYMENTS}/web"))).await.ok()["metadata"]["uid"].clone();
    let then = now(&server).await;
    server.delete("/api/v1/namespaces/shop").await;
    while server.get("/api/v1/namespaces/shop").await.status != 404 {}
    server.delete(format!("{definitions}/widgets.example.com")).await.ok();
    while server.get(widgets).await.status == 200 {}
    let (text, code) = printed(&setup, &["undo", "namespace/shop", "--to", &then]).await;
    assert_eq!(code, 0, "{text}");
    assert!(text.ends_with("; nothing was written. Repeat with --yes.\n"), "{text}");
    assert_eq!(server.get("/api/v1/namespaces/shop").await.status, 404);
    let (text, code) = printed(&setup, &["undo", "namespace/shop", "--to", &then, "--yes"]).await;
    assert_eq!(code, 0, "{text}");
    let maps = server.get(shop(CONFIGMAPS)).await.ok();
    let maps = maps["items"].as_array().expect("items");
    let ours = maps.iter().filter(|map| map["data"]["n"].is_string()).count();
    assert_eq!(ours, 20, "{text}");
    assert_eq!(server.get(format!("{widgets}/w")).await.ok()["size"], 3);
    let web = server.get(shop(&format!("{DEPLOYMENTS}/web"))).await.ok();
    assert_ne!(web["metadata"]["uid"], uid);
}

async fn time_and_sql_40_what_was_made_again_is_refused(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({"n": "1"})).await;
    let then = now(&server).await;
    server.remove("a").await;
    server.create("a", json!({"n": "2"})).await;
    let (text, code) = printed(&setup, &["undo", "cm/a", "--to", &then, "--yes"]).await;
    assert!(code == 1 && text.contains("deleted and created again"), "{text}");
    assert_eq!(server.get(format!("{CONFIGMAPS}/a")).await.ok()["data"]["n"], "2");
    let arguments = ["undo", "cm/a", "--to", &then, "--yes", "--across-recreation"];
    let (text, code) = printed(&setup, &arguments).await;
    assert_eq!(code, 0, "{text}");
    assert_eq!(server.get(format!("{CONFIGMAPS}/a")).await.ok()["data"]["n"], "1");
}

async fn time_and_sql_41_owners_that_are_gone(setup: Setup) {
    let server = setup.start().await;
    let owner = server.create("owner", json!({})).await;
    let reference =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]});
    let owned = json!({"metadata": {"name": "owned", "ownerReferences": [reference]}});
    server.post(CONFIGMAPS, &owned).await.expect(201);
    let then = now(&server).await;
    server.remove("owned").await;
    server.remove("owner").await;
    let (text, code) = printed(&setup, &["undo", "cm/owned", "--to", &then, "--yes"]).await;
    assert!(code == 0 && text.contains("without its owner ConfigMap/owner, which is gone"), "{text}");
    let back = server.get(format!("{CONFIGMAPS}/owned")).await.ok();
    assert_eq!(back["metadata"].get("ownerReferences"), None);
}

async fn time_and_sql_42_prune(setup: Setup) {
    let server = setup.start().await;
    server.create("old", json!({})).await;
    let then = now(&server).await;
    server.create("new", json!({})).await;
    let (text, code) = printed(&setup, &["undo", "ns/t", "--to", &then, "--yes"]).await;
    assert_eq!((text.as_str(), code), ("0 changes written\n", 0));
    let (text, code) = printed(&setup, &["undo", "ns/t", "--to", &then, "--yes", "--prune"]).await;
    assert_eq!((text.as_str(), code), ("delete  v1 ConfigMap t/new\n1 change written\n", 0));
    assert_eq!(server.get(format!("{CONFIGMAPS}/new")).await.status, 404);
    assert_eq!(server.get(format!("{CONFIGMAPS}/old")).await.status, 200);
}

async fn time_and_sql_43_without_the_right(setup: Setup) {
    const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
    let server = setup.start().await;
    server.create("a", json!({"n": "1"})).await;
    let secrets = "/api/v1/namespaces/t/secrets";
    server.post(secrets, &json!({"metadata": {"name": "s"}, "stringData": {"n": "1"}})).await.expect(201);
    let then = now(&server).await;
    server.set("a", json!({"n": "2"})).await;
    server.patch(format!("{secrets}/s"), &json!({"stringData": {"n": "2"}})).await.ok();
    let rules = json!([
        {"verbs": ["get", "list", "asof"], "apiGroups": ["*"], "resources": ["*"]},
        {"verbs": ["update"], "apiGroups": [""], "resources": ["configmaps"]},
    ]);
    server
        .post(format!("{RBAC}/clusterroles"), &json!({"metadata": {"name": "r"}, "rules": rules}))
        .await
        .expect(201);
    let binding = json!({"metadata": {"name": "r"}, "roleRef": {"kind": "ClusterRole", "name": "r"},
        "subjects": [{"kind": "User", "name": "alice"}]});
    server.post(format!("{RBAC}/clusterrolebindings"), &binding).await.expect(201);
    let mut kubeconfig = serde_json::to_value(&server.kubeconfig).expect("JSON");
    kubeconfig["users"][0]["user"] = json!({"token": "alice-token"});
    std::fs::write(setup.file("alice.kubeconfig"), kubeconfig.to_string()).expect("write");
    let file = setup.file("alice.kubeconfig");
    let file = file.to_str().expect("a path");
    let kinds = "--kinds=configmaps,secrets";
    let arguments = ["undo", "ns/t", "--to", &then, "--yes", kinds, "--kubeconfig", file];
    let (text, code) = printed(&setup, &arguments).await;
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("User \"alice\" cannot update resource \"secrets\""), "{text}");
    assert_eq!(server.get(format!("{CONFIGMAPS}/a")).await.ok()["data"]["n"], "1");
}

async fn a_command_sees_the_past(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({})).await;
    let then = now(&server).await;
    let (text, code) = printed(&setup, &["asof", &then, "--print-kubeconfig"]).await;
    assert!(code == 0 && text.contains(&format!("/asof/{then}\n")), "{text}");
    // Arguments behind -- are the command's.
    let output = run(&setup, &["asof", &then, "--", "sh", "-c", "grep server: $KUBECONFIG; exit 7"]).await;
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.trim().ends_with(&format!("/asof/{then}")), "{text}");
    assert_eq!(output.status.code(), Some(7));
    assert!(String::from_utf8(output.stderr).expect("text").starts_with("as of 20"));
    let (text, code) = printed(&setup, &["history", "cm/a", "-o", "name"]).await;
    assert_eq!((text.as_str(), code), ("configmap/a\n", 0));
    let (text, code) = printed(&setup, &["history", "--since", "1h"]).await;
    assert!(code == 0 && text.contains("configmaps/a") && text.contains("kubernetes-admin"), "{text}");
    let (text, code) = printed(&setup, &["asof", "soon", "--print-kubeconfig"]).await;
    assert!(code == 2 && text.contains("yesterday 18:00"), "{text}");
}
