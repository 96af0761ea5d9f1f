//! JSON as it stands in a text: members in their order, each as often as it is there.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::literals::Literals;
use crate::gotext;
use crate::tree::{Text, Value};

/// The shape of a value; what scalars say is left out, but for numbers that can be spelled in several ways.
#[derive(Debug, PartialEq, Eq)]
pub enum Node {
    Object(Vec<(Text, Node)>),
    Array(Vec<Node>),
    /// A number that is no plain integer of 64 bits, as it is spelled.
    Number(Box<str>),
    Scalar,
}

impl Node {
    /// Reads a text as [`super::parse`] does.
    pub fn parse(body: &[u8]) -> Result<Self, serde_json::Error> {
        super::leniently(&gotext::utf8(body), |text| {
            super::read(text, Shape { numbers: &RefCell::new(Literals::of(text)) })
        })
    }

    /// The value that counts of a member that may be there several times.
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

    /// The members of every object sorted, as Go prints maps.
    pub fn sorted(value: &Value) -> Self {
        Self::ordered(value, None)
    }

    /// As Go prints what a JSON patch has made of `before`: objects that were there are printed as maps, sorted; new
    /// ones stand as they were sent.
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

#[derive(Clone, Copy)]
struct Shape<'a> {
    /// Those of the text that have not been read yet.
    numbers: &'a RefCell<Literals<'a>>,
}

impl Shape<'_> {
    fn plain_number(self) -> Node {
        self.numbers.borrow_mut().next();
        Node::Scalar
    }
}

impl<'de> DeserializeSeed<'de> for Shape<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Shape<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Node, E> {
        Ok(self.plain_number())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Node, E> {
        Ok(self.plain_number())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
        Ok(self.numbers.borrow_mut().next().map_or(Node::Scalar, |spelling| Node::Number(spelling.into())))
    }

    fn visit_str<E>(self, _: &str) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Node::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Node, A::Error> {
        let mut object = Vec::new();
        while let Some(name) = members.next_key::<Text>()? {
            object.push((name, members.next_value_seed(self)?));
        }
        Ok(Node::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_spelling() {
        let text = br#"{"1e1":[-1,1E3,"2e2\"3e3",{"a":-0,"a":1.50}],"b":18446744073709551615,"c":-1e-2,
            "d":99999999999999999999,"e":null,"f":0.0}"#;
        let node = Node::parse(text).expect("JSON");
        let spelled = |node: Option<&Node>| match node {
            Some(Node::Number(spelling)) => spelling.to_string(),
            other => format!("{other:?}"),
        };
        let list = node.member("1e1").expect("a list");
        assert_eq!(list.item(0), Some(&Node::Scalar));
        assert_eq!(spelled(list.item(1)), "1E3");
        assert_eq!(list.item(2), Some(&Node::Scalar));
        assert_eq!(spelled(list.item(3).and_then(|object| object.member("a"))), "1.50");
        assert_eq!(node.member("b"), Some(&Node::Scalar));
        for (name, want) in [("c", "-1e-2"), ("d", "99999999999999999999"), ("f", "0.0")] {
            assert_eq!(spelled(node.member(name)), want);
        }
        assert_eq!(spelled(Node::parse(b"-0").ok().as_ref()), "-0");
    }
}
