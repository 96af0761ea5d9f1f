//! Declarations of data: how a JSON value of an object becomes a value of an expression
//! (`apiserver/pkg/cel/common/{schemas,valuesunstructured}.go`), and how large it may be.

mod schema;

pub use schema::{LARGEST_REQUEST, of_schema};

use std::sync::Arc;

use smol_str::SmolStr;

use crate::environment::Environment;
use crate::reserved::escape;
use crate::types::Type;

#[derive(Clone, Debug)]
pub struct Decl {
    pub kind: Kind,
    pub nullable: bool,
    /// The fewest bytes of JSON that it takes.
    pub min_size: i64,
    /// The most letters, bytes, elements or entries.
    pub max_elements: i64,
}

#[derive(Clone, Debug)]
pub enum Kind {
    /// JSON of which nothing is known.
    Dyn,
    IntOrString,
    Bool,
    Int,
    Double,
    String,
    Bytes,
    Duration,
    Date,
    DateTime,
    List(Arc<ListDecl>),
    Map(Arc<Decl>),
    Object(Arc<ObjectDecl>),
    /// A value of any type, which expressions cannot access.
    Preserved,
    /// A list without items.
    Untyped,
}

#[derive(Debug)]
pub struct ListDecl {
    pub items: Decl,
    pub kind: ListKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListKind {
    Atomic,
    Set,
    /// Its keys, as expressions spell them: so does upstream look for them in objects.
    Map(Vec<String>),
}

#[derive(Debug)]
pub struct ObjectDecl {
    pub name: SmolStr,
    /// Sorted by their names in expressions; those that cannot be spelled have none.
    pub fields: Vec<FieldDecl>,
}

#[derive(Clone, Debug)]
pub struct FieldDecl {
    pub name: SmolStr,
    pub escaped: Option<SmolStr>,
    pub decl: Decl,
}

impl ObjectDecl {
    pub fn new(name: &str, mut fields: Vec<FieldDecl>) -> Self {
        fields.sort_by(|one, other| one.escaped.cmp(&other.escaped));
        Self { name: name.into(), fields }
    }

    /// The field that expressions call so; `hint` is where it was the last time.
    pub fn field(&self, escaped: &str, hint: usize) -> Option<&FieldDecl> {
        let is = |field: &&FieldDecl| field.escaped.as_deref() == Some(escaped);
        self.fields.get(hint).filter(is).or_else(|| {
            let found = self.fields.binary_search_by(|field| field.escaped.as_deref().cmp(&Some(escaped)));
            found.ok().map(|at| &self.fields[at])
        })
    }

    /// The field of that name in objects.
    pub fn named(&self, name: &str) -> Option<&FieldDecl> {
        let is = |field: &&FieldDecl| field.name == name;
        self.field(name, 0).filter(is).or_else(|| match escape(name) {
            Some(escaped) => self.field(&escaped, 0).filter(is),
            // Those that cannot be spelled come first.
            None => self.fields.iter().take_while(|field| field.escaped.is_none()).find(is),
        })
    }
}

impl Decl {
    /// A declaration without constraints, made of a type alone.
    pub const fn of(kind: Kind) -> Self {
        Self { kind, nullable: false, min_size: 0, max_elements: 0 }
    }

    /// The type in expressions; `None` for what they cannot speak of.
    pub fn cel_type(&self) -> Option<Type> {
        Some(match &self.kind {
            Kind::Dyn | Kind::IntOrString => Type::Dyn,
            Kind::Bool => Type::Bool,
            Kind::Int => Type::Int,
            Kind::Double => Type::Double,
            Kind::String => Type::String,
            Kind::Bytes => Type::Bytes,
            Kind::Duration => Type::Duration,
            Kind::Date | Kind::DateTime => Type::Timestamp,
            Kind::List(list) => Type::list(list.items.cel_type()?),
            Kind::Map(values) => Type::map(Type::String, values.cel_type()?),
            Kind::Object(object) => Type::Struct(object.name.clone()),
            Kind::Preserved | Kind::Untyped => return None,
        })
    }

    /// The same with this name for its structs.
    pub fn named(&self, name: &str) -> Self {
        let kind = match &self.kind {
            Kind::List(list) => {
                let items = list.items.named(&format!("{name}.@idx"));
                Kind::List(Arc::new(ListDecl { items, kind: list.kind.clone() }))
            }
            Kind::Map(values) => Kind::Map(Arc::new(values.named(&format!("{name}.@elem")))),
            Kind::Object(object) if object.name != name => {
                let field = |field: &FieldDecl| FieldDecl {
                    decl: field
                        .decl
                        .named(&format!("{name}.{}", field.escaped.as_deref().unwrap_or_default())),
                    ..field.clone()
                };
                let fields = object.fields.iter().map(field).collect();
                Kind::Object(Arc::new(ObjectDecl { name: name.into(), fields }))
            }
            kind => kind.clone(),
        };
        Self { kind, ..*self }
    }

    /// The declaration of the elements of a list, or of the values of a map.
    pub fn element(&self) -> Option<&Self> {
        match &self.kind {
            Kind::List(list) => Some(&list.items),
            Kind::Map(values) => Some(values),
            _ => None,
        }
    }

    /// The declaration of the member with this name in objects, if expressions can access it.
    pub fn member(&self, name: &str) -> Option<&Self> {
        let Kind::Object(object) = &self.kind else { return None };
        let field = object.field(&escape(name)?, 0)?;
        field.decl.cel_type().is_some().then_some(&field.decl)
    }

    /// Adds the structs that it is made of.
    pub fn declare(&self, environment: Environment) -> Environment {
        match &self.kind {
            Kind::List(list) => list.items.declare(environment),
            Kind::Map(values) => values.declare(environment),
            Kind::Object(object) => {
                let fields = object
                    .fields
                    .iter()
                    .filter_map(|field| Some((field.escaped.as_ref()?.to_string(), field.decl.cel_type()?)));
                let places = object.fields.iter().map(|field| field.escaped.as_deref().unwrap_or_default());
                let environment = environment
                    .with_struct(&object.name, fields)
                    .with_places(&object.name, places.map(str::to_owned).collect());
                object.fields.iter().fold(environment, |environment, field| field.decl.declare(environment))
            }
            _ => environment,
        }
    }
}
