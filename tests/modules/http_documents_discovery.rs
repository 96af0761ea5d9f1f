//! Tests of `http::documents::discovery`.

use std::sync::Arc;

use rowplane::http::documents::discovery::{Documents, Extensions, legacy};
use rowplane::http::documents::document::Document;
use rowplane_objects::kinds::built_in;
use rowplane_objects::schema::names::GroupVersion;
use rowplane_objects::schema::registry::Registry;
use rowplane_values::tree::Value;

fn registry() -> Registry {
    Registry::new(built_in::definitions())
}

fn documents() -> Documents {
    Documents::build(&Arc::new(registry()), &Extensions::default(), "10.0.0.1:6443", None)
}

fn parse(document: &Document) -> Value {
    serde_json::from_slice(&document.body).unwrap()
}

fn names(list: &Value, key: &str) -> Vec<String> {
    list.as_array().unwrap().iter().map(|item| item[key].as_str().unwrap().to_owned()).collect()
}

#[test]
fn storage_version_hashes_are_upstreams() {
    let registry = registry();
    let hash = |group: &str, version: &str, plural: &str| {
        legacy::storage_version_hash(
            &registry.lookup(&GroupVersion::new(group, version).with_plural(plural)).unwrap(),
        )
    };
    for (group, version, plural, expected) in [
        ("", "v1", "pods", "xPOwRZ+Yhw8="),
        ("", "v1", "namespaces", "Q3oi5N2YM8M="),
        ("", "v1", "events", "r2yiGXH7wu8="),
        ("events.k8s.io", "v1", "events", "r2yiGXH7wu8="),
        ("apps", "v1", "deployments", "8aSe+NMegvE="),
        ("autoscaling", "v1", "horizontalpodautoscalers", "qwQve8ut294="),
        ("autoscaling", "v2", "horizontalpodautoscalers", "qwQve8ut294="),
        ("resource.k8s.io", "v1", "deviceclasses", "Yk2PTc1Ybxk="),
        ("storage.k8s.io", "v1", "storageclasses", "K+m6uJwbjGY="),
        ("internal.apiserver.k8s.io", "v1alpha1", "storageversions", "c8YZt5U0nPk="),
    ] {
        assert_eq!(hash(group, version, plural).as_deref(), Some(expected), "{group} {plural}");
    }
    assert_eq!(hash("authentication.k8s.io", "v1", "tokenreviews"), None);
}

#[test]
fn api_names_the_core_versions() {
    let body = documents().api.legacy.json().body.clone();
    let expected = concat!(
        r#"{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":"#,
        r#"[{"clientCIDR":"0.0.0.0/0","serverAddress":"10.0.0.1:6443"}]}"#,
        "\n"
    );
    assert_eq!(body, expected);
}

#[test]
fn apis_lists_the_named_groups_in_order() {
    let apis = parse(documents().apis.legacy.json());
    let groups = names(&apis["groups"], "name");
    assert_eq!(groups[..3], ["apiregistration.k8s.io", "apps", "events.k8s.io"]);
    assert!(!groups.contains(&String::new()));
    let scaling = apis["groups"].as_array().unwrap().iter().find(|g| g["name"] == "autoscaling").unwrap();
    assert_eq!(names(&scaling["versions"], "groupVersion"), ["autoscaling/v2", "autoscaling/v1"]);
    assert_eq!(scaling["preferredVersion"]["version"], "v2");
}

#[test]
fn a_group_document_stands_alone() {
    let documents = documents();
    let expected = concat!(
        r#"{"kind":"APIGroup","apiVersion":"v1","name":"apps","#,
        r#""versions":[{"groupVersion":"apps/v1","version":"v1"}],"#,
        r#""preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}"#,
        "\n"
    );
    assert_eq!(documents.group("apps").unwrap().json().body, expected);
    assert!(documents.group("").is_none() && documents.group("nope").is_none());
    assert!(documents.resources(&GroupVersion::fixed("apps/v2")).is_none());
}

#[test]
fn resource_lists_are_sorted_by_path() {
    for group in registry().groups() {
        for version in &group.versions {
            let list = legacy::resource_list(version, &vec![true; version.resources.len()]);
            let paths = names(&list["resources"], "name");
            assert!(paths.is_sorted(), "{paths:?}");
        }
    }
}

#[test]
fn etags_are_quoted_hex_and_follow_the_content() {
    let documents = documents();
    let etag = documents.apis.aggregated.json().etag();
    assert_eq!(etag.len(), 130);
    assert!(etag.trim_matches('"').bytes().all(|b| b.is_ascii_digit() || (b'A'..=b'F').contains(&b)));
    assert_eq!(etag, self::documents().apis.aggregated.json().etag(), "must not depend on hash order");
    assert_ne!(etag, documents.api.aggregated.json().etag());
}

#[test]
fn index_is_sorted_bytewise() {
    let documents = documents();
    assert!(documents.index().body.starts_with(b"{\n  \"paths\": [\n    \"/api\",\n"));
    let index = parse(documents.index());
    let paths: Vec<&str> = index["paths"].as_array().unwrap().iter().map(|p| p.as_str().unwrap()).collect();
    assert!(paths.is_sorted());
    for path in ["/api/v1", "/apis", "/apis/", "/apis/apps", "/apis/apps/v1", "/openapi/v3/"] {
        assert!(paths.contains(&path), "{path}");
    }
    assert!(!paths.contains(&"/apis//v1"));
}
