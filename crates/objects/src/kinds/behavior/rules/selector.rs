//! Label selectors and labels (apimachinery `meta/v1/validation`).

use crate::gotext;
use crate::kinds::behavior::format::{label_key, label_value};
use crate::kinds::behavior::rules::at::At;
use crate::kinds::behavior::rules::errors::{Errors, Verbatim};
use crate::tree::Value;

pub fn validate(selector: &At<'_, '_>, errors: &mut Errors) {
    labels(&selector.get("matchLabels"), errors);
    for requirement in selector.get("matchExpressions").items() {
        let values = requirement.get("values");
        match requirement.get("operator").text() {
            "In" | "NotIn" if values.is_empty() => {
                errors.required(&values, "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.forbidden(&values, why);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => errors.invalid(&requirement.get("operator"), other, "not a valid selector operator"),
        }
        label_name(&requirement.get("key"), errors);
        for value in values.items() {
            errors.in_format(&value, label_value);
        }
    }
}

/// A map of labels. Errors name the map, not the key.
pub fn labels(map: &At<'_, '_>, errors: &mut Errors) {
    for (key, value) in map.entries() {
        errors.invalid_each(map, key, label_key(key));
        errors.invalid_each(map, value.text(), label_value(value.text()));
    }
}

pub fn label_name(at: &At<'_, '_>, errors: &mut Errors) {
    errors.in_format(at, label_key);
}

/// Whether a selector has no terms. An absent one is not empty: it selects nothing.
pub fn is_empty(selector: &At<'_, '_>) -> bool {
    selector.is_set() && selector.get("matchLabels").is_empty() && selector.get("matchExpressions").is_empty()
}

/// The labels of a template that its own selector does not select.
pub fn mismatch(labels: &At<'_, '_>, errors: &mut Errors) {
    errors.invalid(labels, shown_map(labels), "`selector` does not match template `labels`");
}

/// Whether labels are selected; `None` for a selector that cannot be used.
pub fn matches(selector: &At<'_, '_>, labels: &At<'_, '_>) -> Option<bool> {
    if !selector.is_set() {
        return Some(false);
    }
    let mut all = true;
    for (key, value) in selector.get("matchLabels").entries() {
        if !label_key(key).is_empty() || !label_value(value.text()).is_empty() {
            return None;
        }
        all &= label(labels, key) == Some(value.text());
    }
    for requirement in selector.get("matchExpressions").items() {
        all &= requirement_matches(&requirement, labels)?;
    }
    Some(all)
}

fn requirement_matches(requirement: &At<'_, '_>, labels: &At<'_, '_>) -> Option<bool> {
    let key = requirement.get("key").text();
    let values = requirement.get("values");
    if !label_key(key).is_empty() || values.texts().any(|value| !label_value(value).is_empty()) {
        return None;
    }
    let found = label(labels, key);
    let among = || found.is_some_and(|found| values.texts().any(|value| value == found));
    match requirement.get("operator").text() {
        "In" if !values.is_empty() => Some(among()),
        "NotIn" if !values.is_empty() => Some(!among()),
        "Exists" if values.is_empty() => Some(found.is_some()),
        "DoesNotExist" if values.is_empty() => Some(found.is_none()),
        _ => None,
    }
}

fn label<'v>(labels: &At<'v, '_>, key: &str) -> Option<&'v str> {
    labels.value().get(key).map(|value| value.as_str().unwrap_or_default())
}

/// A selector as Go prints it: fields in their order, maps sorted.
pub fn shown(selector: &At<'_, '_>) -> Verbatim {
    if !selector.is_set() {
        return Verbatim("null".to_owned());
    }
    let mut members = Vec::new();
    let labels = selector.get("matchLabels");
    if !labels.is_empty() {
        members.push(format!("\"matchLabels\":{}", shown_map(&labels).0));
    }
    let requirements = selector.get("matchExpressions");
    if !requirements.is_empty() {
        let requirements: Vec<String> = requirements.items().map(|at| shown_requirement(&at)).collect();
        members.push(format!("\"matchExpressions\":[{}]", requirements.join(",")));
    }
    Verbatim(format!("{{{}}}", members.join(",")))
}

fn shown_requirement(requirement: &At<'_, '_>) -> String {
    let text = |name: &str| gotext::json(&Value::from(requirement.get(name).text()));
    let values = requirement.get("values");
    let values = if values.is_empty() {
        String::new()
    } else {
        format!(",\"values\":{}", gotext::json(values.value()))
    };
    format!("{{\"key\":{},\"operator\":{}{values}}}", text("key"), text("operator"))
}

/// A map of texts as Go prints it.
pub fn shown_map(map: &At<'_, '_>) -> Verbatim {
    let Some(entries) = map.value().as_object() else { return Verbatim("null".to_owned()) };
    let mut entries: Vec<_> = entries.iter().collect();
    entries.sort_by_key(|(key, _)| *key);
    let json = |text: &str| gotext::json(&Value::from(text));
    let entries: Vec<String> =
        entries.iter().map(|(key, value)| format!("{}:{}", json(key), gotext::json(value))).collect();
    Verbatim(format!("{{{}}}", entries.join(",")))
}
