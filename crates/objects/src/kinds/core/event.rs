//! Events of the core group, which are those of `events.k8s.io` in their older form.

use crate::kinds::behavior::names::NameFormat;
use crate::kinds::events::conversion::OF_CORE;
use crate::kinds::events::event;
use crate::kinds::events::event::{EventHooks, columns};
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("events", "Event").short(&["ev"]).creates_on_update(),
    // Upstream's validation of these events does not check the name.
    strategy: Strategy { names: NameFormat::PathSegment, hooks: &EventHooks, ..Strategy::PLAIN },
    rules: Rules::timeless(event::old).without_finalizers().before_names(),
    warnings: KindWarnings::NONE,
    columns: &columns::COLUMNS,
    fields: event::core_fields,
    other_version: Some(OF_CORE),
};
