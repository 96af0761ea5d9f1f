use crate::fields::ObjectMap;
use crate::kinds::apps::replica_set::{COLUMNS as replica_set_COLUMNS, cells};
use crate::kinds::behavior::columns::Printer;
use crate::kinds::behavior::columns::cell::PLAIN;
use crate::kinds::behavior::columns::text::labels;
use crate::kinds::behavior::rules::at::At;
use crate::kinds::behavior::rules::errors::Errors;
use crate::kinds::behavior::rules::selector;
use crate::kinds::behavior::warnings::Remarks;
use crate::kinds::core::pod_spec;
use crate::kinds::core::pod_template::warnings::{changed, named_template, template};

/// A replication controller: its selector is a map, and defaults to the template's labels.
pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    errors.not_negative(&spec.get("minReadySeconds"));
    let (selector, template) = (spec.get("selector"), spec.get("template"));
    let labels = template.dig(&["metadata", "labels"]);
    if selector.is_empty() && labels.is_empty() {
        errors.required(&selector, "");
    }
    errors.not_negative(&spec.get("replicas"));
    if !template.is_set() {
        return errors.required(&template, "");
    }
    if selector.entries().any(|(key, value)| labels.key(key).opt_text() != Some(value.text())) {
        selector::mismatch(&labels, errors);
    }
    pod_spec::template(&template, pod_spec::Owner::Template, errors);
    pod_spec::runs_forever(&template, "ReplicationController", errors);
}

pub fn warn(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    named_template(object, remarks);
}

/// Upstream has the two the wrong way round: it tells of the old template.
pub fn warn_update(new: &ObjectMap, old: &ObjectMap, remarks: &mut Remarks<'_>) {
    if changed(new, old, &["metadata", "generation"]) {
        template(old, remarks);
    }
}

pub static COLUMNS: Printer = Printer {
    columns: replica_set_COLUMNS.columns,
    cells: |object, now| cells(object, now, labels(&object["spec"]["selector"])),
    ..PLAIN
};
