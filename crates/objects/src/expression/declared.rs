//! The types of a kind's objects, as expressions are checked with them: those that upstream finds in OpenAPI.

use std::sync::Arc;

use rowplane_cel::decl::{Decl, FieldDecl, Kind as DeclKind, ListDecl, ListKind, ObjectDecl};

use super::escape;
use crate::schema::kind::{Kind, Shape};
use crate::schema::structural::{Additional, SchemaNode, Structural, ValueType};
use crate::schema::types::{Cardinality, Field, FieldKind, Format, MessageId, Types};

/// The name of structs until all of them are named.
const UNNAMED: &str = "object";
/// A message of any JSON; it has no type that expressions could speak of.
const ANY_JSON: &str = "JSON";

/// The part of quantities that expressions may speak of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantities {
    /// Nothing: OpenAPI has no type for them, so that upstream's checks do not know them.
    Unknown,
    /// A text or a number.
    Dynamic,
}

/// `None` if nothing is known of the kind's objects.
pub fn of_kind(kind: &Kind, quantities: Quantities) -> Option<Decl> {
    let decl = match &kind.shape {
        Shape::Go(shape) => Messages::of(&shape.types, quantities).message(shape.message)?,
        Shape::Structural(shape) => custom(shape)?,
        Shape::Opaque => return None,
    };
    // No identifier is to mean the type: upstream adds a number, too.
    Some(decl.named(&format!("{}0", kind.gvk.kind)))
}

fn object(fields: Vec<FieldDecl>) -> Decl {
    Decl::of(DeclKind::Object(Arc::new(ObjectDecl::new(UNNAMED, fields))))
}

fn list(items: Decl) -> Decl {
    Decl::of(DeclKind::List(Arc::new(ListDecl { items, kind: ListKind::Atomic })))
}

fn field(name: &str, decl: Decl) -> FieldDecl {
    FieldDecl { name: name.into(), escaped: escape(name).map(Into::into), decl }
}

/// `kind` and `apiVersion`.
fn claims() -> [FieldDecl; 2] {
    ["kind", "apiVersion"].map(|name| field(name, Decl::of(DeclKind::String)))
}

struct Messages<'t> {
    types: &'t Types,
    /// The messages around, which may contain themselves.
    around: Vec<MessageId>,
    quantities: Quantities,
}

impl<'t> Messages<'t> {
    fn of(types: &'t Types, quantities: Quantities) -> Self {
        Self { types, around: Vec::new(), quantities }
    }

    /// `None` for what expressions cannot speak of. Recurses as deep as types nest: a type within itself is an object of
    /// which nothing is known.
    fn message(&mut self, id: MessageId) -> Option<Decl> {
        let message = self.types.message(id);
        match message.format {
            _ if self.around.contains(&id) => Some(object(Vec::new())),
            Format::Object => {
                self.around.push(id);
                let types = self.types;
                let mut fields: Vec<FieldDecl> = message
                    .members
                    .iter()
                    .map(|member| types.field(member))
                    .filter_map(|member| Some(field(&member.json_name, self.field(member)?)))
                    .collect();
                if message.has_claims() {
                    fields.extend(claims());
                }
                self.around.pop();
                Some(object(fields))
            }
            Format::Time | Format::MicroTime => Some(Decl::of(DeclKind::DateTime)),
            Format::IntOrString => Some(Decl::of(DeclKind::IntOrString)),
            Format::Quantity if self.quantities == Quantities::Dynamic => {
                Some(Decl::of(DeclKind::IntOrString))
            }
            Format::Raw if message.name != ANY_JSON => Some(object(Vec::new())),
            Format::List => message.fields.first().and_then(|field| self.field(field)),
            Format::Raw
            | Format::Quantity
            | Format::SchemaOrBool
            | Format::SchemaOrArray
            | Format::SchemaOrStrings => None,
        }
    }

    fn field(&mut self, field: &Field) -> Option<Decl> {
        let single = match field.kind {
            FieldKind::Bool => Decl::of(DeclKind::Bool),
            FieldKind::Int32 | FieldKind::Int64 => Decl::of(DeclKind::Int),
            FieldKind::Double => Decl::of(DeclKind::Double),
            FieldKind::String => Decl::of(DeclKind::String),
            FieldKind::Bytes => Decl::of(DeclKind::Bytes),
            FieldKind::Message(id) => self.message(id)?,
        };
        Some(match field.cardinality {
            Cardinality::Single => single,
            Cardinality::List => list(single),
            Cardinality::Map => Decl::of(DeclKind::Map(Arc::new(single))),
        })
    }
}

/// A custom resource's objects have kind, apiVersion and the metadata of all objects.
fn custom(shape: &Structural) -> Option<Decl> {
    let metadata =
        Messages::of(&shape.metadata.types, Quantities::Unknown).message(shape.metadata.message)?;
    let mut fields = properties(&shape.root);
    fields.retain(|field| !["kind", "apiVersion", "metadata"].contains(&field.name.as_str()));
    fields.extend(claims());
    fields.push(field("metadata", metadata));
    Some(object(fields))
}

fn properties(node: &SchemaNode) -> Vec<FieldDecl> {
    let fields = node.properties.iter().filter_map(|(name, below)| Some(field(name, schema(below)?)));
    fields.collect()
}

/// `None` for what expressions cannot speak of. Recurses as deep as the schema nests, which its reader has limited.
fn schema(node: &SchemaNode) -> Option<Decl> {
    let kind = match node.value_type {
        _ if node.int_or_string => DeclKind::IntOrString,
        ValueType::Object => match &node.additional {
            Additional::Schema(values) => DeclKind::Map(Arc::new(schema(values)?)),
            _ => return Some(object(members(node))),
        },
        ValueType::Array => return node.items.as_ref().and_then(|items| schema(items)).map(list),
        ValueType::String => match node.format.as_str() {
            "byte" => DeclKind::Bytes,
            "duration" => DeclKind::Duration,
            "date" => DeclKind::Date,
            "date-time" => DeclKind::DateTime,
            _ => DeclKind::String,
        },
        ValueType::Boolean => DeclKind::Bool,
        ValueType::Number => DeclKind::Double,
        ValueType::Integer => DeclKind::Int,
        ValueType::Any | ValueType::Odd => return None,
    };
    Some(Decl::of(kind))
}

/// Embedded objects have kind, apiVersion and a name, whatever is said of them.
fn members(node: &SchemaNode) -> Vec<FieldDecl> {
    let mut fields = properties(node);
    if node.embedded {
        fields.retain(|field| !["kind", "apiVersion", "metadata"].contains(&field.name.as_str()));
        fields.extend(claims());
        let names = ["name", "generateName"].map(|name| field(name, Decl::of(DeclKind::String)));
        fields.push(field("metadata", object(names.to_vec())));
    }
    fields
}
