//! Warnings about schemas that are accepted all the same (apiextensions `strategy.WarningsOnCreate`).

use std::collections::BTreeSet;

use super::subschemas::schemas_below;
use crate::gotext::quote;
use crate::kinds::prelude::*;
use crate::schema::structural::{Format, ValueType};

pub const WARNINGS: KindWarnings = KindWarnings::new(create, update);

/// Oddities in the schemas of a definition.
#[derive(Default)]
struct Oddities<'v> {
    /// Formats that mean nothing for the type that they stand with.
    formats: BTreeSet<&'v str>,
    /// The types of items of sets that are no scalars.
    sets: BTreeSet<&'v str>,
}

fn create(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    Oddities::of(object).tell(&Oddities::default(), remarks);
}

/// Oddities of the old definition are not told again.
fn update(new: &ObjectMap, old: &ObjectMap, remarks: &mut Remarks<'_>) {
    Oddities::of(new).tell(&Oddities::of(old), remarks);
}

impl<'v> Oddities<'v> {
    fn of(object: &'v ObjectMap) -> Self {
        let mut found = Self::default();
        super::schemas(&At::member(object, "spec")).for_each(|schema| found.look_at(schema));
        found
    }

    fn look_at(&mut self, schema: &'v Value) {
        let text = |of: &'v Value, name: &str| of.get(name).and_then(Value::as_str).unwrap_or_default();
        let format = text(schema, "format");
        if !format.is_empty() && Format::of(ValueType::named(text(schema, "type")), format).is_none() {
            self.formats.insert(format);
        }
        let items = schema.get("items").map_or("", |items| text(items, "type"));
        if text(schema, "x-kubernetes-list-type") == "set" && matches!(items, "object" | "array") {
            self.sets.insert(items);
        }
        schemas_below(schema).for_each(|below| self.look_at(below));
    }

    fn tell(&self, before: &Self, remarks: &mut Remarks<'_>) {
        for format in self.formats.difference(&before.formats) {
            remarks.say(format!("unrecognized format {}", quote(format)));
        }
        for items in self.sets.difference(&before.sets) {
            let why = "is not supported by server-side apply or CEL validation rules";
            remarks.say(format!("x-kubernetes-list-type: set for items of type {} {why}", quote(items)));
        }
    }
}
