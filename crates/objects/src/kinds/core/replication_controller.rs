//! ReplicationControllers, the predecessors of ReplicaSets.

use crate::kinds::apps::replica_set;
use crate::kinds::apps::replica_set::{COLUMNS as replica_set_COLUMNS, cells};
use crate::kinds::behavior::columns::cell::PLAIN;
use crate::kinds::behavior::columns::text::labels;
use crate::kinds::behavior::gated_fields::Node::Under;
use crate::kinds::behavior::names::NameFormat;
use crate::kinds::behavior::rules::selector;
use crate::kinds::behavior::selectable::field_or;
use crate::kinds::behavior::strategy::status::StatusRule;
use crate::kinds::core::pod_spec;
use crate::kinds::core::pod_spec::gated_fields::TEMPLATED;
use crate::kinds::core::pod_template::labels;
use crate::kinds::core::pod_template::warnings::{changed, named_template, template};
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("replicationcontrollers", "ReplicationController")
        .short(&["rc"])
        .category("all")
        .sub(&["scale", "status"])
        .generation()
        .orphans(),
    strategy: Strategy {
        names: NameFormat::LongName,
        status: StatusRule::Reset(r#"{"replicas":0}"#),
        gated_fields: &[Under("spec", TEMPLATED)],
        hooks: &ControllerHooks,
        ..Strategy::PLAIN
    },
    rules: Rules::timeless(create).with_status(replica_set::status),
    warnings: KindWarnings::new(warn, warn_update),
    columns: &COLUMNS,
    fields: || SelectableFields::namespaced(vec![field_or("status.replicas", "0")]),
    other_version: None,
};

#[derive(Debug)]
struct ControllerHooks;

impl Hooks for ControllerHooks {
    fn prepare_status_update(&self, new: &mut ObjectMap, _: &ObjectMap, _: &Writer<'_>) {
        labels::adopt(new);
    }
}

/// Rules for a new controller. Its selector is a map that defaults to the template's labels.
pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    let (selector, template) = (spec.get("selector"), spec.get("template"));
    let labels = template.dig(&["metadata", "labels"]);
    if selector.is_empty() && labels.is_empty() {
        errors.required(&selector, "");
    }
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

/// Warns about the old template instead of the new one: upstream confuses the two.
pub fn warn_update(new: &ObjectMap, old: &ObjectMap, remarks: &mut Remarks<'_>) {
    if changed(new, old, &["metadata", "generation"]) {
        template(old, remarks);
    }
}

pub static COLUMNS: Printer = Printer {
    columns: replica_set_COLUMNS.columns,
    cells: Some(|object, now| cells(object, now, labels(&object["spec"]["selector"]))),
    ..PLAIN
};
