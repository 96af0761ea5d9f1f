use super::*;
use crate::kinds::built_in;
use crate::schema::registry::Registry;

fn registry() -> Registry {
    Registry::new(built_in::definitions())
}

fn documents() -> Documents {
    Documents::build(&Arc::new(registry()), &Extensions::default(), "10.0.0.1:6443", None)
}

fn parse(document: &Document) -> Value {
    serde_json::from_slice(&document.body).unwrap()
}

#[test]
fn resource_entries_have_upstreams_fields() {
    let core = documents().resources(&GroupVersion::fixed("v1")).unwrap().json().clone();
    let text = String::from_utf8(core.body.to_vec()).unwrap();
    assert!(text.starts_with(r#"{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"#));
    assert!(text.contains(concat!(
        r#"{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["create","delete","#,
        r#""deletecollection","get","list","patch","update","watch"],"shortNames":["po"],"#,
        r#""categories":["all"],"storageVersionHash":"xPOwRZ+Yhw8="}"#
    )));
    assert!(text.contains(concat!(
        r#"{"name":"replicationcontrollers/scale","singularName":"","namespaced":true,"#,
        r#""group":"autoscaling","version":"v1","kind":"Scale","verbs":["get","patch","update"]}"#
    )));
    let apps = parse(documents().resources(&GroupVersion::fixed("apps/v1")).unwrap().json());
    assert_eq!(apps["apiVersion"], "v1");
}

#[test]
fn aggregated_documents_split_core_from_the_rest() {
    let documents = documents();
    let api = parse(documents.api.aggregated.json());
    assert_eq!(api["items"].as_array().unwrap().len(), 1);
    assert_eq!(api["items"][0]["metadata"], json!({}));
    let apis = parse(documents.apis.aggregated.json());
    assert_eq!(apis["items"][1]["metadata"], json!({"name": "apps"}));
    let apps = &apis["items"][1]["versions"][0];
    assert_eq!(apps["freshness"], "Current");
    let deployment = json!({
        "resource": "deployments",
        "responseKind": {"group": "", "version": "", "kind": "Deployment"},
        "scope": "Namespaced",
        "singularResource": "deployment",
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        "shortNames": ["deploy"],
        "categories": ["all"],
        "subresources": [
            {
                "subresource": "scale",
                "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
                "verbs": ["get", "patch", "update"],
            },
            {
                "subresource": "status",
                "responseKind": {"group": "", "version": "", "kind": "Deployment"},
                "verbs": ["get", "patch", "update"],
            },
        ],
    });
    assert_eq!(apps["resources"][2], deployment);
}

#[test]
fn aggregated_json_is_the_same_from_parts() {
    let registry = Arc::new(registry());
    let documents = Documents::build(&registry, &Extensions::default(), "10.0.0.1:6443", None);
    for discovery in [&documents.api, &documents.apis] {
        let whole = Document::compact(&(discovery.aggregated.value)());
        assert_eq!(discovery.aggregated.json().body, whole.body);
    }
    let next = Documents::build(&registry, &Extensions::default(), "10.0.0.1:6443", Some(&documents));
    assert!(next.parts.iter().all(|(version, part)| Arc::ptr_eq(part, &documents.parts[version])));
}
