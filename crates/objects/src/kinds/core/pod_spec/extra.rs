//! Rules that connect distant parts of a pod.

use std::collections::BTreeMap;

use crate::kinds::behavior::format::dns1123_subdomain;
use crate::kinds::behavior::rules::errors::Verbatim;
use crate::kinds::core::pod_spec::annotation::{APP_ARMOR, SECCOMP_CONTAINER, SECCOMP_POD};
use crate::kinds::core::pod_spec::visit;
use crate::kinds::prelude::*;

/// Annotations that were replaced by fields must agree with the fields.
pub fn annotations_match(annotations: &At<'_, '_>, spec: &At<'_, '_>, errors: &mut Errors) {
    if annotations.is_empty() {
        return;
    }
    let own = spec.dig(&["securityContext", "seccompProfile"]);
    let annotation = annotations.key(SECCOMP_POD);
    if own.is_set() && annotation.is_set() {
        profile_matches("seccomp", annotation.text(), &own, &own, errors);
    }
    visit(spec, &mut |container| {
        let profile = container.dig(&["securityContext", "seccompProfile"]);
        let key = format!("{SECCOMP_CONTAINER}{}", container.get("name").text());
        let annotation = annotations.key(&key);
        if profile.is_set() && annotation.is_set() {
            profile_matches("seccomp", annotation.text(), &profile, &profile, errors);
        }
    });
    if spec.dig(&["os", "name"]).text() == "windows" {
        return;
    }
    let pod = spec.dig(&["securityContext", "appArmorProfile"]);
    visit(spec, &mut |container| {
        let place = container.dig(&["securityContext", "appArmorProfile"]);
        let profile = if place.is_set() { place.value() } else { pod.value() };
        let key = format!("{APP_ARMOR}{}", container.get("name").text());
        let annotation = annotations.key(&key);
        if !profile.is_null() && annotation.is_set() {
            profile_matches("apparmor", annotation.text(), &At::root(profile), &place, errors);
        }
    });
}

fn profile_matches(
    what: &str,
    annotation: &str,
    profile: &At<'_, '_>,
    place: &At<'_, '_>,
    errors: &mut Errors,
) {
    let path = annotation.strip_prefix("localhost/");
    let fits = match profile.get("type").text() {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" if what == "seccomp" => matches!(annotation, "runtime/default" | "docker/default"),
        "RuntimeDefault" => annotation == "runtime/default",
        "Localhost" => path.is_some(),
        _ => true,
    };
    if !fits {
        errors.forbidden(&place.get("type"), &format!("{what} type in annotation and field must match"));
    } else if profile.get("type").text() == "Localhost" && path != profile.get("localhostProfile").opt_text()
    {
        let why = format!("{what} profile in annotation and field must match");
        errors.forbidden(&place.get("localhostProfile"), &why);
    }
}

pub fn scheduling_group(at: &At<'_, '_>, errors: &mut Errors) {
    if !at.is_set() {
        return;
    }
    let name = at.get("podGroupName");
    match name.opt_text() {
        None => {
            let null = Verbatim("null".to_owned());
            errors.invalid(&name, null, "must specify one of: `podGroupName`");
        }
        Some(text) => errors.invalid_each(&name, text, dns1123_subdomain(text)),
    }
}

/// Variables from files need a volume to which containers can write.
pub fn file_references(spec: &At<'_, '_>, errors: &mut Errors) {
    let volumes = spec.get("volumes");
    // Of equal names, the last counts.
    let by_name: BTreeMap<&str, &Value> =
        volumes.items().map(|volume| (volume.get("name").text(), volume.value())).collect();
    visit(spec, &mut |container| {
        for variable in container.get("env").items() {
            let reference = variable.dig(&["valueFrom", "fileKeyRef"]);
            if !reference.is_set() {
                continue;
            }
            let name = reference.get("volumeName");
            match by_name.get(name.text()).map(|volume| At::root(volume)) {
                None => errors.not_found(&name, name.text()),
                Some(volume) if !volume.get("emptyDir").is_set() && volume.len() > 1 => {
                    errors.invalid(&name, name.text(), "referenced volume must be of type emptyDir");
                }
                Some(_) => {}
            }
        }
    });
}
