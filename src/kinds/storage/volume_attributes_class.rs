use crate::fields::ObjectMap;
use crate::kinds::behavior::columns::Printer;
use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, age, cells, name, text, text_column};
use crate::kinds::behavior::rules::at::At;
use crate::kinds::behavior::rules::errors::Errors;
use crate::kinds::behavior::rules::same::same;
use crate::kinds::storage::storage_class::{parameters, provisioner};

/// A new class of attributes.
pub fn create(object: &ObjectMap, errors: &mut Errors) {
    provisioner(&At::member(object, "driverName"), errors);
    let map = At::member(object, "parameters");
    parameters(&map, errors);
    if map.is_empty() {
        errors.required(&map, "must contain at least one key/value pair");
    }
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
    columns: &[NAME, text_column("DriverName", "CSI driver that the class is for."), AGE],
    cells: |object, now| cells![name(object), text(&object["driverName"]), age(object, now)],
    ..PLAIN
};
