//! Structural schemas: what a CustomResourceDefinition says the objects of one version look like.
//!
//! Zero values mean nothing here: what was sent stays unless the schema does not know it (docs/spec/custom-resources.md,
//! 4.2 and 4.3). Metadata, of the object and of embedded ones, is a struct of upstream's all the same.
//!
//! A schema holds what validates, without descriptions: OpenAPI reads those from the stored definition. Parts that are the
//! same, in one schema or in several, are one part in memory ([`Schemas`]).

use std::fmt;
use std::sync::Arc;

use super::types::{Fit, GoShape, Types};
use crate::tree::{Map, Text, Value};

mod check;
mod coerce;
mod correlated;
mod default_rules;
mod defaults;
mod embedded;
mod format;
mod intern;
mod junctors;
mod list_types;
mod numbers;
mod outcome;
mod place;
mod problems;
mod prune;
mod read;
mod schemas;
mod type_check;
mod validate;
mod view;

pub use check::{Bound, Check, Pattern};
pub use default_rules::{DefaultFindings, DefaultRules, violation_causes};
pub use defaults::DefaultsTooLarge;
pub use format::Format;
pub use place::ValuePath;
pub use schemas::Schemas;
pub use validate::blocks_rules;

use defaults::DefaultRoom;
use prune::Pruner;

/// The schema of a version, and the types of metadata.
pub struct Structural {
    pub root: Node,
    /// `ObjectMeta`.
    pub metadata: GoShape,
}

/// The schema of one value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SchemaNode {
    pub value_type: ValueType,
    pub odd_type: Option<Box<str>>,
    pub nullable: bool,
    pub preserves_unknown: bool,
    /// An object with kind, apiVersion and metadata of its own.
    pub embedded: bool,
    pub int_or_string: bool,
    /// A map or struct that apply takes as a whole.
    pub is_atomic_map: bool,
    /// The format, if values are held to it.
    pub known_format: Option<Format>,
    pub format: Text,
    pub properties: Properties,
    /// The schema of keys that are no properties.
    pub additional: Additional,
    pub items: Option<Node>,
    pub default: Option<Arc<Value>>,
    pub list_type: ListType,
    /// The other constraints on a value, in the order in which upstream looks at them.
    pub checks: Box<[Check]>,
}

/// A node that others may share.
#[derive(Clone, Debug, Eq)]
pub struct Node(Arc<SchemaNode>);

/// Schemas by the names of members, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Properties(Box<[(Text, Node)]>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ValueType {
    /// No type is given, as with `x-kubernetes-int-or-string`.
    #[default]
    Any,
    Object,
    Array,
    Integer,
    Number,
    String,
    Boolean,
    /// A name that is no type of JSON, as old definitions may have it: [`SchemaNode::odd_type`].
    Odd,
}

