//! Metadata of what is not an object of its own: templates.

use crate::fields::ObjectMap;
use crate::kinds::behavior::format::label_key;
use crate::kinds::behavior::rules::at::At;
use crate::kinds::behavior::rules::errors::Errors;
use crate::kinds::behavior::rules::selector;

/// The largest sum of annotation keys and values, in bytes.
pub const ANNOTATIONS_MAX: usize = 256 * 1024;

/// Metadata that may only hold labels and annotations.
pub fn template(metadata: &At<'_, '_>, errors: &mut Errors) {
    annotations(&metadata.get("annotations"), errors);
    selector::labels(&metadata.get("labels"), errors);
    const FORBIDDEN: [&str; 13] = [
        "name",
        "generateName",
        "namespace",
        "selfLink",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "ownerReferences",
        "finalizers",
        "managedFields",
    ];
    for name in FORBIDDEN {
        let field = metadata.get(name);
        let empty = field.text().is_empty() && field.is_empty() && field.int() == 0;
        if field.is_set() && !empty {
            errors.forbidden(&field, "cannot be set");
        }
    }
}

/// Kubernetes' own finalizers have short names, all others a domain.
pub fn finalizers(object: &ObjectMap, errors: &mut Errors) {
    let metadata = At::member(object, "metadata");
    for finalizer in metadata.get("finalizers").items() {
        let name = finalizer.text();
        if !name.contains('/') && !matches!(name, "kubernetes" | "orphan" | "foregroundDeletion") {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            errors.invalid(&finalizer, name, why);
        }
    }
}

/// Annotations by which a pod tells the signer of its certificate something.
pub fn user_annotations(map: &At<'_, '_>, errors: &mut Errors) {
    let mut size = 0;
    for (key, value) in map.entries() {
        size += key.len() + value.text().len();
        let key = key.to_lowercase();
        let messages = label_key(&key);
        if key.is_empty() {
            errors.required(map, "");
        } else if messages.is_empty() && !key.contains('/') {
            errors.invalid(map, &*key, "must be a domain-prefixed key (such as \"acme.io/foo\")");
        } else {
            errors.invalid_each(map, &key, messages);
        }
    }
    if size > ANNOTATIONS_MAX {
        errors.too_long(map, ANNOTATIONS_MAX);
    }
}

pub fn annotations(map: &At<'_, '_>, errors: &mut Errors) {
    let mut size = 0;
    for (key, value) in map.entries() {
        size += key.len() + value.text().len();
        errors.invalid_each(map, key, label_key(&key.to_lowercase()));
    }
    if size > ANNOTATIONS_MAX {
        errors.too_long(map, ANNOTATIONS_MAX);
    }
}
