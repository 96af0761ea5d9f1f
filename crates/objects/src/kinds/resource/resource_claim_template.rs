//! ResourceClaimTemplates.

use crate::kinds::behavior::columns::NAME_AND_AGE;
use crate::kinds::behavior::gated_fields::Node::Under;
use crate::kinds::behavior::rules::metadata;
use crate::kinds::behavior::rules::same::immutable_unshown;
use crate::kinds::behavior::strategy::status::RESET;
use crate::kinds::prelude::*;
use crate::kinds::resource::resource_claim::{GATED_SPEC, spec};

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("resourceclaimtemplates", "ResourceClaimTemplate").returns_deleted(),
    strategy: Strategy {
        status_metadata: RESET,
        gated_fields: &[Under("spec", &[Under("spec", GATED_SPEC)])],
        ..Strategy::PLAIN
    },
    rules: Rules::new(create, update),
    warnings: KindWarnings::NONE,
    columns: &NAME_AND_AGE,
    fields: SelectableFields::metadata,
    other_version: None,
};

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let template = At::member(object, "spec");
    metadata::template(&template.get("metadata"), errors);
    spec(&template.get("spec"), errors);
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    create(new, errors);
    immutable_unshown(&At::member(new, "spec"), &At::member(old, "spec"), errors);
}
