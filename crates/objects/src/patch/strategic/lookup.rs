//! Looks up in the types how the fields of a patch are merged.

use crate::patch::PatchError;
use crate::schema::types::{Cardinality, Field, FieldKind, Message, MessageId, Strategic, Types};

/// The type of a value, as far as a patch needs it.
#[derive(Clone, Copy)]
pub(super) enum Shape<'a> {
    Struct(&'a Message),
    /// Any other type, by Go's name for it.
    Other(&'static str),
}

/// A field that was looked up.
#[derive(Clone, Copy)]
pub(super) struct FieldMerge<'a> {
    /// The type of the field; for a list, the type of its elements.
    pub shape: Shape<'a>,
    strategic: Option<&'a Strategic>,
}

impl<'a> Shape<'a> {
    pub fn of_message(types: &'a Types, message: MessageId) -> Self {
        Self::Struct(types.message(message))
    }

    /// Looks up a field that holds an object.
    pub fn field(self, name: &str, types: &'a Types) -> Result<FieldMerge<'a>, PatchError> {
        let field = self.find(name, types)?;
        let shape = match field.cardinality {
            Cardinality::Single => Self::of_kind(field.kind, types),
            Cardinality::List => Self::Other("slice"),
            Cardinality::Map => Self::Other("map"),
        };
        Ok(FieldMerge { shape, strategic: field.strategic })
    }

    /// Looks up a field that holds a list.
    pub fn list(self, name: &str, types: &'a Types) -> Result<FieldMerge<'a>, PatchError> {
        let field = self.find(name, types)?;
        if field.cardinality != Cardinality::List {
            let kind = match self.field(name, types)?.shape {
                Self::Struct(_) => "struct",
                Self::Other(word) => word,
            };
            return Err(PatchError::Failed(format!("expected slice or array type, but got: {kind}")));
        }
        Ok(FieldMerge { shape: Self::of_kind(field.kind, types), strategic: field.strategic })
    }

    /// Go's name of the type, as messages use it.
    pub fn kind_name(self) -> &'static str {
        match self {
            Self::Struct(_) => "struct",
            Self::Other(word) => word,
        }
    }

    fn of_kind(kind: FieldKind, types: &'a Types) -> Self {
        match kind {
            FieldKind::Message(id) => Self::Struct(types.message(id)),
            FieldKind::Bool => Self::Other("bool"),
            FieldKind::Int32 => Self::Other("int32"),
            FieldKind::Int64 => Self::Other("int64"),
            FieldKind::Double => Self::Other("float64"),
            FieldKind::String => Self::Other("string"),
            FieldKind::Bytes => Self::Other("slice"),
        }
    }

    fn find(self, name: &str, types: &'a Types) -> Result<&'a Field, PatchError> {
        let message = match self {
            Self::Struct(message) => message,
            Self::Other(word) => {
                return Err(PatchError::Failed(format!(
                    "merging an object in json but data type is not struct, instead is: {word}"
                )));
            }
        };
        let exact = |field: &Field| &*field.json_name == name;
        let folded = |field: &Field| field.json_name.eq_ignore_ascii_case(name);
        search(message, types, &exact).or_else(|| search(message, types, &folded)).ok_or_else(|| {
            PatchError::Failed(format!(
                "unable to find api field in struct {} for the json field \"{name}\"",
                message.name
            ))
        })
    }
}

/// Searches a field. Fields of inline structs count as fields of their parent.
fn search<'a>(message: &'a Message, types: &'a Types, wanted: &impl Fn(&Field) -> bool) -> Option<&'a Field> {
    message.fields.iter().find_map(|field| match field.kind {
        FieldKind::Message(inner) if field.inline => search(types.message(inner), types, wanted),
        _ => wanted(field).then_some(field),
    })
}

impl<'a> FieldMerge<'a> {
    /// How a field that both sides have is merged; empty by default.
    pub fn strategy(&self) -> Result<&'a str, PatchError> {
        let words = self.strategic.map_or("", |strategic| strategic.strategy);
        match words.split(',').collect::<Vec<_>>()[..] {
            [""] | ["retainKeys"] => Ok(""),
            [one] => Ok(one),
            [one, "retainKeys"] | ["retainKeys", one] => Ok(one),
            _ => Err(PatchError::Failed(format!("unexpected patch strategies: [{words}]"))),
        }
    }

    /// The field that identifies list elements; empty if there is none.
    pub fn merge_key(&self) -> &'a str {
        self.strategic.map_or("", |strategic| strategic.merge_key)
    }
}
