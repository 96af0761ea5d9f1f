//! Nodes of a document: values, and what is known of them until the document ends.

use crate::tree::{Text, Value};

/// A complete node.
pub(super) struct Node {
    pub value: Value,
    /// The line where it starts, from 1.
    pub line: usize,
    pub form: Form,
}

/// The properties of a node beside its value.
#[derive(Clone)]
pub(super) enum Form {
    Scalar,
    /// A floating-point number as it was before JSON printed it.
    Float(f64),
    /// The key under which other mappings are merged into this one.
    Merge,
    Sequence {
        /// The members of its mappings, if it is the value of a merge key.
        members: Vec<Vec<Origin>>,
        is_alias: bool,
    },
    Mapping {
        members: Vec<Origin>,
    },
}

/// The key of a member, and the line of its value.
#[derive(Clone)]
pub(super) struct Origin {
    pub key: Text,
    pub of: KeyType,
    pub line: usize,
}

/// The type of a key as it is in YAML. Keys of several types may have one text, and are different keys for go-yaml.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum KeyType {
    Text,
    Int,
    Float,
    Bool,
}

#[derive(Clone, Copy)]
pub(super) struct Measure {
    pub nodes: usize,
    pub bytes: usize,
    pub told: usize,
}
