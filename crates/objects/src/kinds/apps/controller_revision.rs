//! ControllerRevisions.

use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, integer, list, text, text_column};
use crate::kinds::behavior::rules::same::immutable_raw;
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("controllerrevisions", "ControllerRevision"),
    strategy: Strategy::PLAIN,
    rules: Rules::new(create, update),
    warnings: KindWarnings::NONE,
    columns: &COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    errors.not_negative(&At::member(object, "revision"));
    let data = At::member(object, "data");
    match data.value() {
        Value::Object(_) => {}
        Value::Null => errors.required(&data, "data is mandatory"),
        _ => errors.required(&data, "data must be a valid JSON object"),
    }
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    errors.not_negative(&At::member(new, "revision"));
    immutable_raw(&At::member(new, "data"), &At::member(old, "data"), errors);
}

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Controller", "Owner that manages the revision.")
            .of(|object, _| controller(object).into()),
        text_column("Revision", "Number of the revision.")
            .of(|object, _| integer(&object["revision"]).into()),
        AGE,
    ],
    ..PLAIN
};

/// The owner that is the controller, for example `statefulset.apps/web`.
fn controller(object: &Value) -> String {
    let owners = list(&object["metadata"]["ownerReferences"]);
    let Some(owner) = owners.iter().find(|owner| owner["controller"] == true) else {
        return "<none>".to_owned();
    };
    let group = text(&owner["apiVersion"]).split_once('/').map_or("", |(group, _)| group);
    let (kind, name) = (text(&owner["kind"]).to_lowercase(), text(&owner["name"]));
    match (kind.as_str(), group) {
        ("", "") => name.to_owned(),
        (kind, "") => format!("{kind}/{name}"),
        (kind, group) => format!("{kind}.{}/{name}", group.to_lowercase()),
    }
}
