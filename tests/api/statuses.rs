//! Every kind's status over its own path: it leaves the rest of the object alone, the object's path leaves it alone,
//! and managers' entries say through which of the two they came.

use std::collections::{BTreeMap, BTreeSet};

use rowplane::server::config::Controllers;
use serde_json::{Value, json};

use crate::managers::entry;
use crate::support::server::{Setup, TestServer};

on_every_store! {
    statuses_and_specs_keep_out_of_each_other,
    health_of_storage_is_not_kept,
}

/// Kinds whose statuses the servers themselves write; `tests/storage_version` and `policies::validating` have these.
const WRITTEN_BY_SERVERS: [&str; 3] =
    ["storageversions", "storageversionmigrations", "validatingadmissionpolicies"];

/// An object of each kind, by version and kind.
fn bases() -> BTreeMap<(String, String), Value> {
    let mut bases = BTreeMap::new();
    for name in ["admission", "apps", "batch", "certificates", "config", "devices", "extension", "networking"]
        .into_iter()
        .chain(["pod", "storage"])
    {
        let path = format!("{}/testdata/validation/bases/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).expect("a base");
        for document in text.split("\n---\n") {
            let object: Value = serde_saphyr::from_str(document).expect("YAML");
            let text = |name: &str| object[name].as_str().expect(name).to_owned();
            let (version, kind) = (text("apiVersion"), text("kind"));
            bases.entry((version, kind)).or_insert(object);
        }
    }
    let scaler = json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "one"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}});
    bases.insert(("autoscaling/v1".to_owned(), "HorizontalPodAutoscaler".to_owned()), scaler);
    bases
}

/// What a status comes to say; a CSINode's only field is of a feature that is off.
fn status_of(kind: &str, base: &Value) -> Value {
    let condition = json!({"type": "Tested", "status": "True", "reason": "Tested", "message": "m",
        "lastTransitionTime": "2026-01-02T03:04:05Z"});
    match kind {
        "CSINode" => json!({}),
        // Its conditions are owned by nobody who writes them here.
        "CertificateSigningRequest" => json!({"certificate": base["status"]["certificate"]}),
        "CronJob" => json!({"lastScheduleTime": "2026-01-02T03:04:05Z"}),
        "CustomResourceDefinition" => json!({"conditions": [condition], "storedVersions": ["v1"]}),
        "HorizontalPodAutoscaler" => json!({"currentReplicas": 1, "desiredReplicas": 2}),
        "Ingress" => json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}),
        "Namespace" => json!({"conditions": [{"type": "Tested", "status": "True"}]}),
        "PersistentVolume" => json!({"phase": "Failed", "reason": "Broken"}),
        "PersistentVolumeClaim" | "Pod" => json!({"phase": "Pending", "conditions": [condition]}),
        "PodCertificateRequest" => {
            json!({"conditions": [{"type": "Denied", "status": "True", "reason": "Refused",
            "message": "not you", "lastTransitionTime": "2026-01-02T03:04:05Z"}]})
        }
        "PodDisruptionBudget" => json!({"disruptionsAllowed": 1, "conditions": [condition]}),
        "ResourceClaim" => base["status"].clone(),
        "ResourceQuota" => json!({"hard": {"pods": "9"}, "used": {"pods": "0"}}),
        "VolumeAttachment" => json!({"attached": true, "attachmentMetadata": {"a": "b"}}),
        _ => json!({"conditions": [condition]}),
    }
}

fn member<'a>(object: &'a Value, name: &str) -> &'a Value {
    object.get(name).unwrap_or(&Value::Null)
}

/// Whether everything that is wanted is there.
fn says(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (_, Value::Object(wanted)) => wanted.iter().all(|(name, wanted)| says(member(found, name), wanted)),
        (Value::Array(found), Value::Array(wanted)) => {
            wanted.iter().all(|wanted| found.iter().any(|found| says(found, wanted)))
        }
        _ => found == wanted,
    }
}

/// Creates an object, in `t` if it has a namespace.
async fn create(server: &TestServer, collection: &str, mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().expect("metadata");
    metadata.remove("namespace");
    // Where nobody owns anything at first, as of requests for certificates, nobody ever does.
    object["metadata"]["labels"]["example.com/made"] = "yes".into();
    object.as_object_mut().expect("an object").remove("status");
    server.post(format!("{collection}?fieldManager=creator"), &object).await.expect(201)
}

