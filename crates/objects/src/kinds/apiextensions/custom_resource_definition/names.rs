//! Validation of the names of custom resources.

use crate::kinds::behavior::format::dns1035_label;
use crate::kinds::prelude::*;

/// Names that a spec must have; a status may lack them.
pub fn required(names: &At<'_, '_>, errors: &mut Errors) {
    for name in ["plural", "singular", "kind", "listKind"] {
        let name = names.get(name);
        errors.present(&name, "");
    }
}

pub fn validate(names: &At<'_, '_>, errors: &mut Errors) {
    let label = |at: &At<'_, '_>, errors: &mut Errors| {
        let messages = dns1035_label(at.text());
        if !messages.is_empty() {
            errors.invalid(at, at.text(), &messages.join(","));
        }
    };
    for name in ["plural", "singular"] {
        let name = names.get(name);
        if !name.text().is_empty() {
            label(&name, errors);
        }
    }
    for name in ["kind", "listKind"] {
        let name = names.get(name);
        let messages = dns1035_label(&name.text().to_lowercase());
        if !name.text().is_empty() && !messages.is_empty() {
            let why = format!("may have mixed case, but should otherwise match: {}", messages.join(","));
            errors.invalid(&name, name.text(), &why);
        }
    }
    names.get("shortNames").items().for_each(|name| label(&name, errors));
    let (kind, list) = (names.get("kind"), names.get("listKind"));
    if !kind.text().is_empty() && kind.text() == list.text() {
        errors.invalid(&list, list.text(), "kind and listKind may not be the same");
    }
    names.get("categories").items().for_each(|name| label(&name, errors));
}

/// The subresource `scale`, among the others.
pub fn scale(subresources: &At<'_, '_>, errors: &mut Errors) {
    let scale = subresources.get("scale");
    if !scale.is_set() {
        return;
    }
    let places: [(&str, &str, &[&str], &str); 3] = [
        ("specReplicasPath", "scale.specReplicasPath", &[".spec."], ".spec"),
        ("statusReplicasPath", "scale.statusReplicasPath", &[".status."], ".status"),
        ("labelSelectorPath", "scale.labelSelectorPath", &[".spec.", ".status."], "either .spec or .status"),
    ];
    for (name, shown, prefixes, place) in places {
        let path = subresources.other(shown, scale.get(name).value());
        let text = path.text();
        if text.is_empty() {
            if name != "labelSelectorPath" {
                errors.required(&path, "");
            }
        } else if simple_path(&path, errors) && !prefixes.iter().any(|prefix| text.starts_with(prefix)) {
            errors.invalid(&path, text, &format!("should be a json path under {place}"));
        }
    }
}

/// Whether it is one.
pub fn simple_path(path: &At<'_, '_>, errors: &mut Errors) -> bool {
    let simple = path.text().starts_with('.');
    if !simple {
        errors.invalid(path, path.text(), "must be a simple json path starting with .");
    }
    simple
}
