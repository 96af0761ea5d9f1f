//! CSINodes: the storage drivers on a node.

use std::collections::{BTreeMap, BTreeSet};

use crate::gotext;
use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, integer_column, list};
use crate::kinds::behavior::format::label_key;
use crate::kinds::behavior::gated_fields::Feature::CsiVolumeHealth;
use crate::kinds::behavior::gated_fields::Node;
use crate::kinds::behavior::gated_fields::Node::{Of, Under};
use crate::kinds::behavior::rules::errors::Verbatim;
use crate::kinds::behavior::rules::same::same;
use crate::kinds::behavior::strategy::status::RESET;
use crate::kinds::core::volume_source::csi_driver;
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("csinodes", "CSINode").sub(&["status"]).conditional().returns_deleted(),
    strategy: Strategy { status_metadata: RESET, gated_fields: GATED, ..Strategy::PLAIN },
    rules: Rules::new(create, update),
    warnings: KindWarnings::NONE,
    columns: &COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

const GATED: &[Node] = &[Under("status", &[Of(CsiVolumeHealth, "storageHealth")])];

const NODE_ID_MAX: usize = 192;

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    let mut names = BTreeSet::new();
    for driver in spec.get("drivers").items() {
        let (name, node) = (driver.get("name"), driver.get("nodeID"));
        csi_driver(&name, errors);
        errors.present(&node, "");
        if node.text().len() > NODE_ID_MAX {
            errors.invalid(&node, node.text(), &format!("must be {NODE_ID_MAX} characters or less"));
        }
        errors.not_negative(&driver.dig(&["allocatable", "count"]));
        errors.distinct_from(&name, &mut names);
        let mut keys = BTreeSet::new();
        for key in driver.get("topologyKeys").texts() {
            if key.is_empty() {
                errors.required(&driver, "");
            }
            if !keys.insert(key) {
                errors.duplicate(&driver, key);
            }
            errors.invalid_each(&driver, key, label_key(key));
        }
    }
}

/// A driver that stays may change only its number of volumes.
pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    create(new, errors);
    let (spec, before) = (At::member(new, "spec"), At::member(old, "spec"));
    let (drivers, old_drivers) = (spec.get("drivers"), before.get("drivers"));
    let mut by_name: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for driver in drivers.items() {
        by_name.entry(driver.get("name").text()).or_default().push(driver.value());
    }
    for old in old_drivers.items() {
        for new in by_name.get(old.get("name").text()).into_iter().flatten() {
            let (new, old) = (without_allocatable(new), without_allocatable(old.value()));
            if !same(&new, &old) {
                errors.invalid(&drivers, internal(&new), "field is immutable");
            }
        }
    }
}

fn internal(driver: &Value) -> Verbatim {
    let text =
        |name: &str| gotext::json(&driver.get(name).and_then(Value::as_str).unwrap_or_default().into());
    let keys = gotext::json(driver.get("topologyKeys").unwrap_or(&Value::Null));
    let (name, node) = (text("name"), text("nodeID"));
    Verbatim(format!("{{\"Name\":{name},\"NodeID\":{node},\"TopologyKeys\":{keys},\"Allocatable\":null}}"))
}

fn without_allocatable(driver: &Value) -> Value {
    let mut driver = driver.clone();
    if let Some(members) = driver.as_object_mut() {
        members.shift_remove("allocatable");
    }
    driver
}

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        integer_column("Drivers", "Number of CSI drivers on the node.")
            .of(|object, _| list(&object["spec"]["drivers"]).len().into()),
        AGE,
    ],
    ..PLAIN
};
