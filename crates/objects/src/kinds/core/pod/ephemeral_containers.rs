//! `pods/ephemeralcontainers`: containers that can be added to a running pod, but neither changed nor removed
//! (`pkg/registry/core/pod/strategy.go`, `ValidatePodEphemeralContainersUpdate`).

use std::collections::HashMap;

use crate::causes::Cause;
use crate::kinds::core::pod::resize::MIRROR;
use crate::kinds::prelude::*;
use crate::{fields, gotext};

const FIELD: &str = "ephemeralContainers";

/// Restores everything in `new` except its ephemeral containers and metadata.
pub fn keep_all_else(new: &mut ObjectMap, old: &ObjectMap) {
    let containers = fields::at(new, &["spec", FIELD]).cloned();
    fields::restore(new, old, "spec");
    fields::restore(new, old, "status");
    let spec = fields::object_mut(new, "spec");
    match containers {
        Some(containers) => spec.insert(FIELD, containers),
        None => spec.shift_remove(FIELD),
    };
}

pub fn causes(new: &ObjectMap, old: &ObjectMap) -> Vec<Cause> {
    if fields::at(old, &["metadata", "annotations", MIRROR]).is_some() {
        return vec![Cause::forbidden("", "static pods do not support ephemeral containers")];
    }
    let now = fields::items(new, &["spec", FIELD]);
    // Of equal names, the first counts.
    let by_name: HashMap<Option<&Value>, &Value> =
        now.iter().rev().map(|after| (after.get("name"), after)).collect();
    let refused = |before: &Value| {
        let name = before.get("name").and_then(Value::as_str).unwrap_or_default();
        let quoted = gotext::quote(name);
        let why = match by_name.get(&before.get("name")) {
            None => format!("existing ephemeral containers {quoted} may not be removed\n"),
            Some(after) if *after != before => {
                format!("existing ephemeral containers {quoted} may not be changed\n")
            }
            Some(_) => return None,
        };
        Some(Cause::forbidden("spec.ephemeralContainers", &why))
    };
    fields::items(old, &["spec", FIELD]).iter().filter_map(refused).collect()
}
