//! What webhooks see of the verbs, and when.

use std::collections::BTreeSet;

use http::Method;
use serde_json::{Value, json};

use super::{MUTATING, VALIDATING, allowing, configure, hook, metric, patch, requests, reviewed, told};
use crate::support::database::Database;
use crate::support::server::{CONFIGMAPS, Setup, config_map, deployment};
use crate::support::webhook::WebhookServer;

on_every_store! {
    admission_60_a_configuration_counts_from_its_answer_on,
    admission_34_7_8_9_10_11_15_every_verb,
    admission_12_13_subresources,
    admission_1_2_5_6_phases,
    admission_4_20_what_is_seen_is_what_is_written,
    admission_18_19_switches_and_metrics,
}

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/t/leases";
const PODS: &str = "/api/v1/namespaces/t/pods";
const SERVICES: &str = "/api/v1/namespaces/t/services";

/// 60. Also on another server, and also when it goes.
async fn admission_60_a_configuration_counts_from_its_answer_on(setup: Setup) {
    let refusing = WebhookServer::start(&[], |seen| {
        reviewed(seen, json!({"allowed": false, "status": {"message": "no"}}))
    })
    .await;
    let one = setup.start().await;
    // Only PostgreSQL has room for two servers.
    let other =
        if matches!(setup.database, Database::Postgres(_)) { Some(setup.start().await) } else { None };
    let other = other.as_ref().unwrap_or(&one);
    for round in 0..3 {
        let name = format!("free-{round}");
        other.post(CONFIGMAPS, &config_map(&name, json!({}))).await.expect(201);
        let hooks = json!([hook("no", refusing.client_config("/"), json!({}), json!({}))]);
        configure(&one, VALIDATING, "guard", hooks).await;
        let refused = other.post(CONFIGMAPS, &config_map("a", json!({}))).await.failure();
        assert_eq!(told(&refused), (400, "admission webhook \"no.ex.io\" denied the request: no".to_owned()));
        let refused = other.delete(format!("{CONFIGMAPS}/{name}")).await.failure();
        assert_eq!(refused["code"], 400);
        one.delete(format!("{VALIDATING}/guard")).await.ok();
        other.delete(format!("{CONFIGMAPS}/{name}")).await.ok();
    }
}

