//! Structural schemas: what a CustomResourceDefinition says the objects of one version look like.
//!
//! Zero values mean nothing here: what was sent stays unless the schema does not know it (docs/spec/custom-resources.md,
//! 4.2 and 4.3). Metadata, of the object and of embedded ones, is a struct of upstream's all the same.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::kind::GoShape;
use super::types::{self, Fit, Types};
use crate::tree::{Map, Text, Value};

mod problems;
mod read;

/// The schema of a version, and the types of metadata.
pub struct Structural {
    pub root: SchemaNode,
    /// `ObjectMeta`.
    pub metadata: GoShape,
}

/// What the schema says of one value. Rules that only validation reads are not in here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SchemaNode {
    pub value_type: ValueType,
    pub format: Text,
    pub properties: BTreeMap<Text, SchemaNode>,
    /// Of keys that are no properties.
    pub additional: Additional,
    pub items: Option<Box<SchemaNode>>,
    pub default: Option<Value>,
    pub nullable: bool,
    pub preserves_unknown: bool,
    /// An object with kind, apiVersion and metadata of its own.
    pub embedded: bool,
    pub list_type: ListType,
    /// A map or struct that apply takes as a whole.
    pub is_atomic_map: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ValueType {
    /// No type is given, as with `x-kubernetes-int-or-string`.
    #[default]
    Any,
    Object,
    Array,
    Number,
    String,
    Boolean,
}

/// `additionalProperties`.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Additional {
    #[default]
    Unsaid,
    /// `true` or `false`.
    Allowed(bool),
    Schema(Box<SchemaNode>),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListType {
    #[default]
    Atomic,
    Set,
    /// Elements are told apart by these members.
    Map(Vec<Text>),
}

/// Why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotStructural {
    #[error("{path}: {member} must be {want}")]
    Misfit { path: String, member: &'static str, want: &'static str },
    #[error("the schema nests deeper than {MAX_DEPTH} levels")]
    TooDeep,
    #[error("there is no type of metadata")]
    NoMetadata,
}

/// Levels of a schema; a CustomResourceDefinition that nests deeper cannot be stored.
const MAX_DEPTH: usize = 128;

/// The members that an object has whatever its schema says.
const OBJECT_MEMBERS: [&str; 3] = ["apiVersion", "kind", "metadata"];

impl Structural {
    /// Reads an `openAPIV3Schema` that validation has found structural.
    pub fn read(schema: &Map, types: &Arc<Types>) -> Result<Self, NotStructural> {
        let message = types.message_named("ObjectMeta").ok_or(NotStructural::NoMetadata)?;
        let metadata = GoShape { types: types.clone(), message };
        let mut root = SchemaNode { embedded: true, ..read::node(schema)? };
        prune_defaults(&mut root, &metadata);
        Ok(Self { root, metadata })
    }

    /// Drops what the schema does not know, and nulls that stand for nothing. Metadata becomes what upstream's type makes
    /// of it; the error is Go's about metadata of the wrong type.
    pub fn conform(&self, object: &mut Map) -> Result<Fit, String> {
        let mut fit = Fit::default();
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            fit = types::conform(&self.metadata, None, metadata)?;
        }
        let mut pruner = Pruner { metadata: &self.metadata, pruned: false };
        pruner.members(&self.root, object, self.root.unknown_members());
        fit.unknown |= pruner.pruned;
        self.root.drop_nulls(object);
        Ok(fit)
    }

    /// Gives an object that conforms its defaults.
    pub fn default(&self, object: &mut Map) {
        self.root.default_members(object);
    }
}

/// A default loses what its own schema does not know.
fn prune_defaults(node: &mut SchemaNode, metadata: &GoShape) {
    if let Some(mut default) = node.default.take() {
        Pruner { metadata, pruned: false }.value(Some(node), &mut default, node.unknown_members());
        node.default = Some(default);
    }
    let additional = match &mut node.additional {
        Additional::Schema(schema) => Some(&mut **schema),
        Additional::Unsaid | Additional::Allowed(_) => None,
    };
    let below = node.properties.values_mut().chain(node.items.as_deref_mut()).chain(additional);
    below.for_each(|node| prune_defaults(node, metadata));
}