/// `additionalProperties`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Additional {
    #[default]
    Unsaid,
    /// `true` or `false`.
    Allowed(bool),
    Schema(Node),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum ListType {
    #[default]
    Atomic,
    Set,
    /// Elements are told apart by these members.
    Map(Box<[Text]>),
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
    /// Reads an `openAPIV3Schema` that validation has found structural, by itself: [`Schemas::read`] shares parts.
    pub fn read(schema: &Map, types: &Arc<Types>) -> Result<Self, NotStructural> {
        Schemas::new(types.clone()).read(schema)
    }

    /// Drops what the schema does not know, and nulls that stand for nothing. Metadata, of the object and of embedded
    /// resources, becomes what upstream's type makes of it; the error is Go's about metadata of the wrong type.
    pub fn conform(&self, object: &mut Map) -> Result<Fit, String> {
        let mut fit = Fit::default();
        match object.get_mut("metadata") {
            Some(Value::Object(metadata)) => fit = self.conform_metadata(metadata)?,
            None | Some(Value::Null) => {}
            Some(other) => {
                let found = crate::gotext::json_kind(other);
                return Err(format!("json: cannot unmarshal {found} into Go value of type v1.ObjectMeta"));
            }
        }
        let mut pruner = Pruner::default();
        pruner.members(&self.root, object, self.root.unknown_members());
        self.root.drop_nulls(object);
        fit.unknown |= pruner.pruned;
        fit.unknown |= self.coerce_embedded(object)?;
        Ok(fit)
    }

    /// Upstream reads metadata from a map: of several misfits, it tells the first by name.
    fn conform_metadata(&self, metadata: &mut Map) -> Result<Fit, String> {
        super::types::conform(&self.metadata, None, metadata).map_err(|first| {
            let mut sorted = Value::Object(metadata.clone());
            sorted.sort_all();
            let Value::Object(mut sorted) = sorted else { return first };
            super::types::conform(&self.metadata, None, &mut sorted).err().unwrap_or(first)
        })
    }

    /// The variant of [`Structural::conform`] for an object from the store: metadata of the wrong type is taken away, and
    /// generation 1 is put where there is none.
    pub fn conform_stored(&self, object: &mut Map) -> Result<(), String> {
        if self.conform(object).is_err() {
            self.drop_misfits(object);
            self.conform(object)?;
        }
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
            && metadata.get("generation").is_none_or(|generation| generation.as_i64() == Some(0))
        {
            metadata.insert("generation", 1.into());
        }
        Ok(())
    }

    /// Whether an object from the store stays as it is when it conforms and gets its defaults.
    pub fn is_settled(&self, object: &Map) -> bool {
        let metadata = object.get("metadata").and_then(Value::as_object);
        metadata.is_some_and(|metadata| {
            metadata.get("generation").is_some_and(|generation| generation.as_i64() != Some(0))
                && self.is_metadata(metadata)
        }) && prune::knows_all(&self.root, object, self.root.unknown_members())
            && self.root.leaves_as_is(object, &|resource| self.is_resource(resource))
    }

    /// Whether an embedded resource stays as it is.
    fn is_resource(&self, resource: &Map) -> bool {
        let is_text = |name| resource.get(name).is_none_or(Value::is_string);
        let metadata = resource.get("metadata");
        is_text("apiVersion")
            && is_text("kind")
            && metadata.is_none_or(|metadata| metadata.as_object().is_some_and(|map| self.is_metadata(map)))
    }

    fn is_metadata(&self, metadata: &Map) -> bool {
        let mut conformed = metadata.clone();
        super::types::conform(&self.metadata, None, &mut conformed).is_ok() && conformed == *metadata
    }

    /// Gives an object that conforms its defaults.
    pub fn default(&self, object: &mut Map) -> Result<(), DefaultsTooLarge> {
        self.root.default_members(object, &mut DefaultRoom::default())
    }
}

impl fmt::Debug for Structural {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Structural").field("root", &self.root).finish_non_exhaustive()
    }
}

impl ValueType {
    /// The type that a schema calls by this name.
    pub fn named(name: &str) -> Self {
        match name {
            "" => Self::Any,
            "object" => Self::Object,
            "array" => Self::Array,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "string" => Self::String,
            "boolean" => Self::Boolean,
            _ => Self::Odd,
        }
    }
}

impl SchemaNode {
    /// The schema of a member: its property's, or that of additional ones.
    pub fn member(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or_else(|| self.additional.schema())
    }

    /// Whether an object that does not preserve unknown members may have this one.
    fn knows(&self, name: &str) -> bool {
        self.properties.contains(name) || self.additional != Additional::Unsaid || self.is_object_member(name)
    }

    fn is_object_member(&self, name: &str) -> bool {
        self.embedded && OBJECT_MEMBERS.contains(&name)
    }
}

impl Node {
    fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }
}

impl std::ops::Deref for Node {
    type Target = SchemaNode;

    fn deref(&self) -> &SchemaNode {
        &self.0
    }
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Properties {
    pub fn get(&self, name: &str) -> Option<&SchemaNode> {
        self.find(name).map(|node| &**node)
    }

    fn find(&self, name: &str) -> Option<&Node> {
        // A few names are compared faster than a search branches.
        if self.0.len() <= 8 {
            return self.0.iter().find(|(known, _)| known == name).map(|(_, node)| node);
        }
        let at = self.0.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok()?;
        Some(&self.0[at].1)
    }

    pub fn contains(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Text, &SchemaNode)> {
        self.0.iter().map(|(name, node)| (name, &**node))
    }
}

impl Additional {
    pub fn schema(&self) -> Option<&SchemaNode> {
        match self {
            Self::Schema(schema) => Some(schema),
            Self::Unsaid | Self::Allowed(_) => None,
        }
    }
}