/// 34, 7, 8, 9, 10, 11, 15: every verb, as the webhook sees it.
async fn admission_34_7_8_9_10_11_15_every_verb(setup: Setup) {
    let (server, web) = (setup.start().await, allowing().await);
    let rule = json!({"resources": ["configmaps", "leases", "namespaces", "pods", "pods/*"]});
    let hooks = json!([hook("see", web.client_config("/see"), rule, json!({}))]);
    configure(&server, VALIDATING, "see", hooks).await;

    let made =
        server.post(format!("{CONFIGMAPS}?fieldManager=me"), &config_map("a", json!({"k": "1"}))).await;
    let made = made.expect(201);
    let seen = web.seen();
    let request = &seen[0].body["request"];
    let text = |value: &Value| serde_json::to_string(value).expect("JSON");
    let uid = request["uid"].as_str().expect("a uid");
    let gvk = r#"{"group":"","version":"v1","kind":"ConfigMap"}"#;
    let gvr = r#"{"group":"","version":"v1","resource":"configmaps"}"#;
    assert_eq!(request["userInfo"]["groups"], json!(["system:masters", "system:authenticated"]));
    let user = request["userInfo"]["extra"]["authentication.kubernetes.io/credential-id"][0]
        .as_str()
        .expect("an id");
    let user = format!(
        r#"{{"username":"kubernetes-admin","groups":["system:masters","system:authenticated"],"extra":{{"authentication.kubernetes.io/credential-id":["{user}"]}}}}"#
    );
    let (object, options) =
        (text(&made), r#"{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1","fieldManager":"me"}"#);
    let mut whole: Value = serde_json::from_str(&object).expect("JSON");
    whole["metadata"].as_object_mut().expect("metadata").remove("resourceVersion");
    assert_eq!(request["object"], whole, "as it will be stored");
    let around = seen[0].text.split_once(r#""object":"#).expect("an object").0;
    assert_eq!(
        around,
        format!(
            r#"{{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{{"uid":"{uid}","kind":{gvk},"resource":{gvr},"requestKind":{gvk},"requestResource":{gvr},"name":"a","namespace":"t","operation":"CREATE","userInfo":{user},"#
        )
    );
    assert!(
        seen[0]
            .text
            .ends_with(&format!(r#","oldObject":null,"dryRun":false,"options":{options}}}}}{}"#, "\n")),
        "{}",
        seen[0].text
    );
    assert_eq!(seen[0].path, "/see?timeout=10s");
    assert_eq!(seen[0].headers["content-type"], "application/json");
    assert_eq!(seen[0].headers["accept"], "application/json, */*");

    // A PUT that changes nothing is seen, and changes nothing.
    let same = server.put(format!("{CONFIGMAPS}/a"), &made).await.ok();
    assert_eq!(same["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
    server.patch(format!("{CONFIGMAPS}/a"), &json!({"data": {"k": "2"}})).await.ok();
    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": "y"}});
    let apply = |name: &str| {
        let mut object = applied.clone();
        object["metadata"] = json!({"name": name});
        let path = format!("{CONFIGMAPS}/{name}?fieldManager=m&force=true");
        server.request(Method::PATCH, path).body("application/apply-patch+yaml", object.to_string())
    };
    apply("a").await.ok();
    apply("b").await.expect(201);
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "h"}});
    server.put(format!("{LEASES}/l"), &lease).await.expect(201);
    let seen = requests(&web);
    let shown: Vec<String> = seen
        .iter()
        .map(|request| {
            let old = if request["oldObject"].is_null() { "new" } else { "old" };
            let (operation, kind) = (&request["operation"], &request["options"]["kind"]);
            format!("{} {} {} {old}", operation.as_str().unwrap(), kind.as_str().unwrap(), request["name"])
        })
        .collect();
    // Where other servers may write, what changes nothing is judged again by the newest state, as upstream does.
    let unchanged = if matches!(setup.database, Database::Postgres(_)) { 2 } else { 1 };
    let mut expected = vec!["UPDATE UpdateOptions \"a\" old"; unchanged];
    expected.extend([
        "UPDATE UpdateOptions \"a\" old",
        "UPDATE UpdateOptions \"a\" old",
        "CREATE CreateOptions \"b\" new",
        "CREATE CreateOptions \"l\" new",
    ]);
    assert_eq!(shown, expected);

    // Each object of a collection is seen, without a name.
    server.delete(CONFIGMAPS).await.ok();
    let seen = requests(&web);
    let names: BTreeSet<&str> =
        seen.iter().filter_map(|request| request["oldObject"]["metadata"]["name"].as_str()).collect();
    assert_eq!(names, BTreeSet::from(["a", "b"]));
    for request in &seen {
        assert_eq!((&request["operation"], request.get("name")), (&json!("DELETE"), None));
        assert!(request["object"].is_null());
        assert_eq!(request["options"]["kind"], "DeleteOptions");
    }

    // The last finalizer goes by an update; no deletion is seen then.
    let mut held = config_map("held", json!({}));
    held["metadata"]["finalizers"] = json!(["ex.io/f"]);
    server.post(CONFIGMAPS, &held).await.expect(201);
    server.delete(format!("{CONFIGMAPS}/held")).await.ok();
    web.seen();
    server.patch(format!("{CONFIGMAPS}/held"), &json!({"metadata": {"finalizers": null}})).await.ok();
    let operations: Vec<Value> = requests(&web).iter().map(|request| request["operation"].clone()).collect();
    assert_eq!(operations, ["UPDATE"]);

    // A Namespace is in itself.
    server.post("/api/v1/namespaces", &json!({"metadata": {"name": "n"}})).await.expect(201);
    let seen = requests(&web);
    assert_eq!((&seen[0]["namespace"], &seen[0]["name"]), (&json!("n"), &json!("n")));
}

/// 12, 13. Evictions are creates of a subresource, and parts of an object are not the object.
async fn admission_12_13_subresources(setup: Setup) {
    let (server, web) = (setup.start().await, allowing().await);
    let patterns =
        [("plain", "pods"), ("star", "*"), ("all", "*/*"), ("of-pods", "pods/*"), ("status", "*/status")];
    for (name, pattern) in patterns {
        let path = format!("/{name}");
        let rule = json!({"resources": [pattern], "apiGroups": [""]});
        configure(&server, VALIDATING, name, json!([hook(name, web.client_config(&path), rule, json!({}))]))
            .await;
    }
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let called = || -> BTreeSet<String> {
        let seen = web.seen().into_iter();
        seen.map(|seen| {
            let request = &seen.body["request"];
            let path = seen.path.split('?').next().expect("a path");
            let operation = request["operation"].as_str().expect("an operation");
            let part = request["subResource"].as_str().unwrap_or("-");
            format!("{path} {operation} {part} {}", request["kind"]["kind"].as_str().expect("a kind"))
        })
        .collect()
    };
    let all = |names: &[&str], what: &str| -> BTreeSet<String> {
        names.iter().map(|name| format!("/{name} {what}")).collect()
    };
    server.post(PODS, &pod).await.expect(201);
    assert_eq!(called(), all(&["plain", "star", "all", "of-pods"], "CREATE - Pod"));
    server.patch(format!("{PODS}/p/status"), &json!({"status": {"phase": "Running"}})).await.ok();
    assert_eq!(called(), all(&["all", "of-pods", "status"], "UPDATE status Pod"));
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    server.post(format!("{PODS}/p/eviction"), &eviction).await.expect(201);
    assert_eq!(called(), all(&["all", "of-pods"], "CREATE eviction Eviction"));
    let scaled = "/apis/apps/v1/namespaces/t/deployments";
    server.post(scaled, &deployment("d", json!({}))).await.expect(201);
    let rule = json!({"resources": ["deployments/scale"]});
    let scales = json!([hook("scale", web.client_config("/scale"), rule, json!({}))]);
    configure(&server, MUTATING, "scale", scales.clone()).await;
    configure(&server, VALIDATING, "scale", scales).await;
    called();
    let replicas = |count: u8| json!({"spec": {"replicas": count}});
    for count in [2, 3] {
        let path = format!("{scaled}/d/scale?fieldManager=m{count}");
        server.patch(path, &replicas(count)).await.ok();
    }
    let seen = requests(&web);
    let seen: Vec<&Value> = seen.iter().filter(|seen| seen["requestKind"]["kind"] == "Scale").collect();
    let [mutating, validating] = seen[2..] else { panic!("{seen:?}") };
    assert_eq!(mutating["kind"], json!({"group": "autoscaling", "version": "v1", "kind": "Scale"}));
    // Only whoever may change a Scale sees its managers.
    let managers = |seen: &Value, which: &str| {
        let entries = seen[which]["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        let of = |entry: &Value| {
            assert_eq!(entry["apiVersion"], "autoscaling/v1");
            assert_eq!(entry["fieldsV1"], json!({"f:spec": {"f:replicas": {}}}));
            entry["manager"].as_str().expect("a name").to_owned()
        };
        entries.iter().map(of).collect::<Vec<_>>()
    };
    for seen in [mutating, validating] {
        assert_eq!(seen["object"]["spec"], json!({"replicas": 3}));
        assert_eq!(seen["oldObject"]["spec"], json!({"replicas": 2}));
        let shown = [managers(seen, "oldObject"), managers(seen, "object")];
        let expected: [&[&str]; 2] = if seen == mutating { [&["m2"], &["m3"]] } else { [&[], &[]] };
        assert_eq!(shown, expected);
    }
}

/// 1, 2, 5, 6. The mutating phase comes before names, addresses and validation, the validating one after them.
async fn admission_1_2_5_6_phases(setup: Setup) {
    let (server, web) = (setup.start().await, allowing().await);
    let rule = || json!({"resources": ["services", "configmaps"]});
    let of = |path: &str| json!([hook("h", web.client_config(path), rule(), json!({}))]);
    configure(&server, MUTATING, "m", of("/m")).await;
    configure(&server, VALIDATING, "v", of("/v")).await;
    let missing = "/api/v1/namespaces/x/configmaps";
    let refused = server.post(missing, &json!({"metadata": {"name": "Not A Name"}})).await.failure();
    assert_eq!(told(&refused), (404, "namespaces \"x\" not found".to_owned()));
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}});
    let leases = "/apis/coordination.k8s.io/v1/namespaces/x/leases/l";
    let refused = server.put(leases, &lease).await.failure();
    assert_eq!(told(&refused), (404, "namespaces \"x\" not found".to_owned()));
    let applied = server.request(http::Method::PATCH, format!("{missing}/c?fieldManager=m"));
    let body = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}"#;
    let refused = applied.body("application/apply-patch+yaml", body).await.failure();
    assert_eq!(told(&refused), (404, "namespaces \"x\" not found".to_owned()));
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let refused = server.put("/api/v1/namespaces/x/pods/p", &pod).await.failure();
    assert_eq!(told(&refused), (404, "pods \"p\" not found".to_owned()));
    assert!(web.seen().is_empty());
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    let made = server.post(SERVICES, &service).await.expect(201);
    let seen = requests(&web);
    assert_eq!(seen[0]["object"]["spec"].get("clusterIP"), None);
    assert!(seen[0]["object"]["metadata"].get("uid").is_none());
    assert!(made["spec"]["clusterIP"].is_string());
    let generated = json!({"metadata": {"generateName": "g-"}});
    let made = server.post(CONFIGMAPS, &generated).await.expect(201);
    let seen = requests(&web);
    assert_eq!((seen[0].get("name"), seen[0]["object"]["metadata"].get("name")), (None, None));
    assert_eq!(seen[1]["name"], made["metadata"]["name"]);
    assert_eq!(seen[1]["object"]["metadata"]["name"], made["metadata"]["name"]);
}

