//! Validation of StorageVersions and StorageVersionMigrations.

use serde_json::{Value, json};

use crate::VERSIONS;
use crate::support::client::Answer;
use crate::support::server::{Setup, TestServer};

on_both_databases! {
    storage_version_10_14_writes_of_storage_versions,
    storage_version_11_12_15_the_status_has_to_follow_from_its_entries,
    storage_version_13_names,
    storage_version_37_migrations,
    storage_version_38_39_the_status_of_migrations,
    storage_version_16_three_servers_and_one_more,
    storage_version_50_the_current_version_warns_of_nothing,
}

const MIGRATIONS: &str = "/apis/storagemigration.k8s.io/v1/storageversionmigrations";

fn causes(answer: &Answer) -> Vec<(String, String)> {
    let status = answer.expect(422);
    let text = |cause: &Value, field: &str| cause[field].as_str().expect("text").to_owned();
    let causes = status["details"]["causes"].as_array().expect("causes");
    causes.iter().map(|cause| (text(cause, "field"), text(cause, "message"))).collect()
}

#[track_caller]
fn refused(answer: &Answer, field: &str, message: &str) {
    assert_eq!(causes(answer), [(field.to_owned(), message.to_owned())]);
}

fn entry(server: &str, version: &str) -> Value {
    json!({"apiServerID": server, "encodingVersion": version, "decodableVersions": [version, "v9"]})
}

async fn put_status(server: &TestServer, name: &str, status: Value) -> Answer {
    let mut object = server.get(format!("{VERSIONS}/{name}")).await.ok();
    object["status"] = status;
    server.put(format!("{VERSIONS}/{name}/status"), &object).await
}

async fn storage_version_10_14_writes_of_storage_versions(setup: Setup) {
    let server = setup.start().await;
    let name = "example.com.things";
    let status = json!({"storageVersions": [entry("a", "v1")], "commonEncodingVersion": "v1"});
    let body = json!({"metadata": {"name": name}, "status": status});
    let made = server.post(VERSIONS, &body).await.expect(201);
    assert_eq!((&made["status"], &made["spec"]), (&json!({}), &json!({})));
    let path = format!("{VERSIONS}/{name}");
    for path in [path.clone(), format!("{path}/status")] {
        let mut without = made.clone();
        without["metadata"].as_object_mut().expect("metadata").remove("resourceVersion");
        let message = "Invalid value: 0: must be specified for an update";
        refused(&server.put(&path, &without).await, "metadata.resourceVersion", message);
    }
    let filled = put_status(&server, name, status).await.ok();
    assert_eq!(server.put(&path, &made).await.status, 409);
    let mut emptied = filled.clone();
    emptied["status"] = json!({});
    emptied["metadata"]["labels"] = json!({"a": "b"});
    let kept = server.put(&path, &emptied).await.ok();
    assert_eq!(kept["status"], filled["status"]);
    assert_eq!(
        server.put(format!("{VERSIONS}/example.com.none"), &body_named("example.com.none")).await.status,
        404
    );
    server.stop().await;
}

fn body_named(name: &str) -> Value {
    json!({"metadata": {"name": name, "resourceVersion": "5"}})
}

