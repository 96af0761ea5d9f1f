//! Role: its rules are in `shared`.

use crate::kinds::behavior::columns::DEFAULT;
use crate::kinds::behavior::names::NameFormat;
use crate::kinds::prelude::*;
use crate::kinds::rbac::shared::role;

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("roles", "Role").creates_on_update(),
    strategy: Strategy { names: NameFormat::PathSegment, ..Strategy::PLAIN },
    rules: Rules::timeless(role),
    warnings: KindWarnings::NONE,
    columns: &DEFAULT,
    fields: SelectableFields::metadata,
    other_version: None,
};
