//! JSONPath as client-go evaluates it (`k8s.io/client-go/util/jsonpath`), with missing keys allowed: what printer columns
//! of custom resources are declared with.
//!
//! A path is a template of which only the first result counts, so that is all that is computed of what follows it: whether
//! it fails. Loops (`range`, `end`) have no result here. Work is bounded by a [`Budget`]: a path for which it does not suffice
//! has no result.

mod comparison;
mod evaluate;
mod parse;
use crate::tree::{Value, work};

/// How many more values paths may look at.
#[derive(Debug)]
pub struct Budget(usize);

impl Budget {
    pub fn of(steps: usize) -> Self {
        Self(steps)
    }

    /// `None` when there is not so much left, and then nothing is.
    fn spend(&mut self, steps: usize) -> Option<()> {
        work::count(steps);
        let left = self.0.checked_sub(steps);
        self.0 = left.unwrap_or_default();
        left.map(drop)
    }
}

/// A parsed path.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    /// Each is evaluated on the whole object.
    parts: Vec<Node>,
}

/// Why a text is no path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoPath(String);

/// A step from the values found so far to the next ones.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    /// Steps one after another.
    List(Vec<Node>),
    Text(String),
    Field(String),
    Slice(Slice),
    Filter(Box<Filter>),
    Integer(i64),
    Float(f64),
    Bool(bool),
    Wildcard,
    /// `..`: a value and all containers below it.
    Recursive,
    /// The results of several lists of steps.
    Union(Vec<Node>),
    /// `range`, `end`, or a word that means nothing.
    Identifier,
}

/// `[from:to:step]`; an index is a slice of one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Slice {
    from: Option<i64>,
    to: Option<i64>,
    /// Whether `to` was not written, but follows from an index.
    is_index: bool,
    step: Option<i64>,
}

/// `[?(left operator right)]`
#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: Node,
    /// The operator as written; `None` asks whether `left` finds anything.
    compared: Option<(String, Node)>,
}

/// The first result of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Found<'a> {
    /// A value of the object.
    Value(&'a Value),
    /// A text of the path itself.
    Text(&'a str),
    /// A number of the path itself, which upstream holds in a type of its own.
    Integer(i64),
    Float(f64),
    Bool(bool),
    /// A byte of a text, as a wildcard finds it.
    Byte(u8),
}

impl JsonPath {
    /// Reads a path without its braces: `.spec.replicas`.
    pub fn parse(path: &str) -> Result<Self, NoPath> {
        Ok(Self { parts: parse::template(&format!("{{{path}}}"), 0)? })
    }

    /// The first of all that the path finds; `None` where it finds nothing or fails.
    pub fn first<'a>(&'a self, object: &'a Value, budget: &mut Budget) -> Option<Found<'a>> {
        evaluate::first(&self.parts, object, budget)
    }
}
