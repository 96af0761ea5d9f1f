//! CSIStorageCapacities: how much storage is available.

use crate::kinds::behavior::columns::DEFAULT;
use crate::kinds::behavior::format::dns1123_subdomain;
use crate::kinds::behavior::rules::same::same;
use crate::kinds::behavior::rules::{resource, selector};
use crate::kinds::behavior::strategy::status::RESET;
use crate::kinds::core::node::labels::{deprecated, term};
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("csistoragecapacities", "CSIStorageCapacity").conditional(),
    strategy: Strategy { status_metadata: RESET, ..Strategy::PLAIN },
    rules: Rules::new(create, update),
    warnings: KindWarnings::same(warn),
    columns: &DEFAULT,
    fields: SelectableFields::metadata,
    other_version: None,
};

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

pub fn warn(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    let topology = At::member(object, "nodeTopology");
    term(&topology, false, remarks);
    let labels = topology.get("matchLabels");
    for (label, _) in labels.entries() {
        if let Some(message) = deprecated(label) {
            remarks.on(&labels.get(label), message);
        }
    }
}
