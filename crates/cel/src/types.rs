//! The types of values in an expression.

use std::fmt;
use std::sync::Arc;

use smol_str::SmolStr;

/// Types of more parts are taken for unknown: `map(x, {x: x})` doubles one with a dozen letters.
const LARGEST: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// A type that is known only when the expression is evaluated.
    Dyn,
    Any,
    /// The type of an expression that has an error, so that the error is told once.
    Error,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Timestamp,
    Duration,
    /// A type variable: its type is still to be found out.
    Param(SmolStr),
    /// Something with fields.
    Struct(SmolStr),
    Applied(Arc<Applied>),
}

/// A type made of others.
#[derive(Debug, PartialEq, Eq)]
pub struct Applied {
    pub of: Generic,
    pub to: Vec<Type>,
    /// Whether something in it is to be found out.
    pub open: bool,
    parts: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Generic {
    List,
    Map,
    Type,
    /// Something without fields.
    Opaque(SmolStr),
}

pub const OPTIONAL: &str = "optional_type";

impl Type {
    pub fn applied(of: Generic, to: Vec<Type>) -> Self {
        let inner = || to.iter().filter_map(|part| part.as_applied());
        let parts = 1 + to.len() + inner().map(|part| part.parts).sum::<usize>();
        if parts > LARGEST {
            return Type::Dyn;
        }
        let open = to.iter().any(Type::is_open);
        Type::Applied(Arc::new(Applied { of, to, open, parts }))
    }

    pub fn list(of: Type) -> Self {
        Self::applied(Generic::List, vec![of])
    }

    pub fn map(keys: Type, values: Type) -> Self {
        Self::applied(Generic::Map, vec![keys, values])
    }

    /// The type of a type.
    pub fn kind(of: Type) -> Self {
        Self::applied(Generic::Type, vec![of])
    }

    pub fn optional(of: Type) -> Self {
        Self::applied(Generic::Opaque(OPTIONAL.into()), vec![of])
    }

    pub fn as_applied(&self) -> Option<&Applied> {
        match self {
            Type::Applied(applied) => Some(applied),
            _ => None,
        }
    }

    pub fn is_open(&self) -> bool {
        match self {
            Type::Param(_) => true,
            Type::Applied(applied) => applied.open,
            _ => false,
        }
    }

    pub fn is_unknown(&self) -> bool {
        matches!(self, Type::Dyn | Type::Any)
    }

    /// The type of values in an optional; `None` for other types.
    pub fn as_optional(&self) -> Option<&Type> {
        match self.as_applied()? {
            Applied { of: Generic::Opaque(name), to, .. } if name == OPTIONAL => to.first(),
            _ => None,
        }
    }

    /// Reads what cel-go calls it; one letter is to be found out. A name with brackets and nothing in them has no fields.
    pub fn parse(text: &str) -> Self {
        let Some((name, inner)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) else {
            return match text {
                "dyn" => Type::Dyn,
                "google.protobuf.Any" => Type::Any,
                "null_type" => Type::Null,
                "bool" => Type::Bool,
                "int" => Type::Int,
                "uint" => Type::Uint,
                "double" => Type::Double,
                "string" => Type::String,
                "bytes" => Type::Bytes,
                "google.protobuf.Timestamp" => Type::Timestamp,
                "google.protobuf.Duration" => Type::Duration,
                "type" => Type::applied(Generic::Type, Vec::new()),
                _ if text.len() == 1 => Type::Param(text.into()),
                _ => Type::Struct(text.into()),
            };
        };
        let of = match name {
            "list" => Generic::List,
            "map" => Generic::Map,
            "type" => Generic::Type,
            _ => Generic::Opaque(name.into()),
        };
        Self::applied(of, Self::parse_list(inner))
    }

    /// Several, with commas between them.
    pub fn parse_list(text: &str) -> Vec<Self> {
        let (mut types, mut depth, mut from) = (Vec::new(), 0, 0);
        for (at, letter) in text.char_indices() {
            match letter {
                '(' => depth += 1,
                ')' => depth -= 1,
                ',' if depth == 0 => {
                    types.push(Self::parse(text[from..at].trim()));
                    from = at + 1;
                }
                _ => {}
            }
        }
        if !text[from..].is_empty() {
            types.push(Self::parse(text[from..].trim()));
        }
        types
    }

    /// The type's name in the checker's messages.
    pub fn short(&self) -> String {
        self.print(true)
    }

    fn print(&self, short: bool) -> String {
        let (name, long) = match self {
            Type::Dyn => ("dyn", None),
            Type::Any => ("any", Some("google.protobuf.Any")),
            Type::Error => ("!error!", Some("error")),
            Type::Null => ("null", Some("null_type")),
            Type::Bool => ("bool", None),
            Type::Int => ("int", None),
            Type::Uint => ("uint", None),
            Type::Double => ("double", None),
            Type::String => ("string", None),
            Type::Bytes => ("bytes", None),
            Type::Timestamp => ("timestamp", Some("google.protobuf.Timestamp")),
            Type::Duration => ("duration", Some("google.protobuf.Duration")),
            Type::Param(name) | Type::Struct(name) => (&**name, None),
            Type::Applied(applied) => {
                let name = match &applied.of {
                    Generic::List => "list",
                    Generic::Map => "map",
                    Generic::Type => "type",
                    Generic::Opaque(name) => name,
                };
                let to: Vec<String> = applied.to.iter().map(|part| part.print(short)).collect();
                return if to.is_empty() { name.to_owned() } else { format!("{name}({})", to.join(", ")) };
            }
        };
        (if short { name } else { long.unwrap_or(name) }).to_owned()
    }
}

/// The type's name as cel-go prints it, except in the checker's messages.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.print(false))
    }
}