/// 4, 20. A validating webhook sees what a mutating one has set; a write that loses a race is seen again, with the newer
/// object.
async fn admission_4_20_what_is_seen_is_what_is_written(setup: Setup) {
    let server = setup.start().await;
    let label = WebhookServer::start(&[], |seen| {
        reviewed(seen, patch(json!([{"op": "add", "path": "/metadata/labels", "value": {"by": "hook"}}])))
    })
    .await;
    let web = allowing().await;
    configure(&server, MUTATING, "m", json!([hook("m", label.client_config("/"), json!({}), json!({}))]))
        .await;
    configure(&server, VALIDATING, "v", json!([hook("v", web.client_config("/"), json!({}), json!({}))]))
        .await;
    let made = server.create("a", json!({"k": "1"})).await;
    assert_eq!(made["metadata"]["labels"], json!({"by": "hook"}));
    let managers = made["metadata"]["managedFields"].to_string();
    assert!(!managers.contains("f:by"), "what admission adds is owned by nobody: {managers}");
    assert_eq!(requests(&web)[0]["object"]["metadata"]["labels"], json!({"by": "hook"}));

    web.hold();
    let lost =
        tokio::spawn(server.patch(format!("{CONFIGMAPS}/a"), &json!({"data": {"lost": "1"}})).into_future());
    web.arrived(2).await;
    // A patch of what no webhook is called for.
    server.delete(format!("{VALIDATING}/v")).await.ok();
    server.set("a", json!({"won": "1"})).await;
    configure(&server, VALIDATING, "v", json!([hook("v", web.client_config("/"), json!({}), json!({}))]))
        .await;
    web.release();
    let written = lost.await.expect("an answer").ok();
    assert_eq!(written["data"], json!({"k": "1", "lost": "1", "won": "1"}));
    let olds: Vec<Value> =
        requests(&web).iter().map(|request| request["oldObject"]["data"].clone()).collect();
    assert_eq!(olds, [json!({"k": "1"}), json!({"k": "1", "won": "1"})]);
}

