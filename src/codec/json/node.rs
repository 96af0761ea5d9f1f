//! JSON as it stands in a text: members in their order, each as often as it is there.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// The shape of a value; what scalars say is left out.
#[derive(Debug, PartialEq, Eq)]
pub enum Node {
    Object(Vec<(String, Node)>),
    Array(Vec<Node>),
    Scalar,
}

impl Node {
    /// Reads a text as [`super::parse`] does.
    pub fn parse(body: &[u8]) -> Result<Self, serde_json::Error> {
        super::with_text(body, Shape)
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
                let node = |(name, value): (&String, &Value)| {
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
struct Shape;

impl<'de> DeserializeSeed<'de> for Shape {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Shape {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
        Ok(Node::Scalar)
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
        while let Some(name) = members.next_key::<String>()? {
            object.push((name, members.next_value_seed(self)?));
        }
        Ok(Node::Object(object))
    }
}
