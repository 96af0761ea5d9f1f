//! FlowSchemas: which requests belong to which priority level (`pkg/apis/flowcontrol/validation`).

use std::cmp::Ordering;

use crate::gotext;
use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, condition, integer, name, text, text_column};
use crate::kinds::behavior::format::{dns1123_label, dns1123_subdomain};
use crate::kinds::behavior::rules::errors::Verbatim;
use crate::kinds::behavior::strategy::status::StatusMetadata;
use crate::kinds::flowcontrol::bootstrap;
use crate::kinds::flowcontrol::shared::{mandatory, status};
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("flowschemas", "FlowSchema").sub(&["status"]).generation(),
    strategy: Strategy { status_metadata: StatusMetadata::Closed, ..Strategy::PLAIN },
    rules: Rules::timeless(create).with_status(status),
    warnings: KindWarnings::NONE,
    columns: &COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

const PRECEDENCE_MAX: i64 = 10_000;

const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let (metadata, spec) = (At::member(object, "metadata"), At::member(object, "spec"));
    let precedence = spec.get("matchingPrecedence");
    // The default replaces zero by 1000.
    let number = if precedence.int() == 0 { 1000 } else { precedence.int() };
    if number <= 0 {
        errors.invalid(&precedence, number, "must be a positive value");
    }
    if number > PRECEDENCE_MAX {
        errors.invalid(&precedence, number, &format!("must not be greater than {PRECEDENCE_MAX}"));
    }
    if number == 1 && metadata.get("name").text() != "exempt" {
        let why = "only the schema named 'exempt' may have matchingPrecedence 1";
        errors.invalid(&precedence, number, why);
    }
    let method = spec.get("distinguisherMethod");
    let kind = method.get("type");
    if method.is_set() && !matches!(kind.text(), "ByNamespace" | "ByUser") {
        let shown = format!("{{\"Type\":{}}}", gotext::json(&kind.text().into()));
        errors.not_supported(&kind, Verbatim(shown), &["ByNamespace", "ByUser"]);
    }
    let level = spec.dig(&["priorityLevelConfiguration", "name"]);
    if errors.present(&level, "must reference a priority level") {
        errors.in_format(&level, dns1123_subdomain);
    }
    for one in spec.get("rules").items() {
        rule(&one, errors);
    }
    mandatory(object, bootstrap::flows(), errors);
    status(object, object, errors);
}

fn rule(rule: &At<'_, '_>, errors: &mut Errors) {
    let subjects = rule.get("subjects");
    errors.present(&subjects, "subjects must contain at least one value");
    for one in subjects.items() {
        subject(&one, errors);
    }
    let (resources, others) = (rule.get("resourceRules"), rule.get("nonResourceRules"));
    if resources.is_empty() && others.is_empty() {
        errors.required(rule, "at least one of resourceRules and nonResourceRules has to be non-empty");
    }
    for one in resources.items() {
        resource_rule(&one, errors);
    }
    for one in others.items() {
        non_resource_rule(&one, errors);
    }
}

fn subject(at: &At<'_, '_>, errors: &mut Errors) {
    const KINDS: [(&str, &str); 3] =
        [("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group")];
    let kind = at.get("kind");
    if !KINDS.iter().any(|(known, _)| *known == kind.text()) {
        return errors.not_supported(&kind, kind.text(), &["Group", "ServiceAccount", "User"]);
    }
    for (name, field) in KINDS {
        let one = at.get(field);
        if name != kind.text() {
            if one.is_set() {
                errors.forbidden(&one, &format!("{field} is forbidden when subject kind is not '{name}'"));
            }
        } else if !one.is_set() {
            errors.required(&one, &format!("{field} is required when subject kind is '{name}'"));
        } else {
            let own = one.get("name");
            if own.text().is_empty() {
                errors.required(&own, "");
            } else if name == "ServiceAccount" && own.text() != "*" {
                errors.in_format(&own, dns1123_subdomain);
            }
            if name == "ServiceAccount" {
                let namespace = one.get("namespace");
                if errors.present(&namespace, "must specify namespace for service account") {
                    errors.in_format(&namespace, dns1123_label);
                }
            }
        }
    }
}

