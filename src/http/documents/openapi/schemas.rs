//! The schemas of a document: those that its operations name, and all that these refer to.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::dialect::Dialect;
use super::names;
use super::operation::PathItem;
use super::texts::Texts;
use crate::schema::builtin;
use crate::schema::names::{GroupVersion, Gvk};
use crate::schema::registry::ServedVersion;
use crate::schema::resource::ResourceDefinition;
use crate::schema::types::{Message, MessageId, Role, Types};
use crate::tree::{Map, Value, json};

mod custom;
mod property;

use custom::CustomSchemas;

/// The extension by which clients find the schema of a kind.
pub(super) const GVK: &str = "x-kubernetes-group-version-kind";

const CORE: GroupVersion = GroupVersion::fixed("v1");

/// The types of the API with their names and texts, which are the same for all documents.
pub(super) struct Library {
    types: Arc<Types>,
    pub texts: Texts,
    by_name: HashMap<String, MessageId>,
}

impl Library {
    pub fn load() -> Self {
        let types = builtin::types();
        let by_name = types.messages().map(|(id, message)| (names::message(message), id)).collect();
        Self { types, texts: Texts::load(), by_name }
    }
}

/// Renders the schemas of one document.
pub(super) struct Schemas<'a> {
    types: &'a Types,
    library: &'a Library,
    dialect: Dialect,
    /// The group versions that the document describes.
    versions: Vec<&'a ServedVersion>,
    /// Kinds that are no messages of protobuf's, by the names of their schemas.
    untyped: HashMap<String, Untyped<'a>>,
    names: BTreeSet<String>,
}

/// The definition behind the name of a schema that is no message.
#[derive(Clone, Copy)]
enum Untyped<'a> {
    Object(&'a ResourceDefinition),
    List(&'a ResourceDefinition),
}

impl<'a> Schemas<'a> {
    /// The schemas that `items` name, and those that these refer to.
    pub fn new(
        dialect: Dialect,
        library: &'a Library,
        versions: Vec<&'a ServedVersion>,
        items: &[PathItem],
    ) -> Self {
        let types = &*library.types;
        let untyped = untyped_kinds(&versions);
        let mut schemas = Self { types, library, dialect, versions, untyped, names: BTreeSet::new() };
        let operations = items.iter().flat_map(|item| &item.operations);
        let mut open: Vec<String> = operations.flat_map(|operation| operation.schemas()).collect();
        while let Some(name) = open.pop() {
            if schemas.names.contains(&name) {
                continue;
            }
            if let Some(&id) = library.by_name.get(&name) {
                open.extend(schemas.references(types.message(id)));
            }
            if let Some(Untyped::Object(definition) | Untyped::List(definition)) = schemas.untyped.get(&name)
            {
                let metadata = [names::OBJECT_META, names::LIST_META].map(str::to_owned);
                open.extend(metadata.into_iter().filter(|_| definition.declaration.is_some()));
            }
            schemas.names.insert(name);
        }
        schemas
    }

    /// Sorted by name.
    pub fn all(&self) -> impl Iterator<Item = (&str, Value)> {
        self.names.iter().map(|name| (name.as_str(), self.schema(name)))
    }

    fn schema(&self, name: &str) -> Value {
        match self.library.by_name.get(name) {
            Some(&id) => self.message(name, self.types.message(id)),
            None => self.untyped(name),
        }
    }

    /// Schemas of what is no message of protobuf's.
    fn untyped(&self, name: &str) -> Value {
        let mut schema = match name {
            names::VERSION_INFO => version_info(self.dialect),
            names::PATCH => json!({"type": "object"}),
            _ => self.custom(name),
        };
        if let Some(text) = self.library.texts.of_type(name) {
            schema["description"] = json!(text);
        }
        schema
    }

    /// The schema of a custom kind: the declared one, or that of an object of which nothing is known but its kind.
    fn custom(&self, name: &str) -> Value {
        let found = self.untyped.get(name);
        if let Some(Untyped::Object(definition) | Untyped::List(definition)) = found
            && definition.declaration.is_some()
        {
            let schemas = CustomSchemas { library: self.library, dialect: self.dialect, definition };
            return match found {
                Some(Untyped::List(_)) => schemas.list(),
                _ => schemas.object(),
            };
        }
        let kinds: Vec<Value> = match found {
            Some(Untyped::Object(definition)) => vec![gvk(definition.gvk())],
            Some(Untyped::List(definition)) => vec![gvk(&list_gvk(definition))],
            None => Vec::new(),
        };
        let mut schema = json!({"type": "object", GVK: kinds});
        // Clients that validate with v2 do not know the extension and allow any field of an object without fields.
        if self.dialect == Dialect::V3 {
            schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
        }
        schema
    }

    /// The names of the schemas that `message` refers to.
    fn references(&self, message: &Message) -> Vec<String> {
        let fields = self.members(message);
        fields.into_iter().filter_map(|field| self.referred(field).map(names::message)).collect()
    }

    /// The list of kinds that goes with a schema; those that every version has are told of the document's own.
    fn kinds(&self, message: &Message) -> Option<Value> {
        let kind = message.name;
        let of = |version: &GroupVersion| gvk(&version.with_kind(kind));
        match &message.role {
            Role::Part => None,
            Role::Kind(version) => Some(json!([of(version)])),
            Role::SharedKind if matches!(kind, "DeleteOptions" | "WatchEvent") => {
                let own = self.versions.iter().map(|version| version.name.clone());
                let mut all: Vec<GroupVersion> = own.chain([CORE]).collect();
                all.sort_by_key(|version| (!version.group().is_empty(), version.api_version().clone()));
                all.dedup();
                Some(all.iter().map(of).collect())
            }
            Role::SharedKind => Some(json!([of(&CORE)])),
        }
    }
}

fn untyped_kinds<'a>(versions: &[&'a ServedVersion]) -> HashMap<String, Untyped<'a>> {
    let definitions = versions.iter().flat_map(|version| &version.resources);
    let untyped = definitions.filter(|definition| definition.kind.go().is_none());
    let named = |definition: &'a Arc<ResourceDefinition>| {
        let object = (names::untyped(definition.gvk()), Untyped::Object(definition));
        [object, (names::untyped(&list_gvk(definition)), Untyped::List(definition))]
    };
    untyped.flat_map(named).collect()
}

fn list_gvk(definition: &ResourceDefinition) -> Gvk {
    definition.group_version().with_kind(definition.list_kind.clone())
}

/// The form of `x-kubernetes-group-version-kind` on an operation.
pub(super) fn gvk(kind: &Gvk) -> Value {
    json!({"group": kind.group().as_str(), "kind": kind.kind.as_str(), "version": kind.version()})
}

/// The schema of the answer of `/version`.
fn version_info(dialect: Dialect) -> Value {
    const ALWAYS: [&str; 9] = [
        "major",
        "minor",
        "gitVersion",
        "gitCommit",
        "gitTreeState",
        "buildDate",
        "goVersion",
        "compiler",
        "platform",
    ];
    const MORE: [&str; 4] =
        ["emulationMajor", "emulationMinor", "minCompatibilityMajor", "minCompatibilityMinor"];
    let property = |name: &str| match ALWAYS.contains(&name) {
        true if dialect == Dialect::V3 => json!({"type": "string", "default": ""}),
        _ => json!({"type": "string"}),
    };
    let mut properties: Map =
        ALWAYS.iter().chain(&MORE).map(|&name| (name.to_owned(), property(name))).collect();
    properties.sort_keys();
    json!({"type": "object", "required": ALWAYS, "properties": properties})
}
