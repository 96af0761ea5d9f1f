//! `x-kubernetes-validations`: the rules of a schema, compiled once, and what they say of an object
//! (`apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go`).

mod compile;
mod correlation;
mod field_path;
mod seen;
mod validate;

pub use field_path::FieldPath;
pub use validate::{Findings, Violation, ViolationKind};

use smol_str::SmolStr;

use crate::decl::Decl;
use crate::program::Program;

/// What an expression may cost, and all of an object together.
pub const CALL_LIMIT: u64 = 1_000_000;
pub const OBJECT_BUDGET: i64 = 10_000_000;

/// The rules of a version's schema.
#[derive(Debug)]
pub struct Rules {
    root: Node,
}

/// The rules at a place of a schema, and those below.
#[derive(Debug)]
struct Node {
    rules: Vec<Rule>,
    /// Why none of the rules here can be compiled.
    failed: Option<String>,
    decl: Decl,
    /// `type`, which messages show instead of a value.
    type_name: SmolStr,
    items: Option<Box<Node>>,
    additional: Option<Box<Node>>,
    /// Sorted by name.
    properties: Vec<(SmolStr, Node)>,
    all_of: Vec<Node>,
    /// The members that tell the elements of a list apart.
    list_keys: Option<Vec<SmolStr>>,
}

#[derive(Debug)]
struct Rule {
    program: Result<Program, String>,
    text: String,
    message: String,
    message_program: Option<Program>,
    reason: SmolStr,
    /// Where below the value the rule says to be wrong.
    field_path: String,
    optional_old: bool,
    uses_old: bool,
}

impl Rules {
    /// Whether there is no rule.
    pub fn is_empty(&self) -> bool {
        self.root.is_empty()
    }
}

impl Node {
    fn is_empty(&self) -> bool {
        self.rules.is_empty()
            && self.failed.is_none()
            && self.items.is_none()
            && self.additional.is_none()
            && self.properties.is_empty()
            && self.all_of.is_empty()
    }
}
