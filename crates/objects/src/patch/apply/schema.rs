//! How values of a kind are merged.
//!
//! A value is a scalar, a list or a map. A type tells which of these a value may be, and how lists and maps are merged.

mod structural;

use std::collections::HashMap;
use std::sync::Arc;

use super::path::PathElement;
use crate::gotext;
use crate::schema::kind::{Kind, Shape};
use crate::schema::types::{Cardinality, Field, FieldKind, Format, Merging, MessageId, Role, Types};
use crate::tree::Value;

/// The types of one kind.
#[derive(Debug)]
pub struct Schema {
    atoms: Vec<Atom>,
    root: TypeId,
}

/// The index of a type in its [`Schema`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeId(u32);

/// The type of values without a declared type: objects are merged by member, lists are atomic.
pub const DEDUCED: TypeId = TypeId(0);
/// The type of atomic values of any form.
pub const ATOMIC: TypeId = TypeId(1);

/// The forms that a value of this type may have. The one that fits the value is used.
#[derive(Clone, Debug, Default)]
pub struct Atom {
    pub scalar: Option<Scalar>,
    pub list: Option<ListType>,
    pub map: Option<MapType>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    Numeric,
    String,
    Boolean,
    Untyped,
}

#[derive(Clone, Debug)]
pub struct ListType {
    pub element: TypeId,
    pub relation: Relation,
}

/// How the elements of a list are identified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relation {
    /// They are not: the list is a single value.
    Atomic,
    Set,
    Keyed(Box<[Arc<str>]>),
}

#[derive(Clone, Debug)]
pub struct MapType {
    pub fields: HashMap<Arc<str>, FieldType>,
    /// The type of values under keys that are not declared fields; `None` if there may not be any.
    pub element: Option<TypeId>,
    pub atomic: bool,
}

#[derive(Clone, Debug)]
pub struct FieldType {
    pub id: TypeId,
    /// The value of an absent field, if the field is a list key.
    pub default: Option<Value>,
}

/// The form in which a value is treated.
#[derive(Clone, Copy, Debug)]
pub enum Form<'a> {
    Scalar(Scalar),
    List(&'a ListType),
    Map(&'a MapType),
}

impl Schema {
    /// The schema of a kind; `None` if its fields are unknown.
    pub fn of(kind: &Kind) -> Option<Self> {
        let (builder, root) = match &kind.shape {
            Shape::Go(shape) => {
                let mut builder = Builder::new(&shape.types);
                let root = builder.message(shape.message);
                (builder, root)
            }
            Shape::Structural(shape) => {
                let mut builder = Builder::new(&shape.metadata.types);
                let root = builder.structural(shape);
                (builder, root)
            }
            Shape::Opaque => return None,
        };
        Some(Self { atoms: builder.atoms, root })
    }

    /// The type of the whole object.
    pub fn root(&self) -> TypeId {
        self.root
    }

    pub fn atom(&self, id: TypeId) -> &Atom {
        &self.atoms[id.0 as usize]
    }

    /// The form in which `value` is treated. Null, and values that do not fit, are treated as any form that the type
    /// allows.
    pub fn form(&self, id: TypeId, value: &Value) -> Form<'_> {
        let atom = self.atom(id);
        match (value, &atom.scalar, &atom.list, &atom.map) {
            (Value::Bool(_) | Value::Number(_) | Value::String(_), Some(scalar), ..) => Form::Scalar(*scalar),
            (Value::Array(_), _, Some(list), _) => Form::List(list),
            (_, _, _, Some(map)) => Form::Map(map),
            (_, Some(scalar), ..) => Form::Scalar(*scalar),
            (_, None, Some(list), _) => Form::List(list),
            (_, None, None, None) => Form::Scalar(Scalar::Untyped),
        }
    }
}

impl MapType {
    /// The type of a member. Unvalidated objects may have members that the type does not declare.
    pub fn member(&self, name: &str) -> TypeId {
        self.fields.get(name).map(|field| field.id).or(self.element).unwrap_or(DEDUCED)
    }

