//! Files that volumes are made of: keys of an object, and fields of the Pod.

use super::env::{ReferenceIn, field_reference, resource_reference};
use crate::kinds::behavior::rules::path_text::{mode, not_reserved};
use crate::kinds::core::volume_source;
use crate::kinds::prelude::*;

/// Validates files from a Secret or ConfigMap.
pub(super) fn files(at: &At<'_, '_>, name: &str, errors: &mut Errors) {
    volume_source::require(at, &[name], errors);
    mode(&at.get("defaultMode"), errors);
    for item in at.get("items").items() {
        key_to_path(&item, errors);
    }
}

pub fn key_to_path(item: &At<'_, '_>, errors: &mut Errors) {
    volume_source::require(item, &["key", "path"], errors);
    not_reserved(&item.get("path"), item.get("path").text(), errors);
    mode(&item.get("mode"), errors);
}

pub(super) fn downward(at: &At<'_, '_>, errors: &mut Errors) {
    mode(&at.get("defaultMode"), errors);
    for file in at.get("items").items() {
        downward_file(&at.holding(file.value()), errors);
    }
}

/// Validates a file with a field's value. Upstream's errors do not tell which file: `file` has the path of the list's
/// parent.
pub fn downward_file(file: &At<'_, '_>, errors: &mut Errors) {
    let path = file.get("path");
    volume_source::require(file, &["path"], errors);
    not_reserved(&path, path.text(), errors);
    let (field, resource) = (file.get("fieldRef"), file.get("resourceFieldRef"));
    if field.is_set() {
        const FIELDS: [&str; 5] = [
            "metadata.annotations",
            "metadata.labels",
            "metadata.name",
            "metadata.namespace",
            "metadata.uid",
        ];
        field_reference(&field, &FIELDS, errors);
        if resource.is_set() {
            errors.invalid(
                file,
                "resource",
                "fieldRef and resourceFieldRef can not be specified simultaneously",
            );
        }
    } else if resource.is_set() {
        resource_reference(&resource, ReferenceIn::Volume, errors);
    } else {
        errors.required(file, "one of fieldRef and resourceFieldRef is required");
    }
    mode(&file.get("mode"), errors);
}