impl fmt::Debug for Structural {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Structural").field("root", &self.root).finish_non_exhaustive()
    }
}

impl SchemaNode {
    /// The schema of a member: its property's, or that of additional ones.
    fn member(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or(match &self.additional {
            Additional::Schema(schema) => Some(schema),
            Additional::Unsaid | Additional::Allowed(_) => None,
        })
    }

    /// Whether an object that does not preserve unknown members may have this one.
    fn knows(&self, name: &str) -> bool {
        self.properties.contains_key(name)
            || self.additional != Additional::Unsaid
            || self.is_object_member(name)
    }

    fn unknown_members(&self) -> UnknownMembers {
        if self.preserves_unknown { UnknownMembers::Preserved } else { UnknownMembers::Dropped }
    }

    /// Of the items of a list; what a list preserves, its items do, whatever they say.
    fn unknown_members_of_items(items: Option<&Self>, of_list: UnknownMembers) -> UnknownMembers {
        match (of_list, items) {
            (UnknownMembers::Dropped, Some(items)) => items.unknown_members(),
            _ => of_list,
        }
    }

    fn is_object_member(&self, name: &str) -> bool {
        self.embedded && OBJECT_MEMBERS.contains(&name)
    }

    /// Drops the nulls of members that may not be null and have no default.
    fn drop_nulls(&self, object: &mut Map) {
        object.retain(|name, value| {
            let stands_for_nothing = |schema: &Self| !schema.nullable && schema.default.is_none();
            !(value.is_null() && self.member(name).is_some_and(stands_for_nothing))
        });
        for (name, value) in object.iter_mut() {
            if let Some(schema) = self.member(name) {
                schema.drop_nulls_below(value);
            }
        }
    }

    fn drop_nulls_below(&self, value: &mut Value) {
        match value {
            Value::Object(members) => self.drop_nulls(members),
            Value::Array(items) => {
                if let Some(schema) = &self.items {
                    items.iter_mut().for_each(|item| schema.drop_nulls_below(item));
                }
            }
            _ => {}
        }
    }

    /// First the members of the object itself, so that defaults apply within defaults.
    fn default_members(&self, object: &mut Map) {
        for (name, schema) in &self.properties {
            let Some(default) = &schema.default else { continue };
            if object.get(name).is_none_or(|value| schema.is_misplaced_null(value)) {
                object.insert(name.clone(), default.clone());
            }
        }
        for (name, value) in object.iter_mut() {
            let Some(schema) = self.member(name) else { continue };
            schema.default_value(value);
        }
    }

    fn default_value(&self, value: &mut Value) {
        if self.is_misplaced_null(value)
            && let Some(default) = &self.default
        {
            *value = default.clone();
        }
        match value {
            Value::Object(members) => self.default_members(members),
            Value::Array(items) => {
                if let Some(schema) = &self.items {
                    items.iter_mut().for_each(|item| schema.default_value(item));
                }
            }
            _ => {}
        }
    }

    fn is_misplaced_null(&self, value: &Value) -> bool {
        value.is_null() && !self.nullable
    }
}

/// What becomes of members that a schema does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnknownMembers {
    Dropped,
    Preserved,
}

/// Drops unknown members, and brings embedded metadata into its type's form.
struct Pruner<'a> {
    metadata: &'a GoShape,
    pruned: bool,
}

impl Pruner<'_> {
    fn members(&mut self, schema: &SchemaNode, object: &mut Map, unknown: UnknownMembers) {
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
    fn value(&mut self, schema: Option<&SchemaNode>, value: &mut Value, unknown: UnknownMembers) {
        match (schema, value) {
            (Some(schema), Value::Object(members)) => {
                self.embedded_metadata(schema, members);
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

    /// What has the wrong type stays as it is, for validation to refuse.
    fn embedded_metadata(&mut self, schema: &SchemaNode, object: &mut Map) {
        if !schema.embedded {
            return;
        }
        let Some(Value::Object(metadata)) = object.get_mut("metadata") else { return };
        let mut conformed = metadata.clone();
        if let Ok(fit) = types::conform(self.metadata, None, &mut conformed) {
            self.pruned |= fit.unknown;
            *metadata = conformed;
        }
    }
}

#[cfg(test)]
mod tests;
