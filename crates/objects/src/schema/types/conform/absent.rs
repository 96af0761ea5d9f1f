//! Members that a text does not have, and zero values, as Go prints them.

use super::{Conformer, MANAGERS};
use crate::schema::types::{Absence, Cardinality, Field, FieldKind, Format, MessageId};
use crate::tree::{Map, Value};

/// Lists of which an empty one is not as none, by message and member: it stays until validation refuses it, or the kind's
/// strategy takes it away.
const EMPTY_IS_SAID: [(&str, &str); 3] = [
    ("HPAScalingRules", "policies"),
    ("PodStatus", "resourceClaimStatuses"),
    ("PodStatus", "nodeAllocatableResourceClaimStatuses"),
];

impl<'a, 't> Conformer<'a, 't> {
    /// Whether Go prints a value that was sent.
    pub(super) fn is_printed(&self, field: &Field, value: &Value) -> bool {
        let always = field.pointer || field.always;
        match (field.cardinality, field.kind, value) {
            (Cardinality::Single, FieldKind::Message(id), value) => {
                self.types.message(id).format != Format::List
                    || value.as_array().is_some_and(|list| !list.is_empty())
            }
            (Cardinality::Single, FieldKind::Bytes, Value::String(text)) => !text.is_empty(),
            (_, _, Value::String(text)) => always || !text.is_empty(),
            (_, _, Value::Bool(value)) => always || *value,
            (_, _, Value::Number(number)) => always || number.as_f64() != Some(0.0),
            // An empty list is not stored. The exception is an empty `managedFields`, which ends the tracking and is
            // never stored either.
            (_, _, Value::Array(items)) => !items.is_empty() || &*field.json_name == MANAGERS,
            (_, _, Value::Object(entries)) => !entries.is_empty(),
            (_, _, Value::Null) => false,
        }
    }

    /// The value that Go prints for a member that was not sent, if any.
    pub(super) fn absent(&self, field: &Field) -> Option<Value> {
        match field.absence {
            Absence::Silent => None,
            Absence::Null => Some(Value::Null),
            Absence::Zero => {
                let zero = self.zero(field.kind);
                (!(field.omit_zero && zero.is_null())).then_some(zero)
            }
        }
    }

    pub(super) fn zero(&self, kind: FieldKind) -> Value {
        match kind {
            FieldKind::Bool => false.into(),
            FieldKind::Int32 | FieldKind::Int64 | FieldKind::Double => 0.into(),
            FieldKind::String | FieldKind::Bytes => "".into(),
            FieldKind::Message(id) => {
                let message = self.types.message(id);
                match message.format {
                    Format::Object => Value::Object(self.zero_members(id)),
                    Format::Quantity => "0".into(),
                    Format::IntOrString => 0.into(),
                    Format::List => Value::Array(Vec::new()),
                    _ => Value::Null,
                }
            }
        }
    }

    fn zero_members(&self, id: MessageId) -> Map {
        let fields = self.types.message(id).members.iter().map(|member| self.types.field(member));
        fields.filter_map(|field| Some((field.json_name.clone(), self.absent(field)?))).collect()
    }
}

pub(super) fn is_said_empty(message: &str, member: &str, value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.is_empty()) && EMPTY_IS_SAID.contains(&(message, member))
}
