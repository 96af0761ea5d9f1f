//! Who owns what after writes that are no apply: `docs/spec/patch-apply.md`, assertions 28 to 37 and 59.

use http::Method;
use serde_json::{Value, json};

use crate::support::client::Answer;
use crate::support::server::{CONFIGMAPS, Setup, TestServer, deployment, rv};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/t/deployments";

on_every_store! {
    patch_apply_28_30_31_updates,
    patch_apply_29_structs_of_the_kind,
    patch_apply_32_an_update_that_changes_nothing,
    patch_apply_33_subresources,
    patch_apply_34_35_tracking_ends,
    patch_apply_34_elements_without_keys_change_no_managers,
    patch_apply_35_managers_in_the_body,
    patch_apply_36_old_managers_are_united,
    patch_apply_37_names_of_clients,
    patch_apply_59_60_scale,
}

/// The entry of a manager.
pub fn entry<'a>(object: &'a Value, manager: &str, operation: &str, subresource: &str) -> Option<&'a Value> {
    object["metadata"]["managedFields"].as_array()?.iter().find(|entry| {
        entry["manager"] == manager
            && entry["operation"] == operation
            && entry["subresource"].as_str().unwrap_or_default() == subresource
    })
}

/// What a manager owns of the main resource by updates.
#[track_caller]
fn owned<'a>(object: &'a Value, manager: &str) -> &'a Value {
    let found = entry(object, manager, "Update", "");
    &found.unwrap_or_else(|| panic!("no {manager}: {object}"))["fieldsV1"]
}

pub async fn put_as(server: &TestServer, path: &str, manager: &str, mut body: Value) -> Answer {
    body["metadata"]["name"] = path.rsplit('/').next().expect("a name").trim_end_matches("?").into();
    server.put(format!("{path}?fieldManager={manager}"), &body).await
}