async fn statuses_and_specs_keep_out_of_each_other(mut setup: Setup) {
    // The server looks at APIServices, and writes into their statuses what it finds.
    setup.controllers = Controllers::Off;
    let server = setup.start().await;
    let (bases, mut tried) = (bases(), BTreeSet::new());
    let mut versions = vec![("v1".to_owned(), "/api/v1".to_owned())];
    for group in server.get("/apis").await.ok()["groups"].as_array().expect("groups") {
        for version in group["versions"].as_array().expect("versions") {
            let version = version["groupVersion"].as_str().expect("a version");
            versions.push((version.to_owned(), format!("/apis/{version}")));
        }
    }
    for (version, path) in versions {
        let served = server.get(&*path).await.ok();
        for resource in served["resources"].as_array().expect("resources") {
            let name = resource["name"].as_str().expect("a name");
            let Some(plural) = name.strip_suffix("/status") else { continue };
            if WRITTEN_BY_SERVERS.contains(&plural) {
                continue;
            }
            let kind = resource["kind"].as_str().expect("a kind");
            let base = bases.get(&(version.clone(), kind.to_owned()));
            let base = base.unwrap_or_else(|| panic!("no base of {version} {kind}"));
            let place = if resource["namespaced"] == true { "/namespaces/t" } else { "" };
            one_kind(&server, &format!("{path}{place}/{plural}"), kind, base).await;
            tried.insert(kind.to_owned());
        }
    }
    assert!(tried.contains("CSINode") && tried.len() >= 28, "{tried:?}");
}

async fn one_kind(server: &TestServer, collection: &str, kind: &str, base: &Value) {
    let created = create(server, collection, base.clone()).await;
    let path = format!("{collection}/{}", created["metadata"]["name"].as_str().expect("a name"));
    let wanted = status_of(kind, base);

    // What its status is written with says nothing of its spec.
    let mut reported = created.clone();
    reported.as_object_mut().expect("an object").remove("spec");
    reported["status"] = wanted.clone();
    let status = server.put(format!("{path}/status?fieldManager=reporter"), &reported).await;
    let status = status.ok();
    assert_eq!(status["spec"], created["spec"], "{kind}");
    assert_eq!(status["metadata"]["generation"], created["metadata"]["generation"], "{kind}");
    assert!(says(member(&status, "status"), &wanted), "{kind}: {status}");
    assert_eq!(entry(&status, "reporter", "Update", ""), None, "{kind}: {status}");
    let entry_of_status = entry(&status, "reporter", "Update", "status");
    assert_eq!(entry_of_status.is_some(), !says(&json!({}), &wanted), "{kind}: {status}");
    if let Some(entry) = entry_of_status {
        let fields = entry["fieldsV1"].as_object().expect("fields");
        assert_eq!(fields.keys().collect::<Vec<_>>(), ["f:status"], "{kind}");
    }

    // And the other way round.
    let mut written = status.clone();
    written["status"] = json!({});
    written["metadata"]["annotations"]["example.com/written"] = "yes".into();
    let main = server.put(format!("{path}?fieldManager=writer"), &written).await;
    let main = main.ok();
    assert_eq!((&main["status"], &main["spec"]), (&status["status"], &status["spec"]), "{kind}");
    assert_eq!(entry(&main, "reporter", "Update", "status"), entry_of_status, "{kind}: {main}");
    let fields = entry(&main, "writer", "Update", "").unwrap_or_else(|| panic!("{kind}: {main}"));
    assert_eq!(fields["fieldsV1"].get("f:status"), None, "{kind}: {main}");
    assert!(
        fields["fieldsV1"]["f:metadata"]["f:annotations"]["f:example.com/written"].is_object(),
        "{kind}: {main}"
    );
    assert_eq!(server.get(format!("{path}/status")).await.ok(), main, "{kind}");
}

/// `CSIVolumeHealth` is off in v1.37.
async fn health_of_storage_is_not_kept(setup: Setup) {
    let server = setup.start().await;
    let collection = "/apis/storage.k8s.io/v1/csinodes";
    let base = &bases()[&("storage.k8s.io/v1".to_owned(), "CSINode".to_owned())];
    let created = create(&server, collection, base.clone()).await;
    let path = format!("{collection}/{}", created["metadata"]["name"].as_str().expect("a name"));
    let mut reported = created.clone();
    reported["status"] = json!({"storageHealth": [{"name": "csi.example.com"}]});
    let through = |path: String, object: &Value| server.put(format!("{path}?fieldManager=m"), object);
    let mut main = through(path.clone(), &reported).await.ok();
    assert_eq!((&main["spec"], &main["status"]), (&created["spec"], &json!({})));
    main["status"] = reported["status"].clone();
    main["spec"] = json!({"drivers": []});
    let status = through(format!("{path}/status"), &main).await.ok();
    assert_eq!((&status["spec"], &status["status"]), (&created["spec"], &json!({})));
    // Who reports it all the same has written through the status.
    let found = server.get(&*path).await.ok();
    let entry = entry(&found, "m", "Update", "status").expect("an entry");
    assert!(entry["fieldsV1"]["f:status"]["f:storageHealth"].is_object(), "{entry}");
}
