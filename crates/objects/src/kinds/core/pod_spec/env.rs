//! Environment variables, and references to fields of the pod.

use crate::kinds::behavior::format::{dns1123_label, dns1123_subdomain, label_key};
use crate::kinds::behavior::rules::format::{Check, config_key, env_name};
use crate::kinds::behavior::rules::path_text::no_backsteps;
use crate::kinds::behavior::rules::resource;
use crate::kinds::prelude::*;

const ONE_SOURCE: &str =
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";

const NOT_MORE: &str = "may not have more than one field specified at a time";

pub fn env(list: &At<'_, '_>, errors: &mut Errors) {
    for variable in list.items() {
        let name = variable.get("name");
        errors.required_in_format(&name, env_name);
        let from = variable.get("valueFrom");
        if from.is_set() {
            value_from(&from, variable.get("value").text(), errors);
        }
    }
}

type Rule = fn(&At<'_, '_>, &mut Errors);

fn value_from(from: &At<'_, '_>, value: &str, errors: &mut Errors) {
    let mut found = 0;
    let rules: [(&str, Rule); 5] = [
        ("fieldRef", env_field),
        ("resourceFieldRef", |at, errors| resource_reference(at, ReferenceIn::Env, errors)),
        ("configMapKeyRef", key_reference),
        ("secretKeyRef", key_reference),
        ("fileKeyRef", file_reference),
    ];
    for (name, rule) in rules {
        let source = from.get(name);
        if source.is_set() {
            found += 1;
            rule(&source, errors);
        }
    }
    if found == 0 {
        errors.invalid(from, "", ONE_SOURCE);
    } else if !value.is_empty() {
        errors.invalid(from, "", "may not be specified when `value` is not empty");
    } else if found > 1 {
        errors.invalid(from, "", NOT_MORE);
    }
}

fn env_field(at: &At<'_, '_>, errors: &mut Errors) {
    const FIELDS: [&str; 9] = [
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    ];
    field_reference(at, &FIELDS, errors);
}

/// Validates a reference to a field of the pod.
pub fn field_reference(at: &At<'_, '_>, supported: &[&str], errors: &mut Errors) {
    let version = at.get("apiVersion").text_or("v1");
    let field = at.get("fieldPath");
    if field.text().is_empty() {
        errors.required(&field, "");
        return;
    }
    let path = match internal_path(version, field.text()) {
        Ok(path) => path,
        Err(why) => {
            errors.invalid(&field, field.text(), &format!("error converting fieldPath: {why}"));
            return;
        }
    };
    match split_subscript(path) {
        Some(("metadata.annotations", key)) => {
            let key = key.to_lowercase();
            errors.invalid_each(at, &key, label_key(&key));
        }
        Some((_, key)) => errors.invalid_each(at, key, label_key(key)),
        None => {
            errors.one_of(&field, path, supported);
        }
    }
}

/// The current name of a field; an error if it cannot be referred to.
fn internal_path<'a>(version: &str, path: &'a str) -> Result<&'a str, String> {
    const KNOWN: [&str; 14] = [
        "metadata.annotations",
        "metadata.labels",
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.serviceAccountName",
        "spec.schedulerName",
        "status.phase",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    ];
    if version != "v1" {
        return Err(format!("unsupported pod version: {version}"));
    }
    match split_subscript(path) {
        Some(("metadata.annotations" | "metadata.labels", _)) => Ok(path),
        Some(_) => Err(format!("field label does not support subscript: {path}")),
        None if path == "spec.host" => Ok("spec.nodeName"),
        None if KNOWN.contains(&path) => Ok(path),
        None => Err(format!("field label not supported: {path}")),
    }
}

/// Splits `metadata.labels['key']` into field and key.
fn split_subscript(path: &str) -> Option<(&str, &str)> {
    path.strip_suffix("']")?.split_once("['").filter(|(path, _)| !path.is_empty())
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ReferenceIn {
    Env,
    /// In a volume, a reference must name the container.
    Volume,
}

/// Validates a reference to the requests or limits of a container.
pub fn resource_reference(at: &At<'_, '_>, place: ReferenceIn, errors: &mut Errors) {
    const RESOURCES: [&str; 6] = [
        "limits.cpu",
        "limits.ephemeral-storage",
        "limits.memory",
        "requests.cpu",
        "requests.ephemeral-storage",
        "requests.memory",
    ];
    let (container, name) = (at.get("containerName"), at.get("resource"));
    let text = name.text();
    let huge = text.starts_with("requests.hugepages-") || text.starts_with("limits.hugepages-");
    if place == ReferenceIn::Volume && container.text().is_empty() {
        errors.required(&container, "");
    } else if text.is_empty() {
        errors.required(&name, "");
    } else if !huge {
        errors.one_of(&name, text, &RESOURCES);
    }
    divisor(&at.get("divisor"), text, errors);
}

fn divisor(at: &At<'_, '_>, name: &str, errors: &mut Errors) {
    const SIZES: [&str; 13] =
        ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
    if resource::nanos(at) == 0 {
        return;
    }
    let shown = resource::shown(at);
    let what = match name.split_once('.') {
        Some(("limits" | "requests", "cpu")) => {
            if !matches!(&*shown, "1m" | "1") {
                errors.invalid(
                    at,
                    name,
                    "only divisor's values 1m and 1 are supported with the cpu resource",
                );
            }
            return;
        }
        Some(("limits" | "requests", "memory")) => "memory",
        Some(("limits" | "requests", "ephemeral-storage")) => "local ephemeral storage",
        Some(("limits" | "requests", rest)) if resource::is_huge_pages(rest) => "hugepages",
        _ => return,
    };
    if !SIZES.contains(&&*shown) {
        let why = format!(
            "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the {what} resource"
        );
        errors.invalid(at, name, &why);
    }
}

fn key_reference(at: &At<'_, '_>, errors: &mut Errors) {
    let (name, key) = (at.get("name"), at.get("key"));
    errors.in_format(&name, dns1123_subdomain);
    errors.required_in_format(&key, config_key);
}

fn file_reference(at: &At<'_, '_>, errors: &mut Errors) {
    let checks: [(&str, Check); 2] = [("key", env_name), ("volumeName", dns1123_label)];
    for (name, check) in checks {
        errors.required_in_format(&at.get(name), check);
    }
    let path = at.get("path");
    if errors.present(&path, "") {
        no_backsteps(&path, path.text(), errors);
    }
}

/// Validates sources of all variables of a ConfigMap or Secret.
pub fn env_from(list: &At<'_, '_>, errors: &mut Errors) {
    for source in list.items() {
        let prefix = source.get("prefix");
        errors.in_format_if_given(&prefix, env_name);
        let mut found = 0;
        for name in ["configMapRef", "secretRef"] {
            let reference = source.get(name);
            if reference.is_set() {
                found += 1;
                referred_name(&reference.get("name"), errors);
            }
        }
        if found == 0 {
            errors.invalid(list, "", "must specify one of: `configMapRef` or `secretRef`");
        } else if found > 1 {
            errors.invalid(list, "", NOT_MORE);
        }
    }
}

fn referred_name(name: &At<'_, '_>, errors: &mut Errors) {
    let text = name.text();
    if text.is_empty() {
        errors.required(name, "");
        return;
    }
    // Upstream validates a prefix, which may end with a dash.
    let masked = match text.strip_suffix('-') {
        Some(stem) if !stem.is_empty() => format!("{stem}a"),
        _ => text.to_owned(),
    };
    errors.invalid_each(name, text, dns1123_subdomain(&masked));
}