    /// The step to a member, and its type.
    pub fn step(&self, name: &str) -> (PathElement, TypeId) {
        match self.fields.get_key_value(name) {
            Some((name, field)) => (PathElement::Field(name.clone()), field.id),
            None => (PathElement::Field(name.into()), self.element.unwrap_or(DEDUCED)),
        }
    }

    pub fn declares(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }
}

impl PartialEq for Form<'_> {
    /// Whether both are the same form of the same type.
    fn eq(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

fn deduced() -> Atom {
    Atom {
        scalar: Some(Scalar::Untyped),
        list: Some(ListType { element: ATOMIC, relation: Relation::Atomic }),
        map: Some(MapType { fields: HashMap::new(), element: Some(DEDUCED), atomic: false }),
    }
}

fn atomic() -> Atom {
    Atom {
        scalar: Some(Scalar::Untyped),
        list: Some(ListType { element: ATOMIC, relation: Relation::Atomic }),
        map: Some(MapType { fields: HashMap::new(), element: Some(ATOMIC), atomic: true }),
    }
}

struct Builder<'a> {
    types: &'a Types,
    atoms: Vec<Atom>,
    by_message: HashMap<MessageId, TypeId>,
}

impl<'a> Builder<'a> {
    fn new(types: &'a Types) -> Self {
        Self { types, atoms: vec![deduced(), atomic()], by_message: HashMap::new() }
    }
}

impl Builder<'_> {
    fn add(&mut self, atom: Atom) -> TypeId {
        let id = TypeId(u32::try_from(self.atoms.len()).unwrap_or(u32::MAX));
        self.atoms.push(atom);
        id
    }

    fn scalar(&mut self, scalar: Scalar) -> TypeId {
        self.add(Atom { scalar: Some(scalar), ..Atom::default() })
    }

    fn message(&mut self, id: MessageId) -> TypeId {
        if let Some(known) = self.by_message.get(&id) {
            return *known;
        }
        let message = self.types.message(id);
        let built = match message.format {
            Format::Object => self.object(id),
            Format::Time | Format::MicroTime | Format::Quantity => self.scalar(Scalar::Untyped),
            Format::Raw if message.name == "RawExtension" => ATOMIC,
            Format::List => match message.fields.first() {
                Some(field) => self.field(field),
                None => DEDUCED,
            },
            // OpenAPI gives them no type, so they may be anything.
            Format::IntOrString
            | Format::Raw
            | Format::SchemaOrBool
            | Format::SchemaOrArray
            | Format::SchemaOrStrings => DEDUCED,
        };
        self.by_message.insert(id, built);
        built
    }

    /// The type is registered before its fields are, since types may be recursive.
    fn object(&mut self, id: MessageId) -> TypeId {
        let message = self.types.message(id);
        let place = self.add(Atom::default());
        self.by_message.insert(id, place);
        let mut fields = HashMap::new();
        if message.role != Role::Part {
            let text = self.scalar(Scalar::String);
            for name in ["apiVersion", "kind"] {
                fields.insert(name.into(), FieldType { id: text, default: None });
            }
        }
        self.members(id, &mut fields);
        let atomic = message.merging == Merging::Atomic;
        // An object type without fields may have any members.
        let element = fields.is_empty().then_some(DEDUCED);
        let map = MapType { fields, element, atomic };
        self.atoms[place.0 as usize].map = Some(map);
        place
    }

    fn members(&mut self, id: MessageId, fields: &mut HashMap<Arc<str>, FieldType>) {
        let types = self.types;
        for field in types.message(id).fields {
            match field.kind {
                FieldKind::Message(inner) if field.inline => self.members(inner, fields),
                _ => {
                    let built = FieldType { id: self.field(field), default: default_of(field) };
                    fields.insert((&*field.json_name).into(), built);
                }
            }
        }
    }

    fn field(&mut self, field: &Field) -> TypeId {
        let element = self.kind(field.kind);
        match field.cardinality {
            Cardinality::Single => match field.merging {
                Merging::Atomic => self.with_atomic(element, true),
                Merging::Granular => self.with_atomic(element, false),
                _ => element,
            },
            Cardinality::List => {
                let list = ListType { element, relation: relation(field) };
                self.add(Atom { list: Some(list), ..Atom::default() })
            }
            Cardinality::Map => {
                let atomic = field.merging == Merging::Atomic;
                let map = MapType { fields: HashMap::new(), element: Some(element), atomic };
                self.add(Atom { map: Some(map), ..Atom::default() })
            }
        }
    }

    fn kind(&mut self, kind: FieldKind) -> TypeId {
        match kind {
            FieldKind::Message(id) => self.message(id),
            FieldKind::Bool => self.scalar(Scalar::Boolean),
            FieldKind::Int32 | FieldKind::Int64 | FieldKind::Double => self.scalar(Scalar::Numeric),
            FieldKind::String | FieldKind::Bytes => self.scalar(Scalar::String),
        }
    }

    /// A copy of the type for a field that overrides how the type is merged.
    fn with_atomic(&mut self, id: TypeId, atomic: bool) -> TypeId {
        let mut atom = self.atoms[id.0 as usize].clone();
        if let Some(map) = &mut atom.map {
            map.atomic = atomic;
        }
        self.add(atom)
    }
}