/// What who applies a Deployment that has only what it needs comes to own.
pub fn applied_spec() -> Value {
    json!({
        "f:selector": {},
        "f:template": {
            "f:metadata": {"f:labels": {"f:app": {}}},
            "f:spec": {"f:containers": {r#"k:{"name":"app"}"#: {".": {}, "f:image": {}, "f:name": {}}}},
        },
    })
}

/// What who creates it otherwise does: the defaults too.
pub fn defaulted_spec() -> Value {
    let container = json!({".": {}, "f:image": {}, "f:imagePullPolicy": {}, "f:name": {}, "f:resources": {},
        "f:terminationMessagePath": {}, "f:terminationMessagePolicy": {}});
    json!({
        "f:selector": {},
        "f:progressDeadlineSeconds": {},
        "f:revisionHistoryLimit": {},
        "f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}, "f:maxUnavailable": {}}, "f:type": {}},
        "f:template": {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {
            "f:containers": {r#"k:{"name":"app"}"#: container},
            "f:dnsPolicy": {},
            "f:restartPolicy": {},
            "f:schedulerName": {},
            "f:securityContext": {},
            "f:terminationGracePeriodSeconds": {},
        }},
    })
}

async fn patch_apply_28_30_31_updates(setup: Setup) {
    let server = setup.start().await;
    let c = format!("{CONFIGMAPS}/c");
    let object = json!({"metadata": {"name": "c"}, "data": {"a": "1"}});
    let request = server.request(Method::POST, CONFIGMAPS).json(&object).header("user-agent", "curl/8.1");
    let created = request.await.expect(201);
    let managers = created["metadata"]["managedFields"].as_array().expect("managers");
    let [curl] = &managers[..] else { panic!("{created}") };
    assert_eq!((&curl["manager"], &curl["operation"]), (&json!("curl"), &json!("Update")));
    assert_eq!((&curl["apiVersion"], &curl["fieldsType"]), (&json!("v1"), &json!("FieldsV1")));
    assert_eq!(curl["time"], created["metadata"]["creationTimestamp"]);
    assert_eq!(curl["fieldsV1"].to_string(), r#"{"f:data":{".":{},"f:a":{}}}"#);
    let changed = put_as(&server, &c, "m2", json!({"data": {"a": "2"}})).await.ok();
    assert_eq!(owned(&changed, "curl"), &json!({"f:data": {}}));
    assert_eq!(owned(&changed, "m2"), &json!({"f:data": {"f:a": {}}}));
    let other = put_as(&server, &c, "m4", json!({"data": {"a": "2", "b": "1"}})).await.ok();
    let deleted = put_as(&server, &c, "m3", json!({"data": {"b": "1"}})).await.ok();
    assert!(entry(&deleted, "m3", "Update", "").is_none(), "{deleted}");
    assert!(entry(&deleted, "m2", "Update", "").is_none(), "{deleted}");
    for manager in ["curl", "m4"] {
        assert_eq!(entry(&deleted, manager, "Update", ""), entry(&other, manager, "Update", ""));
    }
    // No data and empty data are the same.
    let emptied = put_as(&server, &c, "m3", json!({"data": {}})).await.ok();
    assert!(emptied["metadata"].get("managedFields").is_none() && emptied.get("data").is_none(), "{emptied}");
}

async fn patch_apply_29_structs_of_the_kind(setup: Setup) {
    let server = setup.start().await;
    let mut web = deployment("web", json!({"replicas": 1}));
    web["metadata"]["labels"] = json!({"l": "1"});
    web["spec"]["template"]["spec"]["containers"][0]["ports"] =
        json!([{"containerPort": 80, "protocol": "TCP"}]);
    let created = server.post(format!("{DEPLOYMENTS}?fieldManager=m"), &web).await.expect(201);
    let port = json!({".": {}, "f:containerPort": {}, "f:protocol": {}});
    let mut spec = defaulted_spec();
    spec["f:replicas"] = json!({});
    spec["f:template"]["f:spec"]["f:containers"][r#"k:{"name":"app"}"#]["f:ports"] =
        json!({".": {}, r#"k:{"containerPort":80,"protocol":"TCP"}"#: port});
    let expected = json!({"f:metadata": {"f:labels": {".": {}, "f:l": {}}}, "f:spec": spec});
    assert_eq!(owned(&created, "m"), &expected);
}

async fn patch_apply_32_an_update_that_changes_nothing(setup: Setup) {
    let server = setup.start().await;
    let before = server.create("c", json!({"a": "1"})).await;
    let after = put_as(&server, &format!("{CONFIGMAPS}/c"), "m4", json!({"data": {"a": "1"}})).await.ok();
    assert_eq!((rv(&after), &after), (rv(&before), &before));
}

async fn patch_apply_33_subresources(setup: Setup) {
    let server = setup.start().await;
    let web = deployment("web", json!({"replicas": 1}));
    server.post(format!("{DEPLOYMENTS}?fieldManager=m"), &web).await.expect(201);
    let mut status = web.clone();
    status["spec"]["replicas"] = 7.into();
    status["status"] = json!({"replicas": 1, "readyReplicas": 1});
    let put = server.put(format!("{DEPLOYMENTS}/web/status?fieldManager=m"), &status).await.ok();
    let entry_of_status = entry(&put, "m", "Update", "status").expect("an entry");
    assert_eq!(entry_of_status["fieldsV1"], json!({"f:status": {"f:readyReplicas": {}, "f:replicas": {}}}));
    let mut spec = defaulted_spec();
    spec["f:replicas"] = json!({});
    assert_eq!(owned(&put, "m"), &json!({"f:spec": spec}));
    assert_eq!(put["spec"]["replicas"], 1);
}

async fn patch_apply_34_35_tracking_ends(setup: Setup) {
    let server = setup.start().await;
    for (name, reset) in [("a", json!([])), ("b", json!([{}]))] {
        server.create(name, json!({"k": "1"})).await;
        let path = format!("{CONFIGMAPS}/{name}");
        let body = json!({"metadata": {"managedFields": reset}, "data": {"k": "2"}});
        let put = put_as(&server, &path, "m", body).await.ok();
        assert!(put["metadata"].get("managedFields").is_none(), "{put}");
        let later = put_as(&server, &path, "m", json!({"data": {"k": "3"}})).await.ok();
        assert!(later["metadata"].get("managedFields").is_none(), "{later}");
        let config =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "3"}});
        let request = server.request(Method::PATCH, format!("{path}?fieldManager=x"));
        let applied = request.body("application/apply-patch+yaml", config.to_string()).await.ok();
        let before = json!({"f:data": {".": {}, "f:k": {}}});
        assert_eq!(owned(&applied, "before-first-apply"), &before);
        assert!(entry(&applied, "x", "Apply", "").is_some(), "{applied}");
    }
}

async fn patch_apply_34_elements_without_keys_change_no_managers(setup: Setup) {
    const ACCOUNTS: &str = "/api/v1/namespaces/t/serviceaccounts";
    let server = setup.start().await;
    let account = json!({"metadata": {"name": "a", "labels": {"a": "b"}}});
    let created = server.post(format!("{ACCOUNTS}?fieldManager=m"), &account).await.expect(201);
    let secrets = json!({"secrets": [{"name": "x"}, {"namespace": "y"}]});
    let patched = server.patch(format!("{ACCOUNTS}/a?fieldManager=n"), &secrets).await.ok();
    assert_eq!(patched["metadata"]["managedFields"], created["metadata"]["managedFields"]);
    // References to Secrets keep nothing but names.
    assert_eq!(patched["secrets"], json!([{"name": "x"}, {}]));
}

async fn patch_apply_35_managers_in_the_body(setup: Setup) {
    let server = setup.start().await;
    let created = server.create("c", json!({"k": "1"})).await;
    let path = format!("{CONFIGMAPS}/c");
    let live = &created["metadata"]["managedFields"];
    let body = json!({"metadata": {"managedFields": [{"operation": "Foo"}]}, "data": {"k": "1"}});
    let kept = put_as(&server, &path, "m", body).await.ok();
    assert_eq!(&kept["metadata"]["managedFields"], live);
    let mine = json!([{"manager": "mine", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
        "time": "2020-01-01T00:00:00Z", "fieldsV1": {"f:data": {"f:k": {}}}}]);
    let body = json!({"metadata": {"managedFields": mine}, "data": {"k": "1"}});
    let taken = put_as(&server, &path, "m", body).await.ok();
    assert_eq!(taken["metadata"]["managedFields"], mine);
    server.post(DEPLOYMENTS, &deployment("web", json!({"replicas": 1}))).await.expect(201);
    let status = json!({"metadata": {"name": "web", "managedFields": []}, "status": {}});
    let put = server.put(format!("{DEPLOYMENTS}/web/status"), &status).await.ok();
    assert!(put["metadata"]["managedFields"].as_array().is_some_and(|kept| !kept.is_empty()), "{put}");
}

async fn patch_apply_36_old_managers_are_united(setup: Setup) {
    let server = setup.start().await;
    let update = |n: usize| {
        json!({"manager": format!("m{n:02}"), "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "time": format!("2020-01-01T00:00:{n:02}Z"), "fieldsV1": {"f:data": {format!("f:k{n}"): {}}}})
    };
    let mut managers: Vec<Value> = (0..10).map(update).collect();
    let applier = json!({"manager": "applier", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
        "time": "2019-01-01T00:00:00Z", "fieldsV1": {"f:data": {"f:k0": {}}}});
    managers.push(applier);
    let data: Value =
        (0..10).map(|n| (format!("k{n}"), json!("1"))).collect::<serde_json::Map<_, _>>().into();
    server.create("c", data.clone()).await;
    let c = format!("{CONFIGMAPS}/c");
    let body = json!({"metadata": {"managedFields": managers}, "data": data});
    put_as(&server, &c, "x", body).await.ok();
    let mut next = json!({"data": data});
    next["data"]["new"] = "1".into();
    let put = put_as(&server, &c, "newest", next).await.ok();
    let found = put["metadata"]["managedFields"].as_array().expect("managers");
    let updates: Vec<&Value> = found.iter().filter(|entry| entry["operation"] == "Update").collect();
    assert_eq!(updates.len(), 10, "{put}");
    assert_eq!(updates[0]["manager"], "ancient-changes");
    assert_eq!(
        found.iter().find(|entry| entry["operation"] == "Apply").map(|e| &e["manager"]),
        Some(&json!("applier"))
    );
}

async fn patch_apply_37_names_of_clients(setup: Setup) {
    let server = setup.start().await;
    let long = "x".repeat(300);
    for (name, agent, manager) in
        [("a", &*long, &long[..128]), ("b", "", "unknown"), ("c", "kubectl/v1.37 (linux)", "kubectl")]
    {
        let body = json!({"metadata": {"name": name}, "data": {"k": "1"}});
        let request = server.request(Method::POST, CONFIGMAPS).json(&body).header("user-agent", agent);
        let created = request.await.expect(201);
        assert_eq!(created["metadata"]["managedFields"][0]["manager"], manager);
    }
}

async fn patch_apply_59_60_scale(setup: Setup) {
    let server = setup.start().await;
    let web = format!("{DEPLOYMENTS}/web");
    let config = |replicas: Option<u64>| {
        let mut config = deployment("web", json!({"paused": true}));
        if let Some(replicas) = replicas {
            config["spec"]["replicas"] = replicas.into();
        }
        config.to_string()
    };
    let apply = |replicas| {
        let request = server.request(Method::PATCH, format!("{web}?fieldManager=a"));
        request.body("application/apply-patch+yaml", config(replicas))
    };
    apply(Some(3)).await.expect(201);
    let scale = server.request(Method::PATCH, format!("{web}/scale?fieldManager=sc"));
    scale.body("application/merge-patch+json", r#"{"spec":{"replicas":5}}"#).await.ok();
    let found = server.get(&web).await.ok();
    let scaler = entry(&found, "sc", "Update", "scale").expect("an entry");
    assert_eq!(scaler["fieldsV1"], json!({"f:spec": {"f:replicas": {}}}));
    assert_eq!((&scaler["apiVersion"], scaler.get("time")), (&json!("apps/v1"), None));
    let applier = entry(&found, "a", "Apply", "").expect("an entry");
    let mut spec = applied_spec();
    spec["f:paused"] = json!({});
    assert_eq!(applier["fieldsV1"], json!({"f:spec": spec}));
    let conflict = apply(Some(3)).await.failure();
    let text = "Apply failed with 1 conflict: conflict with \"sc\" with subresource \"scale\" using apps/v1: \
                .spec.replicas";
    assert_eq!((&conflict["code"], &conflict["message"]), (&json!(409), &json!(text)));
    assert_eq!(apply(None).await.ok()["spec"]["replicas"], 5);
    let other = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"},
        "spec": {"replicas": 6}});
    let request = server.request(Method::PATCH, format!("{web}/scale?fieldManager=b"));
    let conflict = request.body("application/apply-patch+yaml", other.to_string()).await.failure();
    let text = "Apply failed with 1 conflict: conflict with \"sc\" with subresource \"scale\" using autoscaling/v1: \
                .spec.replicas";
    assert_eq!(conflict["message"], text);
    let request = server.request(Method::PATCH, format!("{web}/scale?fieldManager=b&force=true"));
    let scale = request.body("application/apply-patch+yaml", other.to_string()).await.ok();
    assert_eq!(scale["spec"]["replicas"], 6);
    let found = server.get(&web).await.ok();
    assert!(entry(&found, "sc", "Update", "scale").is_none(), "{found}");
    assert!(entry(&found, "b", "Apply", "scale").is_some(), "{found}");
}
