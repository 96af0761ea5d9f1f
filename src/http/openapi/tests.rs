use serde_json::{Value, json};

use super::*;
use crate::schema::builtin;
use crate::schema::resource::Verb;

fn openapi() -> OpenApi {
    OpenApi::new(Arc::new(Registry::new(builtin::definitions())))
}

fn parse(document: &Document) -> Value {
    serde_json::from_slice(&document.body).unwrap()
}

/// What kubectl's field validation verifier does: find a PATCH of the kind with the parameter.
fn supports_field_validation(document: &Value, kind: &Value) -> bool {
    document["paths"].as_object().unwrap().values().filter_map(|item| item.get("patch")).any(|patch| {
        patch["x-kubernetes-group-version-kind"] == *kind
            && patch["parameters"]
                .as_array()
                .unwrap()
                .iter()
                .any(|p| p["name"] == "fieldValidation" && p["in"] == "query")
    })
}

#[test]
fn every_patchable_kind_supports_field_validation() {
    let openapi = openapi();
    let v2 = parse(openapi.v2());
    for d in openapi.registry.definitions().filter(|d| d.allows(Verb::Patch)) {
        let kind = json!({"group": &*d.group, "kind": &*d.kind, "version": &*d.version});
        let path = openapi.registry.group_version(&d.group, &d.version).unwrap().path();
        let v3 = parse(openapi.v3(&path).unwrap());
        assert!(supports_field_validation(&v3, &kind), "v3 {kind}");
        assert!(supports_field_validation(&v2, &kind), "v2 {kind}");
    }
}

#[test]
fn the_index_points_at_the_documents() {
    let openapi = openapi();
    let index = parse(openapi.v3_index());
    let paths = index["paths"].as_object().unwrap();
    assert!(paths.keys().is_sorted());
    assert!(paths.contains_key("api/v1") && paths.contains_key("apis/autoscaling/v2"));
    for (path, entry) in paths {
        let document = openapi.v3(path).unwrap();
        let url = format!("/openapi/v3/{path}?hash={}", document.etag().trim_matches('"'));
        assert_eq!(entry["serverRelativeURL"], url);
    }
    assert!(openapi.v3("apis/nope/v1").is_none());
}

#[test]
fn references_resolve() {
    let openapi = openapi();
    let mut documents: Vec<Value> = openapi.all_v3().by_path.values().map(parse).collect();
    documents.push(parse(openapi.v2()));
    for document in &documents {
        let mut references = Vec::new();
        collect_references(document, &mut references);
        assert!(!references.is_empty());
        for reference in references {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
    }
}

fn collect_references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|field| collect_references(field, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, found)),
        _ => {}
    }
}

#[test]
fn operation_ids_are_upstreams_and_unique() {
    let v2 = parse(openapi().v2());
    let mut ids = std::collections::BTreeSet::new();
    for item in v2["paths"].as_object().unwrap().values() {
        for (method, operation) in item.as_object().unwrap() {
            if method != "parameters" {
                let id = operation["operationId"].as_str().unwrap().to_owned();
                assert!(ids.insert(id.clone()), "{id} twice");
            }
        }
    }
    for id in [
        "listCoreV1NamespacedPod",
        "listCoreV1PodForAllNamespaces",
        "readAppsV1NamespacedDeploymentScale",
        "replaceCoreV1NamespaceFinalize",
        "deleteCoreV1CollectionNamespacedPod",
        "deleteStorageV1CollectionStorageClass",
        "createAuthorizationV1NamespacedLocalSubjectAccessReview",
    ] {
        assert!(ids.contains(id), "{id}");
    }
    assert!(!ids.contains("deleteCoreV1CollectionNamespace"));
}

#[test]
fn kinds_are_found_by_their_extension() {
    let apps = parse(openapi().v3("apis/apps/v1").unwrap());
    let schemas = &apps["components"]["schemas"];
    let deployment = &schemas["io.k8s.api.apps.v1.Deployment"];
    let kind = json!([{"group": "apps", "kind": "Deployment", "version": "v1"}]);
    assert_eq!(deployment["x-kubernetes-group-version-kind"], kind);
    assert_eq!(deployment["x-kubernetes-preserve-unknown-fields"], true);
    assert!(deployment["properties"]["metadata"].is_object());
    assert!(schemas.get("io.k8s.api.autoscaling.v1.Scale").is_some());
    assert!(schemas.get("io.k8s.api.apps.v1.DeploymentList").is_some());
    let get = &apps["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["get"];
    assert_eq!(get["x-kubernetes-group-version-kind"], kind[0]);
}

#[test]
fn v2_definitions_allow_any_field() {
    let v2 = parse(openapi().v2());
    let pod = json!({
        "type": "object",
        "x-kubernetes-group-version-kind": [{"group": "", "kind": "Pod", "version": "v1"}],
    });
    assert_eq!(v2["definitions"]["io.k8s.api.core.v1.Pod"], pod);
}

#[test]
fn path_parameters_match_the_path() {
    for document in openapi().all_v3().by_path.values().map(parse) {
        for (path, item) in document["paths"].as_object().unwrap() {
            for parameter in item["parameters"].as_array().unwrap() {
                let name = parameter["name"].as_str().unwrap();
                let in_path = path.contains(&format!("{{{name}}}"));
                assert_eq!(parameter["in"] == "path", in_path, "{path} {name}");
            }
        }
    }
}
