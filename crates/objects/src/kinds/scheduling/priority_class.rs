//! PriorityClasses.

use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, boolean_column, integer_column, text_column};
use crate::kinds::behavior::rules::same::IMMUTABLE;
use crate::kinds::behavior::strategy::generation::Generation;
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("priorityclasses", "PriorityClass").short(&["pc"]).generation(),
    strategy: Strategy { generation: Generation::CreateOnly, ..Strategy::PLAIN },
    rules: Rules::new(create, update),
    warnings: KindWarnings::NONE,
    columns: &COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

const HIGHEST: i64 = 1_000_000_000;

/// Names and values of the classes that every cluster has.
const SYSTEM: [(&str, i64); 2] =
    [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let metadata = At::member(object, "metadata");
    let (name, value) = (metadata.get("name"), At::member(object, "value"));
    if name.text().starts_with("system-") {
        if let Err(why) = system_class(name.text(), value.int(), At::member(object, "globalDefault").flag()) {
            let why = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {why}"
            );
            errors.forbidden(&name, &why);
        }
    } else if value.int() > HIGHEST {
        errors.forbidden(&value, &format!("maximum allowed value of a user defined priority is {HIGHEST}"));
    }
    let policy = At::member(object, "preemptionPolicy");
    match policy.opt_text() {
        None => {}
        Some("") => errors.required(&policy, ""),
        Some(text) => _ = errors.one_of(&policy, text, &["PreemptLowerPriority", "Never"]),
    }
}

fn system_class(name: &str, value: i64, default: bool) -> Result<(), String> {
    let Some((_, own)) = SYSTEM.iter().find(|(known, _)| *known == name) else {
        return Err(format!("{name} is not a known system priority class"));
    };
    if *own != value {
        return Err(format!("value of {name} PriorityClass must be {own}"));
    }
    if default {
        return Err(format!("globalDefault of {name} PriorityClass must be false"));
    }
    Ok(())
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let value = At::member(new, "value");
    if value.int() != At::member(old, "value").int() {
        errors.forbidden(&value, "may not be changed in an update.");
    }
    let policy = At::member(new, "preemptionPolicy");
    let of = |at: &At<'_, '_>| at.opt_text().unwrap_or("PreemptLowerPriority").to_owned();
    if of(&policy) != of(&At::member(old, "preemptionPolicy")) {
        errors.invalid(&policy, &*of(&policy), IMMUTABLE);
    }
}

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        integer_column("Value", "Priority that pods of the class get.").at("value"),
        boolean_column("Global-Default", "Whether pods without a class get this one.").at("globalDefault"),
        AGE,
        text_column("PreemptionPolicy", "Whether pods of the class may push out others.")
            .at("preemptionPolicy"),
    ],
    ..PLAIN
};
