//! How much storage there is.

use super::super::at::At;
use super::super::errors::Errors;
use super::super::format::dns1123_subdomain;
use super::super::same::same;
use super::super::{resource, selector};
use crate::api::ObjectMap;

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    selector::validate(&At::member(object, "nodeTopology"), errors);
    let class = At::member(object, "storageClassName");
    errors.in_format(&class, dns1123_subdomain);
    let capacity = At::member(object, "capacity");
    if capacity.is_set() && resource::nanos(&capacity) < 0 {
        errors.invalid(&capacity, &*resource::shown(&capacity), "must be greater than or equal to 0");
    }
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    create(new, errors);
    let (topology, before) = (At::member(new, "nodeTopology"), At::member(old, "nodeTopology"));
    if !same(topology.value(), before.value()) {
        errors.invalid(&topology, selector::shown(&topology), "field is immutable");
    }
    let class = At::member(new, "storageClassName");
    if class.text() != At::member(old, "storageClassName").text() {
        errors.invalid(&class, class.text(), "field is immutable");
    }
}
