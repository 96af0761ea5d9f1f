//! The count of template changes of a daemon set. `apps/v1` has no field for it, so it is kept in an annotation
//! (`pkg/registry/apps/daemonset/strategy.go`, `pkg/apis/apps/v1/conversion.go`).

use crate::fields;
use crate::fields::ObjectMap;

const ANNOTATION: &str = "deprecated.daemonset.template.generation";

pub fn prepare_create(object: &mut ObjectMap) {
    let sent = template_generation(object);
    set(object, sent.max(1));
}

/// Counts a change of the template. An empty list counts as different from an absent one, which upstream's comparison
/// would ignore; that affects only the count.
pub fn prepare_update(new: &mut ObjectMap, old: &ObjectMap) {
    let stored = template_generation(old);
    let path = ["spec", "template"];
    let changed = fields::at(new, &path) != fields::at(old, &path);
    set(new, if changed { stored.saturating_add(1) } else { stored });
}

pub fn keep_template_generation(new: &mut ObjectMap, old: &ObjectMap) {
    set(new, template_generation(old));
}

fn template_generation(object: &ObjectMap) -> i64 {
    fields::text(object, &["metadata", "annotations", ANNOTATION]).parse().unwrap_or(0)
}

fn set(object: &mut ObjectMap, number: i64) {
    let metadata = fields::object_mut(object, "metadata");
    let annotations = fields::object_mut(metadata, "annotations");
    annotations.insert(ANNOTATION, number.to_string().into());
}
