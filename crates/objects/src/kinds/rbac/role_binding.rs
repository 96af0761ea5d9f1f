//! RoleBinding: its rules are in `shared`.

use crate::kinds::behavior::names::NameFormat;
use crate::kinds::prelude::*;
use crate::kinds::rbac::binding;
use crate::kinds::rbac::shared::{create_binding, update_binding};

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("rolebindings", "RoleBinding").creates_on_update(),
    strategy: Strategy { names: NameFormat::PathSegment, ..Strategy::PLAIN },
    rules: Rules::new(create_binding, update_binding),
    warnings: KindWarnings::NONE,
    columns: &binding::COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};
