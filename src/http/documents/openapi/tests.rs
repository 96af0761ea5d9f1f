use super::*;
use crate::kinds::built_in;
use crate::schema::resource::Verb;
use crate::tree::{Value, json};

fn openapi() -> OpenApi {
    OpenApi::new(
        Arc::new(Registry::new(built_in::definitions())),
        Default::default(),
        &Default::default(),
        None,
    )
}

fn parse(document: Kept<'_>) -> Value {
    serde_json::from_slice(&document.body()).unwrap()
}

fn v3(openapi: &OpenApi, path: &str) -> Value {
    parse(openapi.v3(path, Form::Json).unwrap_or_else(|| panic!("no document {path}")))
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
    let v2 = parse(openapi.v2(Form::Json));
    for d in openapi.registry.definitions().filter(|d| d.allows(Verb::Patch)) {
        let kind =
            json!({"group": d.group().as_str(), "kind": d.kind_name().as_str(), "version": d.version()});
        let path = openapi.registry.version(d.group_version()).unwrap().path();
        let v3 = v3(&openapi, &path);
        assert!(supports_field_validation(&v3, &kind), "v3 {kind}");
        assert!(supports_field_validation(&v2, &kind), "v2 {kind}");
    }
}

#[test]
fn the_index_points_at_the_documents() {
    let openapi = openapi();
    let index: Value = serde_json::from_slice(&openapi.v3_index().0.body).unwrap();
    let paths = index["paths"].as_object().unwrap();
    assert!(paths.keys().is_sorted());
    for path in ["api", "api/v1", "apis", "apis/apps", "apis/autoscaling/v2", "version"] {
        assert!(paths.contains_key(path), "{path}");
    }
    for (path, entry) in paths {
        let document = openapi.v3(path, Form::Json).unwrap();
        let url = format!("/openapi/v3/{path}?hash={}", document.hash);
        assert_eq!(entry["serverRelativeURL"], url);
    }
    assert!(openapi.v3("apis/nope/v1", Form::Json).is_none());
}

#[test]
fn references_resolve() {
    let openapi = openapi();
    let mut documents: Vec<Value> =
        openapi.built_in().by_path.keys().map(|path| v3(&openapi, path)).collect();
    documents.push(parse(openapi.v2(Form::Json)));
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
    let v2 = parse(openapi().v2(Form::Json));
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
        "readCoreV1NamespacedPodLog",
        "connectCoreV1GetNamespacedPodExec",
        "connectCoreV1PostNamespacedPodPortforward",
        "connectCoreV1OptionsNamespacedServiceProxyWithPath",
        "connectCoreV1DeleteNodeProxy",
    ] {
        assert!(ids.contains(id), "{id}");
    }
    assert!(!ids.contains("deleteCoreV1CollectionNamespace"));
}

#[test]
fn kinds_are_found_by_their_extension() {
    let openapi = openapi();
    let apps = v3(&openapi, "apis/apps/v1");
    let schemas = &apps["components"]["schemas"];
    let deployment = &schemas["io.k8s.api.apps.v1.Deployment"];
    let kind = json!([{"group": "apps", "kind": "Deployment", "version": "v1"}]);
    assert_eq!(deployment["x-kubernetes-group-version-kind"], kind);
    assert!(schemas.get("io.k8s.api.apps.v1.DeploymentList").is_some());
    let scale = json!([{"group": "autoscaling", "kind": "Scale", "version": "v1"}]);
    assert_eq!(schemas["io.k8s.api.autoscaling.v1.Scale"]["x-kubernetes-group-version-kind"], scale);
    let get = &apps["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["get"];
    assert_eq!(get["x-kubernetes-group-version-kind"], kind[0]);
    let options = json!([
        {"group": "", "kind": "DeleteOptions", "version": "v1"},
        {"group": "apps", "kind": "DeleteOptions", "version": "v1"},
    ]);
    assert_eq!(schemas[names::DELETE_OPTIONS]["x-kubernetes-group-version-kind"], options);
}

#[test]
fn schemas_say_what_clients_read() {
    let core = v3(&openapi(), "api/v1");
    let schemas = &core["components"]["schemas"];
    let mut containers = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"].clone();
    containers.as_object_mut().unwrap().shift_remove("description");
    let expected = json!({
        "type": "array",
        "items": {"allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"}], "default": {}},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "x-kubernetes-patch-strategy": "merge",
        "x-kubernetes-patch-merge-key": "name",
    });
    assert_eq!(containers, expected);
    assert_eq!(schemas["io.k8s.api.core.v1.PodSpec"]["required"], json!(["containers"]));
    let protocol = &schemas["io.k8s.api.core.v1.ContainerPort"]["properties"]["protocol"];
    assert_eq!(protocol["default"], "TCP");
    assert_eq!(protocol["enum"], json!(["SCTP", "TCP", "UDP"]));
    let probe = &schemas["io.k8s.api.core.v1.Probe"]["properties"];
    assert!(probe["httpGet"].is_object(), "parts are inlined");
    let quantity = &schemas["io.k8s.apimachinery.pkg.api.resource.Quantity"]["oneOf"];
    assert_eq!(*quantity, json!([{"type": "string"}, {"type": "number"}]));
}

