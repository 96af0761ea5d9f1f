//! AppArmor profiles in annotations, where they were before a field existed (KEP-24).

use crate::fields;
use crate::kinds::prelude::*;
use crate::tree::json;
use crate::warnings::Warnings;

pub const ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";

pub const DEPRECATED: &str = r#"deprecated since v1.30; use the "appArmorProfile" field instead"#;

/// The field that corresponds to an annotation, if its value is known.
pub fn profile(annotation: &str) -> Option<Value> {
    match annotation {
        "unconfined" => Some(json!({"type": "Unconfined"})),
        "runtime/default" => Some(json!({"type": "RuntimeDefault"})),
        _ => {
            let name = annotation.strip_prefix("localhost/").filter(|name| !name.is_empty())?;
            Some(json!({"type": "Localhost", "localhostProfile": name}))
        }
    }
}

/// Sets the fields of a new Pod's containers from its annotations (`applyAppArmorVersionSkew`).
pub fn sync(object: &mut ObjectMap, warnings: &Warnings) {
    let annotated = fields::at(object, &["metadata", "annotations"]).and_then(Value::as_object);
    let Some(annotations) =
        annotated.filter(|all| all.keys().any(|key| key.starts_with(ANNOTATION))).cloned()
    else {
        return;
    };
    if fields::text(object, &["spec", "os", "name"]) == "windows" {
        return;
    }
    let of_pod = fields::at(object, &["spec", "securityContext", "appArmorProfile"]).cloned();
    let spec = fields::object_mut(object, "spec");
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for container in containers.filter_map(Value::as_object_mut) {
            container_profile(container, &annotations, of_pod.as_ref(), warnings);
        }
    }
}

fn container_profile(
    container: &mut ObjectMap,
    annotations: &ObjectMap,
    of_pod: Option<&Value>,
    warnings: &Warnings,
) {
    let key = format!("{ANNOTATION}{}", fields::text(container, &["name"]));
    let Some(annotation) = annotations.get(&key).and_then(Value::as_str) else {
        return;
    };
    if fields::at(container, &["securityContext", "appArmorProfile"]).is_some_and(|own| !own.is_null()) {
        return;
    }
    let found = profile(annotation).filter(is_valid);
    let new = found.as_ref().is_some_and(|found| Some(found) != of_pod);
    if found.is_none() || new {
        warnings.add(format!("metadata.annotations[{key}]: {DEPRECATED}"));
    }
    if let Some(found) = found.filter(|_| new) {
        fields::object_mut(container, "securityContext").insert("appArmorProfile", found);
    }
}

/// Whether upstream's validation would accept the profile. One that it would not is not copied.
fn is_valid(profile: &Value) -> bool {
    const LONGEST: usize = 4095;
    let name = profile.get("localhostProfile").and_then(Value::as_str);
    name.is_none_or(|name| !name.is_empty() && name.trim() == name && name.len() <= LONGEST)
}
