use std::io::Read;

use crate::kinds::apiextensions::custom_resource_definition::KIND;
use crate::schema::builtin;
use crate::schema::names::Gvk;
use crate::tree::{Map, Value, json};

/// Schemas that something is wrong with, and what upstream says of them: `tests/upstream/structural rules`.
const UPSTREAM: &[u8] = include_bytes!("../../../../../testdata/structural/rules.jsonl.gz");

fn definition(schema: &Value, has_status: bool) -> Map {
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let mut definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "conversion": {"strategy": "None"},
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [version]},
        "status": {"storedVersions": ["v1"]}});
    if has_status {
        definition["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    }
    let mut definition = definition.as_object().cloned().expect("an object");
    let kind = builtin::kind(&Gvk::fixed("apiextensions.k8s.io/v1", "CustomResourceDefinition"));
    let kind = kind.expect("a kind");
    kind.conform(&mut definition).expect("fits");
    kind.default(&mut definition);
    definition
}

/// Upstream shows its internal struct with some errors.
fn without_struct(told: &str) -> String {
    const WHY: &str = "only [Description";
    match (told.find("Invalid value: {"), told.find(WHY)) {
        (Some(start), Some(end)) => format!("{}{}", &told[..start], &told[end..]),
        _ => told.to_owned(),
    }
}

#[test]
fn schemas_are_refused_as_upstream_refuses_them() {
    let mut text = String::new();
    flate2::read::GzDecoder::new(UPSTREAM).read_to_string(&mut text).expect("gzip");
    let (mut refused, mut differences) = (0, Vec::new());
    for line in text.lines() {
        let line: Map = serde_json::from_str(line).expect("JSON");
        let definition = definition(&line["schema"], line["status"] == true);
        let causes = KIND.rules.create(&definition).expect("rules").into_vec();
        let mut told: Vec<String> = causes
            .into_iter()
            .map(|cause| format!("{}|{}: {}", cause.reason.as_str(), cause.field, cause.message))
            .map(|told| without_struct(&told))
            .collect();
        told.sort();
        let want = line["errors"].as_array().map_or(&[][..], Vec::as_slice).iter().filter_map(Value::as_str);
        let mut want: Vec<String> = want.map(without_struct).collect();
        want.sort();
        refused += usize::from(!want.is_empty());
        if told != want {
            differences.push(format!("{}\n  upstream {want:#?}\n  rowplane {told:#?}", line["schema"]));
        }
    }
    assert!(
        differences.is_empty(),
        "{} differ:\n{}",
        differences.len(),
        differences[..differences.len().min(12)].join("\n")
    );
    assert!(refused > 1000, "{refused}");
}