async fn storage_version_11_12_15_the_status_has_to_follow_from_its_entries(setup: Setup) {
    let server = setup.start().await;
    let name = "example.com.things";
    server.post(VERSIONS, &json!({"metadata": {"name": name}})).await.expect(201);
    let field = "status.commonEncodingVersion";
    let nobody = "should be nil if servers do not agree on the same encoding version, or if there is no server \
                  reporting the supported versions yet";
    let (a, b) = (entry("a", "v1"), entry("b", "v2"));
    for (status, value, message) in [
        (json!({"commonEncodingVersion": "v1"}), "\"v1\"", nobody),
        (json!({"storageVersions": [a, b], "commonEncodingVersion": "v1"}), "\"v1\"", nobody),
        (json!({"storageVersions": [a]}), "null", "the common encoding version is v1"),
        (
            json!({"storageVersions": [a], "commonEncodingVersion": "v2"}),
            "\"v2\"",
            "the actual common encoding version is v1",
        ),
    ] {
        let answer = put_status(&server, name, status).await;
        refused(&answer, field, &format!("Invalid value: {value}: {message}"));
    }
    let lacking = json!({"apiServerID": "a", "encodingVersion": "v1", "decodableVersions": ["v2"]});
    let answer =
        put_status(&server, name, json!({"storageVersions": [lacking], "commonEncodingVersion": "v1"})).await;
    refused(
        &answer,
        "status.storageVersions[0].decodableVersions",
        "Invalid value: [\"v2\"]: decodableVersions must include encodingVersion v1",
    );
    let twice = json!({"storageVersions": [a, a], "commonEncodingVersion": "v1"});
    let field = "status.storageVersions[1].apiServerID";
    refused(&put_status(&server, name, twice).await, field, "Duplicate value: \"a\"");
    let condition = json!({"type": "T", "status": "Whatever", "reason": "", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let answer = put_status(&server, name, json!({"conditions": [condition]})).await;
    refused(&answer, "status[0].reason", "Required value");
    server.stop().await;
}

async fn storage_version_13_names(setup: Setup) {
    let server = setup.start().await;
    let post = async |name: &str| server.post(VERSIONS, &json!({"metadata": {"name": name}})).await;
    let message = "Invalid value: \"nodots\": name must be in the form of <group>.<resource>";
    refused(&post("nodots").await, "metadata.name", message);
    let found = causes(&post("core.Pods").await);
    assert_eq!(found.len(), 1);
    assert!(
        found[0].1.starts_with("Invalid value: \"core.Pods\": the resource segment a DNS-1035 label"),
        "{found:?}"
    );
    post("storageversion.integration.test.foos").await.expect(201);
    let generated = json!({"metadata": {"generateName": "test.resource"}});
    let name = server.post(VERSIONS, &generated).await.expect(201)["metadata"]["name"].clone();
    assert!(name.as_str().expect("a name").starts_with("test.resource"), "{name}");
    server.stop().await;
}

async fn storage_version_37_migrations(setup: Setup) {
    let server = setup.start().await;
    let body = |resource: Value| json!({"metadata": {"name": "m"}, "spec": {"resource": resource}});
    let without = server.post(MIGRATIONS, &body(json!({"group": "apps"}))).await;
    refused(&without, "spec.resource.resource", "Required value: resource is required to be set");
    let mut with_status = body(json!({"group": "", "resource": "nothing"}));
    with_status["status"] = json!({"resourceVersion": "7"});
    let made = server.post(MIGRATIONS, &with_status).await.expect(201);
    assert_ne!(made["status"]["resourceVersion"], "7");
    let mut changed = server.get(format!("{MIGRATIONS}/m")).await.ok();
    changed["spec"]["resource"]["resource"] = "others".into();
    let answer = loop {
        let answer = server.put(format!("{MIGRATIONS}/m"), &changed).await;
        if answer.status != 409 {
            break answer;
        }
        // The controller has started it.
        let now = server.get(format!("{MIGRATIONS}/m")).await.ok();
        changed["metadata"]["resourceVersion"] = now["metadata"]["resourceVersion"].clone();
    };
    let message =
        "Invalid value: {\"Resource\":{\"group\":\"\",\"resource\":\"others\"}}: field is immutable";
    refused(&answer, "spec", message);
    server.stop().await;
}

/// The status of a migration that its controller has finished.
async fn storage_version_38_39_the_status_of_migrations(setup: Setup) {
    let server = setup.start().await;
    let resource = json!({"group": "", "resource": "configmaps"});
    let made =
        server.post(MIGRATIONS, &json!({"metadata": {"name": "m"}, "spec": {"resource": resource}})).await;
    let at = made.expect(201)["metadata"]["resourceVersion"].as_str().expect("text").to_owned();
    let mut watch = server.watch(format!("{MIGRATIONS}?watch=1&resourceVersion={at}")).await;
    let done = loop {
        let object = watch.expect("MODIFIED").await;
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        if conditions.iter().any(|c| c["type"] == "Running" && c["status"] == "False") {
            break object;
        }
    };
    let put = async |change: &dyn Fn(&mut Value)| {
        let mut object = done.clone();
        change(&mut object["status"]);
        server.put(format!("{MIGRATIONS}/m/status"), &object).await
    };
    let field = "status.resourceVersion";
    for bad in ["0", "007", "abc"] {
        let found = causes(&put(&|status| status["resourceVersion"] = bad.into()).await);
        let malformed = format!("Invalid value: \"{bad}\": resource version is not well formed: {bad}");
        let fixed = format!("Invalid value: \"{bad}\": field is immutable");
        assert_eq!(found, [(field.to_owned(), malformed), (field.to_owned(), fixed)]);
    }
    refused(
        &put(&|status| status["resourceVersion"] = "1".into()).await,
        field,
        "Invalid value: \"1\": field is immutable",
    );
    let conditions = |answer: &Answer, why: &str| {
        let found = causes(answer);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].0 == "status.conditions" && found[0].1.ends_with(why), "{found:?}");
    };
    let succeeded = done["status"]["conditions"]
        .as_array()
        .expect("conditions")
        .iter()
        .position(|c| c["type"] == "Succeeded");
    let succeeded = succeeded.expect("it has succeeded");
    let failed = json!({"type": "Failed", "status": "True", "reason": "R", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let both = put(&|status| status["conditions"].as_array_mut().expect("a list").push(failed.clone())).await;
    conditions(&both, "Both success and failed conditions cannot be true at the same time");
    let back = put(&|status| status["conditions"][succeeded]["status"] = "False".into()).await;
    conditions(&back, "Success condition cannot be set to false once it is true");
    let running = done["status"]["conditions"]
        .as_array()
        .expect("conditions")
        .iter()
        .position(|c| c["type"] == "Running");
    put(&|status| status["conditions"][running.expect("there")]["status"] = "True".into()).await.ok();
    server.stop().await;
}

async fn storage_version_16_three_servers_and_one_more(setup: Setup) {
    let server = setup.start().await;
    let name = "example.com.things";
    server.post(VERSIONS, &json!({"metadata": {"name": name}})).await.expect(201);
    let table = async || {
        let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let table = server.get(format!("{VERSIONS}/{name}")).accept(accept).await.ok();
        let cell = |n: usize| table["rows"][0]["cells"][n].as_str().expect("text").to_owned();
        (cell(1), cell(2))
    };
    assert_eq!(table().await.0, "<unset>");
    let entries: Vec<Value> = ["a", "b", "c", "d"].iter().map(|server| entry(server, "v1")).collect();
    put_status(&server, name, json!({"storageVersions": entries, "commonEncodingVersion": "v1"})).await.ok();
    assert_eq!(table().await, ("v1".to_owned(), "a=v1,b=v1,c=v1 + 1 more...".to_owned()));
    server.stop().await;
}

/// `v1beta1` would cause a warning; upstream serves it only if it is enabled, which is not possible here.
async fn storage_version_50_the_current_version_warns_of_nothing(setup: Setup) {
    let server = setup.start().await;
    let resource = json!({"group": "", "resource": "configmaps"});
    let made =
        server.post(MIGRATIONS, &json!({"metadata": {"name": "m"}, "spec": {"resource": resource}})).await;
    let read = server.get(format!("{MIGRATIONS}/m")).await;
    for answer in [&made, &read] {
        assert!((200..300).contains(&answer.status) && answer.header("warning").is_none(), "{answer:?}");
    }
    let versions = server.get("/apis/storagemigration.k8s.io").await.ok();
    let served: Vec<_> =
        versions["versions"].as_array().expect("versions").iter().map(|v| &v["version"]).collect();
    assert_eq!(served, ["v1"]);
    assert_eq!(server.get(MIGRATIONS.replace("v1", "v1beta1")).await.status, 404);
    server.stop().await;
}
