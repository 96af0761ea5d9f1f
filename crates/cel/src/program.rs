//! Expressions that can be evaluated: a plan of nodes in one block, made once of what the checker has found.
//!
//! Nodes are those of cel-go's planner (`interpreter/planner.go`), since costs are told by them: a chain of selections is
//! one attribute, constants are folded, `in` a constant list is a look-up.

mod apply;
mod attributes;
mod budget;
mod call;
mod construct;
mod evaluate;
mod fold;
mod plan;
mod truth;

pub use budget::{Budget, Fault, PATTERNS};
pub use evaluate::Variables;
pub use plan::plan;

use smol_str::SmolStr;

use crate::functions::Overload;
use crate::library::table::{Cost, Quick};
use crate::pattern::Pattern;
use crate::types::Type;
use crate::value::{Key, Value};

/// The number of a node.
type NodeId = u32;
/// The number of a variable of a loop.
type Slot = u32;

#[derive(Debug)]
pub struct Program {
    nodes: Vec<Node>,
    root: NodeId,
    slots: usize,
    /// The variables that are asked for, by number.
    variables: Vec<SmolStr>,
    depth: u16,
    pub result: Type,
}

#[derive(Debug)]
enum Node {
    Constant(Value<'static>),
    Attribute(Attribute),
    /// `has(…)`.
    Test(Attribute),
    And(NodeId, NodeId),
    Or(NodeId, NodeId),
    Not(NodeId),
    NotFalse(NodeId),
    Negate(NodeId),
    Binary {
        operator: Operator,
        left: NodeId,
        right: NodeId,
        cost: Cost,
    },
    /// `in` a list of constants.
    Member {
        item: NodeId,
        of: Vec<Key<'static>>,
    },
    /// An accumulator with one more element.
    Append {
        to: Slot,
        element: NodeId,
    },
    /// `matches` with a constant pattern, of so many letters.
    Matches {
        text: NodeId,
        pattern: Pattern,
        length: u64,
    },
    Call(Box<Call>),
    OptionalOr {
        left: NodeId,
        right: NodeId,
        value: bool,
    },
    List {
        elements: Box<[NodeId]>,
        optional: Box<[bool]>,
    },
    Map {
        entries: Box<[(NodeId, NodeId, bool)]>,
    },
    Struct {
        name: SmolStr,
        fields: Box<[(SmolStr, NodeId, bool)]>,
    },
    Fold(Box<Fold>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    In,
}

impl Operator {
    /// Whether its values are true and false.
    fn is_comparison(self) -> bool {
        !matches!(self, Self::Add | Self::Subtract | Self::Multiply | Self::Divide | Self::Modulo)
    }
}

#[derive(Debug)]
struct Call {
    function: SmolStr,
    overload: Option<&'static Overload>,
    arguments: Box<[NodeId]>,
    cost: Cost,
    quick: Option<Quick>,
    /// Whether the first argument that fails ends the call.
    sequential: bool,
    /// The constant pattern of `find` and `findAll`.
    pattern: Option<Pattern>,
}

/// A value, and what is looked up in it.
#[derive(Debug)]
struct Attribute {
    base: Base,
    qualifiers: Vec<Qualifier>,
}

impl Attribute {
    /// Whether it is a variable of a loop, and nothing of it.
    fn is_local(&self, slot: Slot) -> bool {
        matches!(self.base, Base::Local(own) if own == slot) && self.qualifiers.is_empty()
    }

    /// The node that it is the value of.
    fn node(&self) -> Option<NodeId> {
        match self.base {
            Base::Node(node) if self.qualifiers.is_empty() => Some(node),
            _ => None,
        }
    }
}

#[derive(Debug)]
enum Base {
    Local(Slot),
    Variable(u32),
    Node(NodeId),
    Conditional { condition: NodeId, yes: Box<Attribute>, no: Box<Attribute> },
}

#[derive(Debug)]
struct Qualifier {
    key: QualifierKey,
    optional: bool,
    /// The index of the field in the declaration of its struct, as a hint for finding it.
    hint: usize,
}

#[derive(Debug)]
enum QualifierKey {
    Constant(Value<'static>),
    Attribute(Box<Attribute>),
    Node(NodeId),
}

#[derive(Debug)]
struct Fold {
    range: NodeId,
    first: Slot,
    second: Option<Slot>,
    accumulator: Slot,
    init: NodeId,
    condition: NodeId,
    step: NodeId,
    result: NodeId,
    shape: FoldShape,
}

/// The shape of a loop: that of one of the usual macros, or another.
#[derive(Clone, Copy, Debug)]
enum FoldShape {
    /// `all`, or with `decides` `exists`: the body says whether an element decides.
    Quantifier {
        body: NodeId,
        decides: bool,
    },
    /// `map` and `filter`: a list of what an element is made of.
    Collection {
        condition: Option<NodeId>,
        element: NodeId,
    },
    Other,
}

impl Program {
    /// The variables it speaks of.
    pub fn variables(&self) -> &[SmolStr] {
        &self.variables
    }
}
