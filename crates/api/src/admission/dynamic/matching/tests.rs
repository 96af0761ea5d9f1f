//! Rules against requests, without a server.

use super::*;
use crate::catalog::samples;
use crate::tree::json;

fn rule(rule: Value) -> Rule {
    let mut whole =
        json!({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]});
    if let (Value::Object(whole), Value::Object(rule)) = (&mut whole, rule) {
        whole.extend(rule);
    }
    Rule::of(whole.as_object().expect("an object"))
}

#[test]
fn rules_match_as_upstreams_do() {
    let served = samples::first();
    let pods = served.get(&Gvr::fixed("v1", "pods")).expect("pods");
    let namespaces = served.get(&NAMESPACES).expect("namespaces");
    let matches = |given: Value, resource: &Resource, subresource: &str| {
        let facts = Facts { operation: Operation::Update, resource, subresource, namespace: "n", name: "a" };
        rule(given).matches(&facts, resource)
    };
    for (pattern, plain, status) in [
        ("pods", true, false),
        ("pods/status", false, true),
        ("*", true, false),
        ("*/*", true, true),
        ("pods/*", true, true),
        ("*/status", false, true),
        ("*/scale", false, false),
        ("services", false, false),
    ] {
        assert_eq!(matches(json!({"resources": [pattern]}), pods, ""), plain, "{pattern}");
        assert_eq!(matches(json!({"resources": [pattern]}), pods, "status"), status, "{pattern}");
    }
    for (given, expected) in [
        (json!({"apiGroups": [""]}), true),
        (json!({"apiGroups": ["apps"]}), false),
        (json!({"apiVersions": ["v2", "v1"]}), true),
        (json!({"apiVersions": ["v2"]}), false),
        (json!({"operations": ["CREATE"]}), false),
        (json!({"operations": ["CREATE", "UPDATE"]}), true),
        (json!({"scope": "Namespaced"}), true),
        (json!({"scope": "Cluster"}), false),
        (json!({"resourceNames": ["b", "a"]}), true),
        (json!({"resourceNames": ["b"]}), false),
    ] {
        assert_eq!(matches(given.clone(), pods, ""), expected, "{given}");
    }
    assert!(matches(json!({"scope": "Cluster"}), namespaces, ""));
    assert!(!matches(json!({"scope": "Namespaced"}), namespaces, ""));
}
