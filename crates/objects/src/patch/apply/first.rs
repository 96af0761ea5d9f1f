//! Writes the set of an object's first manager directly as FieldsV1. A create owns most of its object, so a tree of the
//! set would be built only to be written once.
//!
//! The result is the same as that of [`compare`](super::compare::compare) and [`fields_v1::encode`], which also handle
//! the unusual cases.

use super::fields::FieldSet;
use super::fields_v1;
use super::filter::Filter;
use super::items::{self, Group};
use super::managers::NEVER_OWNED;
use super::path::{PathElement, same};
use super::schema::{Form, ListType, MapType, Relation, Schema, TypeId};
use crate::fields::identical;
use crate::tree::{Map, Text, Value};

/// The fast way does not handle this object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unusual;

/// The set of paths in which `new` differs from `zero`, that pass the filter and can be owned; `None` if it is empty.
pub fn first(schema: &Schema, zero: &Map, new: &Map, filter: &Filter) -> Result<Option<String>, Unusual> {
    let (Some(map), Filter::Exclude(excluded)) = (&schema.atom(schema.root()).map, filter) else {
        return Err(Unusual);
    };
    let barred = Barred { whole: Some(excluded), alone: Some(&NEVER_OWNED) };
    let mut writer = Writer { schema, text: String::with_capacity(1024) };
    writer.text.push('{');
    writer.members(map, Some(zero), new, barred)?;
    writer.text.push('}');
    Ok((writer.text.len() > 2).then_some(writer.text))
}

/// Paths below a node that must not be written.
#[derive(Clone, Copy, Default)]
struct Barred<'a> {
    /// Paths that are excluded with everything below them.
    whole: Option<&'a FieldSet>,
    alone: Option<&'a FieldSet>,
}

impl Barred<'_> {
    fn is_nothing(self) -> bool {
        self.whole.is_none_or(FieldSet::is_empty) && self.alone.is_none_or(FieldSet::is_empty)
    }

    /// Whether a step may be a member, and what is excluded below it; `None` if the step is excluded with everything
    /// below it.
    fn pass(self, step: &PathElement) -> Option<(bool, Self)> {
        if self.whole.is_some_and(|paths| paths.has(step)) {
            return None;
        }
        let whole = self.whole.and_then(|paths| paths.below(step));
        let alone = self.alone.and_then(|paths| paths.below(step));
        Some((!self.alone.is_some_and(|paths| paths.has(step)), Self { whole, alone }))
    }
}

/// A node that is being written.
struct Node<'a> {
    id: TypeId,
    /// The zero object's value at this place.
    zero: Option<&'a Value>,
    value: &'a Value,
    /// Whether the node's path can be a member.
    ownable: bool,
    barred: Barred<'a>,
}

/// The children of a node that have to be visited.
enum Below<'a> {
    Nothing,
    Members(&'a MapType, Option<&'a Map>, &'a Map),
    Items(&'a ListType, &'a [Value]),
}

struct Writer<'a> {
    schema: &'a Schema,
    text: String,
}

impl<'a> Writer<'a> {
    fn members(
        &mut self,
        map: &'a MapType,
        zero: Option<&'a Map>,
        new: &'a Map,
        barred: Barred<'a>,
    ) -> Result<(), Unusual> {
        let mut members: Vec<(&Text, &Value)> = new.iter().collect();
        members.sort_unstable_by_key(|(name, _)| *name);
        for (name, value) in members {
            let zero = zero.and_then(|zero| zero.get(name));
            if zero.is_some_and(|zero| identical(zero, value)) {
                continue;
            }
            let passed = match barred.is_nothing() {
                true => Some((true, Barred::default())),
                false => barred.pass(&map.step(name).0),
            };
            let Some((ownable, barred)) = passed else { continue };
            let start = self.text.len();
            self.separate();
            fields_v1::write_field(&mut self.text, name);
            self.node(start, Node { id: map.member(name), zero, value, ownable, barred })?;
        }
        Ok(())
    }

    fn items(&mut self, list: &'a ListType, items: &'a [Value]) -> Result<(), Unusual> {
        let index = items::index(self.schema, list, items);
        if items::leaves_out(&index, items) {
            return Err(Unusual);
        }
        for (step, group) in index {
            let start = self.text.len();
            self.separate();
            fields_v1::write_item(&mut self.text, &step);
            match group {
                Group::One(value) => {
                    let barred = Barred::default();
                    self.node(start, Node { id: list.element, zero: None, value, ownable: true, barred })?;
                }
                Group::Many(_) => self.text.push_str(":{}"),
            }
        }
        Ok(())
    }

    /// Writes the set below a node. Its key has been written already, from `start`; if the set is empty, the key is
    /// removed again.
    fn node(&mut self, start: usize, node: Node<'a>) -> Result<(), Unusual> {
        let (changed, below) = self.below(&node)?;
        let member = changed && node.ownable;
        self.text.push_str(":{");
        let inner = self.text.len();
        if member && !matches!(below, Below::Nothing) {
            self.text.push_str(fields_v1::ITSELF);
        }
        let alone = self.text.len();
        match below {
            Below::Nothing => {}
            Below::Members(map, zero, new) => self.members(map, zero, new, node.barred)?,
            Below::Items(..) if !node.barred.is_nothing() => return Err(Unusual),
            Below::Items(list, items) => self.items(list, items)?,
        }
        if self.text.len() == alone {
            self.text.truncate(inner);
            if !member {
                self.text.truncate(start);
                return Ok(());
            }
        }
        self.text.push('}');
        Ok(())
    }

    /// Whether the node itself was added or modified, and which children may have been.
    fn below(&self, node: &Node<'a>) -> Result<(bool, Below<'a>), Unusual> {
        let &Node { id, zero, value, .. } = node;
        let form = self.schema.form(id, value);
        let Some(zero) = zero else {
            return Ok((
                true,
                match (form, value) {
                    (Form::Map(map), Value::Object(new)) if !map.atomic => Below::Members(map, None, new),
                    (Form::List(list), Value::Array(items)) if list.relation != Relation::Atomic => {
                        Below::Items(list, items)
                    }
                    _ => Below::Nothing,
                },
            ));
        };
        if form != self.schema.form(id, zero) {
            return Err(Unusual);
        }
        let whole = || Ok((!same(zero, value), Below::Nothing));
        match (form, zero, value) {
            (Form::Map(map), zero, Value::Object(new)) if !map.atomic => match zero.as_object() {
                old if new.is_empty() && old.is_none_or(Map::is_empty) => whole(),
                old => Ok((false, Below::Members(map, old, new))),
            },
            (Form::List(list), Value::Null, Value::Array(items))
                if list.relation != Relation::Atomic && !items.is_empty() =>
            {
                Ok((false, Below::Items(list, items)))
            }
            (Form::Scalar(_), ..) => whole(),
            (Form::Map(map), ..) if map.atomic => whole(),
            (Form::List(list), ..) if list.relation == Relation::Atomic => whole(),
            _ => Err(Unusual),
        }
    }

    fn separate(&mut self) {
        if !self.text.ends_with('{') {
            self.text.push(',');
        }
    }
}
