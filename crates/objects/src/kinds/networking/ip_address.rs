//! IPAddresses: addresses that Services have claimed.

use crate::kinds::behavior::columns::cell::{NAME, PLAIN, age, cells, name, text, text_column};
use crate::kinds::behavior::format::{dns1123_subdomain, path_segment};
use crate::kinds::behavior::names::NameFormat;
use crate::kinds::behavior::rules::ip;
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("ipaddresses", "IPAddress").short(&["ip"]),
    strategy: Strategy { names: NameFormat::OfRules, ..Strategy::PLAIN },
    rules: Rules::new(create, update),
    warnings: KindWarnings::NONE,
    columns: &COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

/// The object's name must be the address.
pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let metadata = At::member(object, "metadata");
    for field in ["generateName", "name"] {
        let name = metadata.get(field);
        if !name.text().is_empty() {
            ip::canonical(&name, name.text(), errors);
        }
    }
    let spec = At::member(object, "spec");
    let parent = spec.get("parentRef");
    let group = parent.get("group");
    errors.in_format_if_given(&group, dns1123_subdomain);
    for name in ["resource", "name", "namespace"] {
        let field = parent.get(name);
        errors.in_format(&field, path_segment);
    }
}

/// The declared rules end with the error that the parent is immutable, so that its members are judged here.
pub fn update(new: &ObjectMap, _: &ObjectMap, errors: &mut Errors) {
    create(new, errors);
    let spec = At::member(new, "spec");
    let parent = spec.get("parentRef");
    for field in ["resource", "name"].map(|name| parent.get(name)) {
        if parent.is_set() && field.text().is_empty() {
            errors.required(&field, "");
        }
    }
}

/// Upstream's rows have an age behind the last column; clients ignore cells without a column.
pub static COLUMNS: Printer = Printer {
    columns: &[NAME, text_column("ParentRef", "Object that the address belongs to.")],
    cells: Some(|object, now| cells![name(object), parent(&object["spec"]["parentRef"]), age(object, now)]),
    ..PLAIN
};

/// The parent, for example `services/default/kubernetes`.
fn parent(reference: &Value) -> String {
    if !reference.is_object() {
        return "<none>".to_owned();
    }
    let group = text(&reference["group"]);
    let mut parent = text(&reference["resource"]).to_owned();
    if !group.is_empty() {
        parent = format!("{parent}.{group}");
    }
    parent = parent.to_lowercase();
    let namespace = text(&reference["namespace"]);
    if !namespace.is_empty() {
        parent = format!("{parent}/{namespace}");
    }
    format!("{parent}/{}", text(&reference["name"]))
}
