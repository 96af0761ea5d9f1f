//! The shared part of the kinds of this group, and the names that none of them takes.

use crate::gotext;
use crate::kinds::behavior::definition::Definition;
use crate::kinds::behavior::strategy::status::RESET;
use crate::kinds::prelude::*;

/// The end of a name that is reserved for objects that come from files.
const STATIC: &str = ".static.k8s.io";

/// A kind of this group: objects of the cluster that configure admission.
pub const fn kind(
    definition: Definition,
    rules: Rules,
    warnings: KindWarnings,
    columns: &'static Printer,
) -> BuiltIn {
    BuiltIn {
        definition: definition.category("api-extensions").generation().conditional(),
        strategy: Strategy { status_metadata: RESET, ..Strategy::PLAIN },
        rules,
        warnings,
        columns,
        fields: SelectableFields::metadata,
        other_version: None,
    }
}

/// Refuses a new object whose name is reserved.
pub fn reserved(object: &ObjectMap, errors: &mut Errors) {
    let metadata = At::member(object, "metadata");
    let name = metadata.get("name");
    if name.text().ends_with(STATIC) {
        errors.invalid(&name, name.text(), &about_reserved());
    }
}

pub fn warn(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    let metadata = At::member(object, "metadata");
    let name = metadata.get("name");
    if name.text().ends_with(STATIC) {
        remarks.on(&name, format_args!("{}", about_reserved()));
    }
}

fn about_reserved() -> String {
    let end = gotext::quote(STATIC);
    format!(
        "names ending with {end} are reserved for static manifest-based configurations and cannot be managed via the API"
    )
}
