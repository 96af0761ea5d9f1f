//! CustomResourceDefinitions, which kube-apiserver still stores in their version v1beta1
//! (`apiextensions-apiserver/pkg/apis/apiextensions/v1/conversion.go` reads them as v1).

use serde_json::{Map, Value, json};

const OLD: &str = "apiextensions.k8s.io/v1beta1";
const NEWEST: &str = "apiextensions.k8s.io/v1";
/// Members of all versions together in v1beta1, and their names in each version.
const COMMON: [(&str, &str); 4] = [
    ("validation", "schema"),
    ("subresources", "subresources"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
    ("selectableFields", "selectableFields"),
];

/// A definition of v1beta1 as v1 has it; `None` if the value is something else.
pub fn in_newest_version(value: &[u8]) -> Option<Vec<u8>> {
    let mut definition: Map<String, Value> = serde_json::from_slice(value).ok()?;
    let is_old = definition.get("apiVersion").and_then(Value::as_str) == Some(OLD);
    let is_definition = definition.get("kind").and_then(Value::as_str) == Some("CustomResourceDefinition");
    if !is_old || !is_definition {
        return None;
    }
    definition.insert("apiVersion".to_owned(), NEWEST.into());
    convert(definition.get_mut("spec")?.as_object_mut()?);
    let mut text = serde_json::to_vec(&definition).ok()?;
    text.push(b'\n');
    Some(text)
}

fn convert(spec: &mut Map<String, Value>) {
    let only = spec.remove("version");
    let common = COMMON.map(|(old, new)| (new, spec.remove(old).filter(|value| !value.is_null())));
    let has_versions = spec.get("versions").and_then(Value::as_array).is_some_and(|all| !all.is_empty());
    if let Some(name) = only.filter(|_| !has_versions) {
        spec.insert("versions".to_owned(), json!([{"name": name, "served": true, "storage": true}]));
    }
    for version in spec.get_mut("versions").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(version) = version.as_object_mut() else { continue };
        for (name, value) in &common {
            if let Some(value) = value {
                version.insert((*name).to_owned(), value.clone());
            }
        }
        let columns = version.get_mut("additionalPrinterColumns").and_then(Value::as_array_mut);
        for column in columns.into_iter().flatten().filter_map(Value::as_object_mut) {
            if let Some(path) = column.remove("JSONPath") {
                column.insert("jsonPath".to_owned(), path);
            }
        }
    }
    // Who did not say otherwise in v1beta1 preserved unknown fields.
    let preserves = spec.remove("preserveUnknownFields").is_none_or(|preserves| preserves != false);
    if preserves {
        spec.insert("preserveUnknownFields".to_owned(), true.into());
    }
    if let Some(conversion) = spec.get_mut("conversion").and_then(Value::as_object_mut) {
        let client = conversion.remove("webhookClientConfig");
        let reviews = conversion.remove("conversionReviewVersions");
        let members = [("clientConfig", client), ("conversionReviewVersions", reviews)];
        let webhook: Map<_, _> =
            members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        if !webhook.is_empty() {
            conversion.insert("webhook".to_owned(), webhook.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(spec: &Value) -> Value {
        let old = json!({"kind": "CustomResourceDefinition", "apiVersion": OLD, "spec": spec});
        let new = in_newest_version(old.to_string().as_bytes()).expect("a definition");
        let new: Value = serde_json::from_slice(&new).expect("JSON");
        assert_eq!(new["apiVersion"], NEWEST);
        new["spec"].clone()
    }

    #[test]
    fn what_versions_have_in_common_is_each_ones() {
        let column = json!({"name": "n", "type": "string", "JSONPath": ".spec.n"});
        let versions = [json!({"name": "v1", "served": true, "storage": true}), json!({"name": "v2"})];
        let spec = converted(&json!({
            "group": "ex.io", "version": "v1", "versions": versions, "preserveUnknownFields": false,
            "validation": {"openAPIV3Schema": {"type": "object"}}, "subresources": {"status": {}},
            "additionalPrinterColumns": [column], "selectableFields": [{"jsonPath": ".spec.n"}],
        }));
        let common = json!({
            "schema": {"openAPIV3Schema": {"type": "object"}}, "subresources": {"status": {}},
            "selectableFields": [{"jsonPath": ".spec.n"}],
            "additionalPrinterColumns": [{"name": "n", "type": "string", "jsonPath": ".spec.n"}],
        });
        let with_common = |version: &Value| {
            let mut version = version.clone();
            version.as_object_mut().expect("a version").extend(common.as_object().expect("members").clone());
            version
        };
        let expected =
            json!({"group": "ex.io", "versions": [with_common(&versions[0]), with_common(&versions[1])]});
        assert_eq!(spec, expected);
    }

    #[test]
    fn a_version_alone_and_fields_that_are_kept() {
        let expected = json!({
            "versions": [{"name": "v1", "served": true, "storage": true}], "preserveUnknownFields": true,
        });
        assert_eq!(converted(&json!({"version": "v1"})), expected);
    }

    #[test]
    fn a_webhook() {
        let conversion = json!({
            "strategy": "Webhook", "webhookClientConfig": {"url": "https://h"}, "conversionReviewVersions": ["v1"],
        });
        let spec = converted(&json!({"preserveUnknownFields": false, "conversion": conversion}));
        let webhook = json!({"clientConfig": {"url": "https://h"}, "conversionReviewVersions": ["v1"]});
        assert_eq!(spec, json!({"conversion": {"strategy": "Webhook", "webhook": webhook}}));
    }

    #[test]
    fn other_values_stay() {
        let newest = json!({"kind": "CustomResourceDefinition", "apiVersion": NEWEST, "spec": {}});
        for value in [
            "",
            "{",
            "k8s\0",
            &newest.to_string(),
            r#"{"kind": "A", "note": "apiextensions.k8s.io/v1beta1"}"#,
        ] {
            assert_eq!(in_newest_version(value.as_bytes()), None, "{value}");
        }
    }
}
