//! The environment of an expression: the variables, types and functions that it may use.

use std::collections::HashMap;
use std::sync::Arc;

use rowplane_values::regexp::Room;

use crate::reserved::is_reserved;
use crate::types::Type;

/// Types that expressions may name, besides the structs.
const NAMED: [(&str, &str); 16] = [
    ("bool", "bool"),
    ("bytes", "bytes"),
    ("double", "double"),
    ("duration", "google.protobuf.Duration"),
    ("google.protobuf.Duration", "google.protobuf.Duration"),
    ("google.protobuf.Timestamp", "google.protobuf.Timestamp"),
    ("int", "int"),
    ("list", "list(dyn)"),
    ("map", "map(dyn, dyn)"),
    ("null_type", "null_type"),
    ("string", "string"),
    ("timestamp", "google.protobuf.Timestamp"),
    ("type", "type"),
    ("uint", "uint"),
    ("net.IP", "net.IP()"),
    ("net.CIDR", "net.CIDR()"),
];

/// Functions of patches only.
const OF_PATCHES: &str = "jsonpatch.";
/// Objects that patches are made of: `Object`, `Object.spec`, with any fields.
const OBJECT: &str = "Object";
const PATCH: &str = "JSONPatch";
/// Functions of expressions that are stored already: those of the newest version, which the server of the version before,
/// to which one may go back, does not know.
const OF_STORED: [&str; 1] = ["includes"];

/// Copies share the structs: a policy may declare thousands of variables, and copies are made for its expressions.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: HashMap<String, Type>,
    structs: Arc<HashMap<String, HashMap<String, Type>>>,
    /// The fields of structs in the order in which declarations hold them.
    places: Arc<HashMap<String, Vec<String>>>,
    /// Whether `cel.bind` is a word.
    pub(crate) bindings: bool,
    /// Whether there are the types of patches.
    patches: bool,
    /// Whether expressions may call functions that only stored ones may.
    stored: bool,
    /// For the programs of constant patterns.
    pub(crate) room: Arc<Room>,
}

/// The result of looking up a field of a struct.
pub enum Field {
    Found(Type),
    Undefined,
    /// Nothing is known of the struct itself.
    OfNothing,
}

impl Environment {
    pub fn with_variable(mut self, name: &str, is: Type) -> Self {
        self.variables.insert(name.to_owned(), is);
        self
    }

    pub fn with_bindings(self) -> Self {
        Self { bindings: true, ..self }
    }

    pub fn with_patches(self) -> Self {
        Self { patches: true, ..self }
    }

    /// The environment of expressions that are stored already.
    pub fn of_stored(self) -> Self {
        Self { stored: true, ..self }
    }

    /// Lets the patterns of its expressions share a room with those of others.
    pub(crate) fn with_room(self, room: &Arc<Room>) -> Self {
        Self { room: room.clone(), ..self }
    }

    pub fn without(mut self, name: &str) -> Self {
        self.variables.remove(name);
        self
    }

    /// A struct, and what its fields are.
    pub fn with_struct(mut self, name: &str, fields: impl IntoIterator<Item = (String, Type)>) -> Self {
        Arc::make_mut(&mut self.structs).insert(name.to_owned(), fields.into_iter().collect());
        self
    }

    /// Gives a field to a struct that is there.
    pub fn add_field(&mut self, of: &str, name: &str, is: Type) {
        Arc::make_mut(&mut self.structs).entry(of.to_owned()).or_default().insert(name.to_owned(), is);
    }

    /// The order in which the declaration of a struct holds its fields.
    pub(crate) fn with_places(mut self, of: &str, fields: Vec<String>) -> Self {
        Arc::make_mut(&mut self.places).insert(of.to_owned(), fields);
        self
    }

    /// The index of a field in the declaration of its struct, or 0 if that is not known: callers take it for a hint only.
    pub(crate) fn place_of(&self, of: &str, field: &str) -> usize {
        let fields = self.places.get(of);
        fields.and_then(|fields| fields.iter().position(|known| known == field)).unwrap_or_default()
    }

    /// The type of a variable.
    pub fn global(&self, name: &str) -> Option<Type> {
        self.variables.get(name).cloned()
    }

    /// The type of this name.
    pub(crate) fn named(&self, name: &str) -> Option<Type> {
        if let Some((_, is)) = NAMED.iter().find(|(known, _)| *known == name) {
            return Some(Type::parse(is));
        }
        let known = self.structs.contains_key(name) || self.is_of_patches(name);
        known.then(|| Type::Struct(name.into()))
    }

    fn is_of_patches(&self, name: &str) -> bool {
        let object = name.strip_prefix(OBJECT).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        self.patches && (object || name == PATCH)
    }

    pub(crate) fn has_function(&self, name: &str) -> bool {
        (self.patches || !name.starts_with(OF_PATCHES)) && (self.stored || !OF_STORED.contains(&name))
    }

    pub(crate) fn field(&self, of: &str, name: &str) -> Field {
        if self.is_of_patches(of) {
            return match (of, name) {
                (PATCH, "op" | "path" | "from") => Field::Found(Type::String),
                (PATCH, "value") => Field::Found(Type::Dyn),
                // Upstream has them, but of no type.
                (PATCH, _) => Field::Found(Type::Struct("".into())),
                _ => Field::Found(Type::Dyn),
            };
        }
        let Some(fields) = self.structs.get(of) else { return Field::OfNothing };
        // Words of the language are escaped in declarations, but need not be in expressions.
        let escaped = || fields.get(&format!("__{name}__")).filter(|_| is_reserved(name));
        let found = fields.get(name).or_else(escaped);
        found.map_or(Field::Undefined, |found| Field::Found(found.clone()))
    }
}
