//! `x-kubernetes-validations`: the rules of a schema, compiled once, and what they say of an object
//! (`apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go`).

mod compile;
mod correlation;
mod field_path;
mod findings;
mod scope;
mod seen;
mod validate;

pub use compile::has_any;
pub use field_path::FieldPath;
pub use findings::{Findings, Violation, ViolationKind};
pub use scope::{Assessment, Expression, NoStack, RuleScope};
pub use validate::MOST_RUNS;

use std::sync::{Arc, OnceLock};

use rowplane_values::regexp::Room;
use rowplane_values::tree::Value;
use smol_str::SmolStr;

use crate::decl::Decl;
use scope::RuleProgram;

/// The most that one expression may cost.
pub const CALL_LIMIT: u64 = 1_000_000;
/// The most that all expressions of an object may cost together.
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
    programs: OnceLock<Option<Vec<RuleProgram>>>,
    /// For the programs of the patterns of all rules of a schema.
    room: Arc<Room>,
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
    /// The rule as the schema has it.
    given: Value,
    text: String,
    /// `None` if there is no message. A blank one counts as none in the validation of definitions, but not here.
    message: Option<String>,
    reason: SmolStr,
    /// The path, below the value, of the field that violations of the rule name.
    field_path: String,
    optional_old: bool,
}

/// The rules at a place of a schema, and those below.
#[derive(Clone, Copy, Debug)]
pub struct RulesAt<'r>(&'r Node);

impl Rules {
    /// Whether there is no rule.
    pub fn is_empty(&self) -> bool {
        self.root.is_empty()
    }

    pub fn root(&self) -> RulesAt<'_> {
        RulesAt(&self.root)
    }

    /// Compiles all rules, which otherwise happens one by one when their first values come.
    pub fn prepare(&self) {
        self.root.prepare();
    }
}

impl<'r> RulesAt<'r> {
    /// The rules for the elements of a list; `None` if there are none.
    pub fn items(self) -> Option<Self> {
        self.0.items.as_deref().map(Self)
    }

    /// The rules for a property.
    pub fn property(self, name: &str) -> Option<Self> {
        let found = self.0.properties.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok()?;
        Some(Self(&self.0.properties[found].1))
    }
}

fn text<'s>(schema: &'s Value, name: &str) -> &'s str {
    schema.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool) == Some(true)
}

impl Node {
    fn is_empty(&self) -> bool {
        self.rules.is_empty()
            && self.items.is_none()
            && self.additional.is_none()
            && self.properties.is_empty()
            && self.all_of.is_empty()
    }
}
