//! Warnings about kinds that contain a pod template.

use crate::fields;
use crate::kinds::behavior::warnings::label_name;
use crate::kinds::core::pod_spec::warnings;
use crate::kinds::prelude::*;

pub const IN_PODS: &str = "Pod names and hostnames";

pub fn template(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    warnings::template(&At::member(object, "spec").get("template"), remarks);
}

pub fn named_template(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    label_name(object, IN_PODS, remarks);
    template(object, remarks);
}

/// Warns about a new version, unless its spec is unchanged.
pub fn template_update(new: &ObjectMap, old: &ObjectMap, remarks: &mut Remarks<'_>) {
    if changed(new, old, &["metadata", "generation"]) {
        template(new, remarks);
    }
}

pub fn changed(new: &ObjectMap, old: &ObjectMap, path: &[&str]) -> bool {
    fields::at(new, path) != fields::at(old, path)
}
