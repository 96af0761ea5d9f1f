//! Tests of `apiextensions::custom_resource_definition::schema`.

use std::io::Read;

use rowplane_objects::causes::Cause;
use rowplane_objects::kinds::apiextensions::custom_resource_definition::KIND;
use rowplane_objects::kinds::prelude::*;
use rowplane_objects::schema::builtin;
use rowplane_objects::schema::names::Gvk;
use rowplane_objects::tree::json;

/// Schemas that something is wrong with, and what upstream says of them: `tests/upstream/structural rules`.
const UPSTREAM: &[u8] = include_bytes!("../../../../testdata/structural/rules.jsonl.gz");

/// Schemas with rules, and what upstream says of them: `tests/upstream/structural expressions`.
const EXPRESSIONS: &[u8] = include_bytes!("../../../../testdata/structural/expressions.jsonl.gz");

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
    kind.default(&mut definition).expect("room");
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

fn lines(zipped: &[u8]) -> Vec<Map> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(zipped).read_to_string(&mut text).expect("gzip");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The differences between what is told and what upstream tells, and how many schemas were refused.
fn compare(zipped: &[u8], judge: impl Fn(&Map) -> Vec<Cause>) -> (Vec<String>, usize) {
    let (mut refused, mut differences) = (0, Vec::new());
    for line in lines(zipped) {
        let mut told: Vec<String> = judge(&line)
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
            let only = |of: &[String], other: &[String]| {
                of.iter().filter(|one| !other.contains(one)).cloned().collect::<Vec<_>>()
            };
            let (upstream, rowplane) = (only(&want, &told), only(&told, &want));
            let (schema, old) = (&line["schema"], line.get("old"));
            differences
                .push(format!("{schema}\n  old {old:?}\n  upstream {upstream:#?}\n  rowplane {rowplane:#?}"));
        }
    }
    (differences, refused)
}

fn assert_none(differences: &[String]) {
    let few = differences[..differences.len().min(12)].join("\n");
    assert!(differences.is_empty(), "{} differ:\n{few}", differences.len());
}

#[test]
fn schemas_are_refused_as_upstream_refuses_them() {
    let (differences, refused) = compare(UPSTREAM, |line| {
        let definition = definition(&line["schema"], line["status"] == true);
        KIND.rules.create(&definition).expect("rules").into_vec()
    });
    assert_none(&differences);
    assert!(refused > 1000, "{refused}");
}

/// Compilation, costs, paths, correlation, defaults that break rules, and what an update may keep.
#[test]
fn rules_are_refused_as_upstream_refuses_them() {
    let (differences, refused) = compare(EXPRESSIONS, |line| {
        let new = definition(&line["schema"], false);
        let causes = match line.get("old") {
            None => KIND.rules.create(&new),
            Some(old) => KIND.rules.update(&new, &definition(old, false)),
        };
        causes.expect("rules").into_vec()
    });
    assert_none(&differences);
    assert!(refused > 500, "{refused}");
}
