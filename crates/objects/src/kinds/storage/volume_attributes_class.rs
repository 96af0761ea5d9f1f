//! VolumeAttributesClasses.

use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, text_column};
use crate::kinds::behavior::rules::same::same;
use crate::kinds::behavior::strategy::status::RESET;
use crate::kinds::prelude::*;
use crate::kinds::storage::storage_class::{parameters, provisioner};

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("volumeattributesclasses", "VolumeAttributesClass").short(&["vac"]).returns_deleted(),
    strategy: Strategy { status_metadata: RESET, ..Strategy::PLAIN },
    rules: Rules::new(create, update),
    warnings: KindWarnings::NONE,
    columns: &COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

/// Rules for a new class.
pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let driver = At::member(object, "driverName");
    errors.present(&driver, "");
    provisioner(&driver, errors);
    let map = At::member(object, "parameters");
    parameters(&map, errors);
    errors.present(&map, "must contain at least one key/value pair");
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    for name in ["driverName", "parameters"] {
        let field = At::member(new, name);
        if !same(field.value(), At::member(old, name).value()) {
            errors.forbidden(&field, &format!("updates to {name} are forbidden."));
        }
    }
    create(new, errors);
}

pub static COLUMNS: Printer = Printer {
    columns: &[NAME, text_column("DriverName", "CSI driver that the class is for.").at("driverName"), AGE],
    ..PLAIN
};
