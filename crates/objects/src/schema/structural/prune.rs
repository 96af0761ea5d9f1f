//! Drops what a schema does not know.

use super::{Additional, SchemaNode};
use crate::tree::{Map, Value};

/// The fate of members that a schema does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownMembers {
    Dropped,
    Preserved,
}

impl SchemaNode {
    pub(super) fn unknown_members(&self) -> UnknownMembers {
        if self.preserves_unknown { UnknownMembers::Preserved } else { UnknownMembers::Dropped }
    }

    /// The fate of unknown members of a list's items: preserved if the list preserves them, or else as the items' schema says.
    pub(super) fn unknown_members_of_items(items: Option<&Self>, of_list: UnknownMembers) -> UnknownMembers {
        match (of_list, items) {
            (UnknownMembers::Dropped, Some(items)) => items.unknown_members(),
            _ => of_list,
        }
    }
}

/// Whether a [`Pruner`] would find nothing to drop of an object.
pub fn knows_all(schema: &SchemaNode, object: &Map, unknown: UnknownMembers) -> bool {
    object.iter().all(|(name, value)| {
        if unknown == UnknownMembers::Dropped && !schema.knows(name) {
            return false;
        }
        schema.is_object_member(name)
            || match (schema.member(name), &schema.additional) {
                (Some(below), _) => knows_all_of_value(Some(below), value, below.unknown_members()),
                (None, Additional::Unsaid) => true,
                (None, _) => knows_all_of_value(None, value, UnknownMembers::Dropped),
            }
    })
}

fn knows_all_of_value(schema: Option<&SchemaNode>, value: &Value, unknown: UnknownMembers) -> bool {
    match (schema, value) {
        (Some(schema), Value::Object(members)) => knows_all(schema, members, unknown),
        (None, Value::Object(members)) => unknown == UnknownMembers::Preserved || members.is_empty(),
        (schema, Value::Array(items)) => {
            let schema = schema.and_then(|schema| schema.items.as_deref());
            let unknown = SchemaNode::unknown_members_of_items(schema, unknown);
            items.iter().all(|item| knows_all_of_value(schema, item, unknown))
        }
        _ => true,
    }
}

/// Drops unknown members; metadata is not its business.
#[derive(Default)]
pub struct Pruner {
    pub pruned: bool,
}

impl Pruner {
    pub fn members(&mut self, schema: &SchemaNode, object: &mut Map, unknown: UnknownMembers) {
        let before = object.len();
        object.retain(|name, _| unknown == UnknownMembers::Preserved || schema.knows(name));
        self.pruned |= object.len() < before;
        for (name, value) in object.iter_mut() {
            if !schema.is_object_member(name) {
                match schema.properties.get(name) {
                    Some(property) => self.value(Some(property), value, property.unknown_members()),
                    None => self.additional(schema, value),
                }
            }
        }
    }

    fn additional(&mut self, schema: &SchemaNode, value: &mut Value) {
        match &schema.additional {
            Additional::Schema(additional) => {
                self.value(Some(additional), value, additional.unknown_members());
            }
            Additional::Allowed(_) => self.value(None, value, UnknownMembers::Dropped),
            // An unknown member that is preserved.
            Additional::Unsaid => {}
        }
    }

    /// Without a schema, objects lose all their members, unless these are preserved.
    pub fn value(&mut self, schema: Option<&SchemaNode>, value: &mut Value, unknown: UnknownMembers) {
        match (schema, value) {
            (Some(schema), Value::Object(members)) => {
                self.members(schema, members, unknown);
            }
            (None, Value::Object(members)) if unknown == UnknownMembers::Dropped => {
                self.pruned |= !members.is_empty();
                *members = Map::new();
            }
            (schema, Value::Array(items)) => {
                let schema = schema.and_then(|schema| schema.items.as_deref());
                let unknown = SchemaNode::unknown_members_of_items(schema, unknown);
                items.iter_mut().for_each(|item| self.value(schema, item, unknown));
            }
            _ => {}
        }
    }
}