/// How a list is merged. A list without that information is merged as a strategic merge patch would merge it
/// (kube-openapi `schemaconv`).
fn relation(field: &Field) -> Relation {
    match (&field.merging, field.strategic) {
        (Merging::Map(keys), _) => Relation::Keyed(keys.iter().map(|key| Arc::from(&**key)).collect()),
        (Merging::Set, _) => Relation::Set,
        (Merging::Unsaid, Some(strategic)) if strategic.strategy.split(',').any(|word| word == "merge") => {
            match strategic.merge_key {
                "" => Relation::Set,
                key => Relation::Keyed([key.into()].into()),
            }
        }
        _ => Relation::Atomic,
    }
}

/// The field's default. Upstream's OpenAPI gives the zero value as the default of scalars that are always printed.
fn default_of(field: &Field) -> Option<Value> {
    if let Some(default) = &field.default {
        return serde_json::from_str(default).ok();
    }
    if !field.always || field.pointer || field.cardinality != Cardinality::Single {
        return None;
    }
    match field.kind {
        FieldKind::String => Some("".into()),
        FieldKind::Bool => Some(false.into()),
        FieldKind::Int32 | FieldKind::Int64 | FieldKind::Double => Some(0.into()),
        FieldKind::Bytes | FieldKind::Message(_) => None,
    }
}

/// Checks the type of a scalar. The error is upstream's text.
pub fn check_scalar(scalar: Scalar, value: &Value) -> Result<(), String> {
    let (fits, expected) = match scalar {
        Scalar::Numeric => (value.is_number(), "numeric (int or float)"),
        Scalar::String => (value.is_string(), "string"),
        Scalar::Boolean => (value.is_boolean(), "boolean"),
        Scalar::Untyped => (!value.is_object() && !value.is_array(), "any scalar"),
    };
    if fits || value.is_null() {
        return Ok(());
    }
    let found = match scalar {
        Scalar::Numeric => go_type(value).to_owned(),
        Scalar::String => format!("&value.valueUnstructured{{Value:{}}}", go_syntax(value)),
        Scalar::Boolean | Scalar::Untyped => shown(value),
    };
    Err(format!("expected {expected}, got {found}"))
}

/// A value as errors show it: `fmt` prints the pointer in which upstream wraps it.
pub fn shown(value: &Value) -> String {
    format!("&{{{}}}", gotext::display(value))
}

fn go_syntax(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(object) => {
            let mut members: Vec<_> = object.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            let members: Vec<String> = members
                .into_iter()
                .map(|(key, value)| format!("{}:{}", gotext::quote(key), go_syntax(value)))
                .collect();
            format!("map[string]interface {{}}{{{}}}", members.join(", "))
        }
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Number(_) => gotext::display(value),
        scalar => gotext::json(scalar),
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
