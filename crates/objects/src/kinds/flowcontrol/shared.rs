//! The status of both kinds of this group.

use std::collections::BTreeSet;

use crate::fields;
use crate::kinds::flowcontrol::bootstrap::BootstrapObject;
use crate::kinds::prelude::*;

/// The specs of mandatory objects are fixed.
pub fn mandatory(object: &ObjectMap, fixed: impl Iterator<Item = BootstrapObject>, errors: &mut Errors) {
    let name = fields::text(object, &["metadata", "name"]);
    let mut fixed = fixed.filter(|fixed| fixed.mandatory && fixed.name() == name);
    let spec = At::member(object, "spec");
    if fixed.next().is_some_and(|fixed| !fixed.has_spec_of(object)) {
        let besides = if name == "exempt" && spec.get("type").is_set() {
            " except the 'spec.exempt' field"
        } else {
            ""
        };
        errors.invalid(&spec, spec.value(), &format!("spec of '{name}'{besides} must equal the fixed value"));
    }
}

/// Rules for the status of both kinds: the types of conditions must differ.
pub fn status(new: &ObjectMap, _: &ObjectMap, errors: &mut Errors) {
    let status = At::member(new, "status");
    let mut seen = BTreeSet::new();
    for condition in status.get("conditions").items() {
        let kind = condition.get("type");
        errors.distinct_from(&kind, &mut seen);
        errors.present(&kind, "");
    }
}
