use crate::fields::ObjectMap;
use crate::kinds::behavior::rules::at::At;
use crate::kinds::behavior::rules::errors::Errors;
use crate::kinds::behavior::rules::metadata;
use crate::kinds::resource::resource_claim::{spec, update as resource_claim_update};

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let template = At::member(object, "spec");
    metadata::template(&template.get("metadata"), errors);
    spec(&template.get("spec"), errors);
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    create(new, errors);
    resource_claim_update(new, old, errors);
}