/// 18, 19. A plugin that is switched off calls nobody; the others are measured.
async fn admission_18_19_switches_and_metrics(mut setup: Setup) {
    setup.admission =
        rowplane::api::admission::Settings::new(&[], &["ValidatingAdmissionWebhook"]).expect("settings");
    let (server, web) = (setup.start().await, allowing().await);
    let refusing = WebhookServer::start(&[], |seen| reviewed(seen, json!({"allowed": false}))).await;
    configure(&server, VALIDATING, "v", json!([hook("v", web.client_config("/"), json!({}), json!({}))]))
        .await;
    server.create("a", json!({})).await;
    assert!(web.seen().is_empty());
    configure(&server, MUTATING, "m", json!([hook("m", refusing.client_config("/"), json!({}), json!({}))]))
        .await;
    let refused = server.post(CONFIGMAPS, &config_map("b", json!({}))).await.failure();
    assert_eq!(
        told(&refused),
        (400, "admission webhook \"m.ex.io\" denied the request without explanation".to_owned())
    );
    let count = "apiserver_admission_controller_admission_duration_seconds_count";
    let plugin = |name: &str, rejected: &str| {
        format!("{count}{{name=\"{name}\",type=\"admit\",operation=\"CREATE\",rejected=\"{rejected}\"}} ")
    };
    assert!(metric(&server, &plugin("NamespaceLifecycle", "false")).await);
    assert!(metric(&server, &plugin("MutatingAdmissionWebhook", "true")).await);
    let step = "apiserver_admission_step_admission_duration_seconds_count";
    assert!(
        metric(&server, &format!("{step}{{type=\"validate\",operation=\"CREATE\",rejected=\"false\"}}"))
            .await
    );
    let rejections = "apiserver_admission_webhook_rejection_count";
    let labels =
        "name=\"m.ex.io\",type=\"admit\",operation=\"CREATE\",error_type=\"no_error\",rejection_code=\"400\"";
    assert!(metric(&server, &format!("{rejections}{{{labels}}} 1")).await);
}
