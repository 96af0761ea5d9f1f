//! JSON in the form of its text: members in their order, including repeated ones.

use serde::de::Error as _;

use super::exact::{self, Container, Tokens};
use crate::gotext;
use crate::tree::{Text, Value};

/// The deepest nesting, which is that of `serde_json`.
const MAX_DEPTH: usize = 127;

/// The structure of a value. Scalars have no content, except numbers that can be spelled in several ways.
#[derive(Debug, PartialEq, Eq)]
pub enum Node {
    Object(Vec<(Text, Node)>),
    Array(Vec<Node>),
    /// The spelling of a number that is not a plain 64-bit integer.
    Number(Box<str>),
    Scalar,
}

impl Node {
    /// Parses a text that [`super::parse`] accepts.
    pub fn parse(body: &[u8]) -> Result<Self, serde_json::Error> {
        let mut builder = Builder::default();
        exact::scan(gotext::utf8(body).as_bytes(), MAX_DEPTH, &mut builder)
            .map_err(serde_json::Error::custom)?;
        Ok(builder.value.unwrap_or(Self::Scalar))
    }

    /// The value of a member; of a repeated member, the last one.
    pub fn member(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => {
                members.iter().rev().find(|(each, _)| each == name).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    pub fn item(&self, index: usize) -> Option<&Self> {
        match self {
            Self::Array(items) => items.get(index),
            _ => None,
        }
    }

    /// The node of a value with the members of every object sorted, as Go prints maps.
    pub fn sorted(value: &Value) -> Self {
        Self::ordered(value, None)
    }

    /// The node of a value that a JSON patch has made of `before`, as Go prints it: objects that existed before are
    /// printed as maps, sorted; new ones keep their order.
    pub fn patched(value: &Value, before: &Value) -> Self {
        Self::ordered(value, Some(before))
    }

    fn ordered(value: &Value, before: Option<&Value>) -> Self {
        match value {
            Value::Object(members) => {
                let node = |(name, value): (&Text, &Value)| {
                    let before = before.map(|before| before.get(name).unwrap_or(&Value::Null));
                    (name.clone(), Self::ordered(value, before))
                };
                let mut members: Vec<_> = members.iter().map(node).collect();
                if before.is_none_or(Value::is_object) {
                    members.sort_unstable_by(|one, other| one.0.cmp(&other.0));
                }
                Self::Object(members)
            }
            Value::Array(items) => {
                let at = |index: usize| before.map(|before| before.get(index).unwrap_or(&Value::Null));
                let items = items.iter().enumerate();
                Self::Array(items.map(|(index, item)| Self::ordered(item, at(index))).collect())
            }
            _ => Self::Scalar,
        }
    }
}

/// A value, some of whose containers are still open.
#[derive(Default)]
struct Builder {
    open: Vec<Node>,
    /// The names of those members in open objects whose values are still missing.
    names: Vec<Text>,
    value: Option<Node>,
}

impl Builder {
    fn add(&mut self, node: Node) {
        match self.open.last_mut() {
            Some(Node::Object(members)) => members.push((self.names.pop().unwrap_or_default(), node)),
            Some(Node::Array(items)) => items.push(node),
            _ => self.value = Some(node),
        }
    }
}

impl Tokens for Builder {
    fn begin(&mut self, container: Container) {
        self.open.push(match container {
            Container::Object => Node::Object(Vec::new()),
            Container::Array => Node::Array(Vec::new()),
        });
    }

    fn key(&mut self, spelling: &[u8]) {
        let spelling = std::str::from_utf8(spelling).unwrap_or_default();
        self.names.push(super::leniently(spelling, |text| serde_json::from_str(text)).unwrap_or_default());
    }

    fn scalar(&mut self, spelling: &[u8]) {
        self.add(match std::str::from_utf8(spelling) {
            Ok(number)
                if number.starts_with(|first: char| first == '-' || first.is_ascii_digit())
                    && !is_plain_integer(number) =>
            {
                Node::Number(number.into())
            }
            _ => Node::Scalar,
        });
    }

    fn end(&mut self) {
        if let Some(ended) = self.open.pop() {
            self.add(ended);
        }
    }
}

/// Whether a number is a 64-bit integer; minus zero is not.
fn is_plain_integer(number: &str) -> bool {
    number != "-0" && (number.parse::<u64>().is_ok() || number.parse::<i64>().is_ok())
}
