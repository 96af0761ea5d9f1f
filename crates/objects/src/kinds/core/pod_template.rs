//! PodTemplates. Kinds that hold a template share the warnings and labels in this folder.

pub mod labels;
pub mod warnings;

use crate::kinds::behavior::columns::cell::{NAME, PLAIN, cells, name, text_column};
use crate::kinds::behavior::columns::text::{CONTAINERS, IMAGES, containers, labels as text_labels};
use crate::kinds::core::pod_spec::{Owner, gated_fields, template, warnings as pod_spec_warnings};
use crate::kinds::core::pod_template::warnings::changed;
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("podtemplates", "PodTemplate").generation().returns_deleted(),
    strategy: Strategy { gated_fields: gated_fields::TEMPLATED, ..Strategy::PLAIN },
    rules: Rules::timeless(create),
    warnings: KindWarnings::new(warn, warn_update),
    columns: &COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

/// Rules for a template that is an object of its own.
pub fn create(object: &ObjectMap, errors: &mut Errors) {
    template(&At::member(object, "template"), Owner::Template, errors);
}

pub fn warn(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    pod_spec_warnings::template(&At::member(object, "template"), remarks);
}

pub fn warn_update(new: &ObjectMap, old: &ObjectMap, remarks: &mut Remarks<'_>) {
    if changed(new, old, &["metadata", "generation"]) {
        warn(new, remarks);
    }
}

pub static COLUMNS: Printer = Printer {
    columns: &[NAME, CONTAINERS, IMAGES, text_column("Pod Labels", "Labels that the pods will have.")],
    cells: Some(|object, _| {
        let template = &object["template"];
        let (names, images) = containers(&template["spec"]);
        cells![name(object), names, images, text_labels(&template["metadata"]["labels"])]
    }),
    ..PLAIN
};