#[test]
fn v2_says_nothing_that_swagger_cannot_say() {
    let v2 = parse(openapi().v2(Form::Json));
    let definitions = &v2["definitions"];
    let metadata = &definitions["io.k8s.api.core.v1.Pod"]["properties"]["metadata"];
    assert_eq!(metadata["$ref"], "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    assert_eq!(definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"]["type"], "string");
    let port = &definitions["io.k8s.api.core.v1.ContainerPort"]["properties"];
    assert!(port["protocol"].get("default").is_none());
    let int_or_string = &definitions["io.k8s.apimachinery.pkg.util.intstr.IntOrString"];
    assert_eq!((&int_or_string["type"], int_or_string.get("oneOf")), (&json!("string"), None));
}

#[test]
fn path_parameters_match_the_path() {
    let openapi = openapi();
    let v2 = String::from_utf8(openapi.v2(Form::Json).body().to_vec()).unwrap();
    let paths = serde_json::to_string(&serde_json::from_str::<Value>(&v2).unwrap()["paths"]).unwrap();
    assert!(v2.contains(&paths), "a path that is there twice is lost when the document is read");
    for document in openapi.built_in().by_path.keys().map(|path| v3(&openapi, path)) {
        for (path, item) in document["paths"].as_object().unwrap() {
            for parameter in item["parameters"].as_array().into_iter().flatten() {
                let name = parameter["name"].as_str().unwrap();
                let in_path = path.contains(&format!("{{{name}}}"));
                // A proxy has a path in its query, too.
                let is_proxy = path.contains("/proxy") && parameter["in"] == "query";
                assert!((parameter["in"] == "path") == in_path || is_proxy, "{path} {name}");
            }
        }
    }
}

#[test]
fn what_connects_is_told_with_its_options() {
    let core = v3(&openapi(), "api/v1");
    let pod = "/api/v1/namespaces/{namespace}/pods/{name}";
    let names = |path: &str| {
        let parameters = core["paths"][path]["parameters"].as_array().expect("parameters");
        parameters.iter().map(|one| one["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    let exec = &core["paths"][&format!("{pod}/exec")];
    assert_eq!(exec["get"]["x-kubernetes-action"], "connect");
    let kind = json!({"group": "", "kind": "PodExecOptions", "version": "v1"});
    assert_eq!(exec["post"]["x-kubernetes-group-version-kind"], kind);
    assert_eq!(exec["get"]["description"], "connect GET requests to exec of Pod");
    assert_eq!(exec["get"]["responses"]["200"]["content"], json!({"*/*": {"schema": {"type": "string"}}}));
    assert!(exec["post"].get("requestBody").is_none());
    let of_exec = ["command", "container", "name", "namespace", "stderr", "stdin", "stdout", "tty"];
    assert_eq!(names(&format!("{pod}/exec")), of_exec);
    assert_eq!(names(&format!("{pod}/proxy/{{path}}")), ["name", "namespace", "path", "path"]);
    let log = &core["paths"][&format!("{pod}/log")]["get"];
    assert_eq!(
        (&log["x-kubernetes-action"], &log["operationId"]),
        (&json!("get"), &json!("readCoreV1NamespacedPodLog"))
    );
    assert!(log["responses"]["200"]["content"]["text/plain"].is_object());
    assert_eq!(names(&format!("{pod}/log")).len(), 12);
    let methods = core["paths"]["/api/v1/nodes/{name}/proxy"].as_object().expect("methods").len();
    assert_eq!(methods, 8, "seven methods and the parameters");
}
