//! The status of both kinds of this group.

use std::collections::BTreeSet;

use crate::fields::ObjectMap;
use crate::kinds::behavior::rules::at::At;
use crate::kinds::behavior::rules::errors::Errors;

/// Rules for the status of both kinds: the types of conditions must differ.
pub fn status(new: &ObjectMap, _: &ObjectMap, errors: &mut Errors) {
    let status = At::member(new, "status");
    let mut seen = BTreeSet::new();
    for condition in status.get("conditions").items() {
        let kind = condition.get("type");
        if !seen.insert(kind.text()) {
            errors.duplicate(&kind, kind.text());
        }
        if kind.text().is_empty() {
            errors.required(&kind, "");
        }
    }
}
