//! Paths of scalars, as the schema of a kind has them.

use std::borrow::Cow;

use super::seen::Seen;
use crate::schema::kind::{Kind, Shape};
use crate::schema::structural::{Additional, SchemaNode, ValueType};
use crate::schema::types::{Cardinality, Field, FieldKind, Format, MessageId, Types};
use crate::tree::Text;

/// A dotted path to a scalar. What follows the name of a map is one of its keys, dots and all.
#[derive(Debug)]
pub struct ScalarPath {
    members: Vec<Text>,
    pub kind: ScalarKind,
    /// The text of a missing value: Go leaves numbers and booleans out that are zero.
    zero: &'static str,
}

/// The order of a scalar's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarKind {
    Text,
    Time,
    /// A number, a quantity, or a text where both may be.
    Number,
}

impl ScalarPath {
    /// `None` if the schema has no scalar there, or only below a list.
    pub fn of(kind: &Kind, path: &str) -> Option<Self> {
        let mut members = Vec::new();
        let (kind, zero) = match &kind.shape {
            Shape::Go(shape) => in_message(&shape.types, shape.message, path, &mut members)?,
            Shape::Structural(shape) => match path.strip_prefix("metadata.") {
                Some(rest) => {
                    members.push("metadata".into());
                    in_message(&shape.metadata.types, shape.metadata.message, rest, &mut members)?
                }
                None => (in_node(&shape.root, path, &mut members)?, ""),
            },
            Shape::Opaque => return None,
        };
        Some(Self { members, kind, zero })
    }

    /// The text of the value; that of zero, or an empty one, if there is none.
    pub fn text<'o>(&self, seen: &Seen<'o>) -> Cow<'o, str> {
        self.found(seen).unwrap_or(Cow::Borrowed(self.zero))
    }

    /// The text of the value; `None` if there is none.
    pub fn found<'o>(&self, seen: &Seen<'o>) -> Option<Cow<'o, str>> {
        seen.scalar(&self.members)
    }
}

fn in_message(
    types: &Types,
    message: MessageId,
    path: &str,
    members: &mut Vec<Text>,
) -> Option<(ScalarKind, &'static str)> {
    let (name, rest) = split(path);
    let fields = types.message(message).members.iter().map(|member| types.field(member));
    let field = fields.into_iter().find(|field| field.json_name == name)?;
    members.push(field.json_name.clone());
    match (field.cardinality, rest) {
        (Cardinality::Single, None) => Some((scalar(types, field)?, zero(field))),
        (Cardinality::Single, Some(rest)) => match field.kind {
            FieldKind::Message(inner) if types.message(inner).format == Format::Object => {
                in_message(types, inner, rest, members)
            }
            _ => None,
        },
        (Cardinality::Map, Some(key)) => {
            members.push(key.into());
            Some((scalar(types, field)?, ""))
        }
        (Cardinality::Map, None) | (Cardinality::List, _) => None,
    }
}

fn scalar(types: &Types, field: &Field) -> Option<ScalarKind> {
    Some(match field.kind {
        FieldKind::Bool | FieldKind::String | FieldKind::Bytes => ScalarKind::Text,
        FieldKind::Int32 | FieldKind::Int64 | FieldKind::Double => ScalarKind::Number,
        FieldKind::Message(inner) => match types.message(inner).format {
            Format::Time | Format::MicroTime => ScalarKind::Time,
            Format::Quantity | Format::IntOrString => ScalarKind::Number,
            _ => return None,
        },
    })
}

fn zero(field: &Field) -> &'static str {
    match field.kind {
        _ if field.pointer => "",
        FieldKind::Bool => "false",
        FieldKind::Int32 | FieldKind::Int64 | FieldKind::Double => "0",
        FieldKind::String | FieldKind::Bytes | FieldKind::Message(_) => "",
    }
}

fn in_node(node: &SchemaNode, path: &str, members: &mut Vec<Text>) -> Option<ScalarKind> {
    let (name, rest) = split(path);
    if let Some(property) = node.properties.get(name) {
        members.push(name.into());
        return match rest {
            None => scalar_of_node(property),
            Some(rest) => in_node(property, rest, members),
        };
    }
    match &node.additional {
        Additional::Schema(values) => {
            members.push(path.into());
            scalar_of_node(values)
        }
        Additional::Unsaid | Additional::Allowed(_) => None,
    }
}

fn scalar_of_node(node: &SchemaNode) -> Option<ScalarKind> {
    Some(match node.value_type {
        _ if node.int_or_string => ScalarKind::Number,
        ValueType::Integer | ValueType::Number => ScalarKind::Number,
        ValueType::Boolean => ScalarKind::Text,
        ValueType::String if node.format == "date-time" => ScalarKind::Time,
        ValueType::String => ScalarKind::Text,
        ValueType::Any | ValueType::Object | ValueType::Array | ValueType::Odd => return None,
    })
}

fn split(path: &str) -> (&str, Option<&str>) {
    path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)))
}
