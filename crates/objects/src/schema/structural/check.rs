//! Constraints of a schema on a value, beside its type.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use super::Node;
use crate::regexp::{Regexp, Room};
use crate::tree::{Text, Value};

/// One keyword. The order of the variants is the order in which upstream looks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Check {
    AnyOf(Box<[Node]>),
    OneOf(Box<[Node]>),
    AllOf(Box<[Node]>),
    Not(Node),
    MaxLength(i64),
    MinLength(i64),
    Pattern(Arc<Pattern>),
    MultipleOf(Bound),
    Minimum { bound: Bound, exclusive: bool },
    Maximum { bound: Bound, exclusive: bool },
    MinItems(i64),
    MaxItems(i64),
    Enum(Box<[Value]>),
    MinProperties(i64),
    MaxProperties(i64),
    Required(Box<[Text]>),
}

/// A number of a schema, which is no NaN.
#[derive(Clone, Copy, Debug)]
pub struct Bound(pub f64);

impl PartialEq for Bound {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Bound {}

impl Hash for Bound {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

/// A regular expression, compiled when the first value is held to it.
#[derive(Debug)]
pub struct Pattern {
    pub text: Box<str>,
    /// The room of the schema that had the pattern first.
    room: Arc<Room>,
    compiled: OnceLock<Result<Regexp, String>>,
}

impl Pattern {
    pub fn new(text: &str, room: &Arc<Room>) -> Self {
        Self { text: text.into(), room: room.clone(), compiled: OnceLock::new() }
    }

    /// The error is Go's about the expression.
    pub fn compiled(&self) -> Result<&Regexp, &str> {
        let compile = || self.room.compile(&self.text).map_err(|error| error.to_string());
        self.compiled.get_or_init(compile).as_ref().map_err(String::as_str)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

impl Hash for Pattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}