fn has_wildcard(list: &At<'_, '_>) -> bool {
    list.texts().any(|text| text == "*")
}

fn verbs(list: &At<'_, '_>, errors: &mut Errors) {
    if list.is_empty() {
        errors.required(list, "verbs must contain at least one value");
    } else if has_wildcard(list) {
        alone(list, "verbs", errors);
    } else if list.texts().any(|verb| !VERBS.contains(&verb)) {
        errors.not_supported(list, list.value(), &VERBS);
    }
}

/// A wildcard must be the only entry.
fn alone(list: &At<'_, '_>, what: &str, errors: &mut Errors) {
    if list.len() > 1 {
        errors.invalid(list, list.value(), &format!("if '*' is present, must not specify other {what}"));
    }
}

fn resource_rule(rule: &At<'_, '_>, errors: &mut Errors) {
    verbs(&rule.get("verbs"), errors);
    let lists = [
        ("apiGroups", "resource rules must supply at least one api group", "api groups"),
        ("resources", "resource rules must supply at least one resource", "resources"),
    ];
    for (name, missing, what) in lists {
        let list = rule.get(name);
        if list.is_empty() {
            errors.required(&list, missing);
        } else if has_wildcard(&list) {
            alone(&list, what, errors);
        }
    }
    let namespaces = rule.get("namespaces");
    if namespaces.is_empty() && !rule.get("clusterScope").flag() {
        let why = "resource rules that are not cluster scoped must supply at least one namespace";
        errors.required(&namespaces, why);
    } else if has_wildcard(&namespaces) {
        alone(&namespaces, "namespaces", errors);
    } else {
        for namespace in namespaces.items() {
            for message in dns1123_label(namespace.text()) {
                let why = format!("each member of this list must be '*' or a DNS-1123 label; {message}");
                errors.invalid(&namespace, namespace.text(), &why);
            }
        }
    }
}

fn non_resource_rule(rule: &At<'_, '_>, errors: &mut Errors) {
    verbs(&rule.get("verbs"), errors);
    let urls = rule.get("nonResourceURLs");
    if urls.is_empty() {
        errors.required(&urls, "nonResourceURLs must contain at least one value");
    } else if has_wildcard(&urls) {
        alone(&urls, "non-resource URLs", errors);
    } else {
        for url in urls.items() {
            if let Some(why) = bad_url(url.text()) {
                errors.invalid(&url, url.text(), why);
            }
        }
    }
}

fn bad_url(path: &str) -> Option<&'static str> {
    let stars = path.matches('*').count();
    match path {
        "" => Some("must not be empty"),
        "/" => None,
        _ if !path.starts_with('/') => Some("must start with slash"),
        _ if path.contains(' ') => Some("must not contain white-space"),
        _ if path.contains("//") => Some("must not contain double slash"),
        _ if stars > 1 || (stars == 1 && !path.ends_with("/*")) => {
            Some("wildcard can only do suffix matching")
        }
        _ => None,
    }
}

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("PriorityLevel", "Priority level that matching requests get.")
            .at("spec.priorityLevelConfiguration.name"),
        text_column("MatchingPrecedence", "Lower numbers are tried first.")
            .of(|object, _| integer(&object["spec"]["matchingPrecedence"]).into()),
        text_column("DistinguisherMethod", "What tells flows apart.").of(|object, _| {
            let method = &object["spec"]["distinguisherMethod"];
            if method.is_object() { text(&method["type"]).into() } else { "<none>".into() }
        }),
        AGE,
        text_column("MissingPL", "Whether the priority level does not exist.").of(|object, _| {
            condition(&object["status"]["conditions"], "Dangling")
                .map_or("?", |found| text(&found["status"]))
                .into()
        }),
    ],
    order: Some(by_precedence),
    ..PLAIN
};

fn by_precedence(a: &Value, b: &Value) -> Ordering {
    let key = |schema: &Value| integer(&schema["spec"]["matchingPrecedence"]);
    key(a).cmp(&key(b)).then_with(|| name(a).cmp(name(b)))
}
