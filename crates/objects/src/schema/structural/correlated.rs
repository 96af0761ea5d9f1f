//! Validation of a changed object: what is as it was is not held to the schema again (ratcheting).
//!
//! A value is known again as upstream knows it: members by name, and items only of lists that are maps, by their keys. The
//! walk finds out on its way what has changed, so that nothing is compared twice.

use std::collections::HashMap;

use super::outcome::ValidationResult;
use super::place::ValuePath;
use super::validate::{Walk, after_members, each_member, object_size};
use super::view::View;
use super::{ListType, SchemaNode, Structural, ValueType};
use crate::causes::Causes;
use crate::tree::{Map, Text, Value};

impl Structural {
    /// The errors of a new version of an object, in what has changed.
    pub fn validate_update(&self, new: &Map, old: &Map) -> Causes {
        let mut walk = Walk::default();
        let mut found = ValidationResult::default();
        walk.update(&self.root, View::Object(new), View::Object(old), &ValuePath::ROOT, &mut found);
        walk.end(found, "")
    }

    /// The errors of a new status, in what has changed; `old` is `None` for an object that had no status.
    pub fn validate_status(&self, new: &Value, old: Option<&Value>) -> Causes {
        let Some(schema) = self.root.properties.get("status") else { return Causes::default() };
        let mut walk = Walk::default();
        let mut found = ValidationResult::default();
        let old = old.map_or(View::Null, View::from);
        walk.update(schema, new.into(), old, &ValuePath::ROOT, &mut found);
        walk.end(found, "status")
    }
}

impl Walk {
    /// Validates the parts of a value that have changed (ratcheting). Returns whether the value is unchanged as a whole.
    fn update(
        &mut self,
        schema: &SchemaNode,
        new: View<'_>,
        old: View<'_>,
        at: &ValuePath<'_>,
        found: &mut ValidationResult,
    ) -> bool {
        if !self.goes_on() {
            return false;
        }
        let mut below = ValidationResult::default();
        match (new, old) {
            (View::Object(members), View::Object(of_old)) => {
                if self.members(schema, members, of_old, at, &mut below) {
                    return true;
                }
                self.before_members(schema, new, at, found);
                object_size(schema, members, at, found);
            }
            (View::Array(items), View::Array(of_old)) => {
                if self.items(schema, items, of_old, at, &mut below) {
                    return true;
                }
                self.before_members(schema, new, at, found);
            }
            (new, old) if new.is_scalar(old) => return true,
            (new, _) => {
                self.value(schema, new, at, found);
                return false;
            }
        }
        found.merge(below);
        after_members(schema, new, at, found);
        false
    }

    /// Whether all members are what they were. Those that the schema does not know never are.
    fn members(
        &mut self,
        schema: &SchemaNode,
        members: &Map,
        of_old: &Map,
        at: &ValuePath<'_>,
        found: &mut ValidationResult,
    ) -> bool {
        let mut known = 0;
        let mut same = members.len() == of_old.len();
        each_member(schema, members, &mut |of_member, name, member, step| {
            known += 1;
            let place = step.from(at, name);
            let Some(old) = of_old.get(name) else {
                same = false;
                return self.value(of_member, member.into(), &place, found);
            };
            if at.is_root() && matches!(name, "kind" | "apiVersion") {
                self.value(of_member, member.into(), &place, found);
                same &= self.update(
                    of_member,
                    member.into(),
                    old.into(),
                    &place,
                    &mut ValidationResult::default(),
                );
            } else {
                same &= self.update(of_member, member.into(), old.into(), &place, found);
            }
        });
        same && known == members.len()
    }

    /// Whether all items are what they were; those of a map may stand in another order.
    fn items(
        &mut self,
        schema: &SchemaNode,
        items: &[Value],
        of_old: &[Value],
        at: &ValuePath<'_>,
        found: &mut ValidationResult,
    ) -> bool {
        let ListType::Map(keys) = &schema.list_type else {
            if items == of_old {
                return true;
            }
            if let Some(of_item) = schema.items.as_deref() {
                for (index, item) in items.iter().enumerate() {
                    self.value(of_item, item.into(), &at.item(index), found);
                }
            }
            return false;
        };
        let Some(of_item) = schema.items.as_deref() else { return items.is_empty() && of_old.is_empty() };
        let known = if schema.value_type == ValueType::Array { by_key(of_old, keys) } else { HashMap::new() };
        let mut same = items.len() == of_old.len();
        for (index, item) in items.iter().enumerate() {
            let place = at.item(index);
            match key_of(item, keys).and_then(|key| known.get(&key)) {
                Some(old) => same &= self.update(of_item, item.into(), (*old).into(), &place, found),
                None => {
                    same = false;
                    self.value(of_item, item.into(), &place, found);
                }
            }
        }
        same
    }
}

type Key<'v> = Vec<&'v Value>;

/// The first item of each key.
fn by_key<'v>(items: &'v [Value], keys: &[Text]) -> HashMap<Key<'v>, &'v Value> {
    let mut known = HashMap::with_capacity(items.len());
    for item in items {
        if let Some(key) = key_of(item, keys) {
            known.entry(key).or_insert(item);
        }
    }
    known
}

/// Scalars only; an item that lacks one cannot be known again.
fn key_of<'v>(item: &'v Value, keys: &[Text]) -> Option<Key<'v>> {
    let members = item.as_object().filter(|_| !keys.is_empty())?;
    let key = |name: &Text| {
        let value = members.get(name)?;
        matches!(value, Value::Bool(_) | Value::Number(_) | Value::String(_)).then_some(value)
    };
    keys.iter().map(key).collect()
}
