//! The schemas of a document: those that its operations name, and all that these refer to.

use std::collections::{BTreeSet, HashMap};

use super::names;
use super::operation::PathItem;
use super::texts::Texts;
use crate::schema::registry::{GroupVersion, Origin};
use crate::schema::resource::{ForeignKind, ResourceDefinition};
use crate::schema::types::{Message, MessageId, Role, Types};
use crate::tree::{Map, Value, json};

mod property;

/// The extension by which clients find the schema of a kind.
pub(super) const GVK: &str = "x-kubernetes-group-version-kind";

/// v2 and v3 keep schemas in different places and say some things differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    V2,
    V3,
}

impl Dialect {
    pub fn refs(self) -> &'static str {
        match self {
            Dialect::V2 => "#/definitions/",
            Dialect::V3 => "#/components/schemas/",
        }
    }

    pub fn reference(self, name: &str) -> Value {
        json!({"$ref": format!("{}{name}", self.refs())})
    }
}

/// What is known of types, whichever the document.
pub(super) struct Library {
    types: &'static Types,
    pub texts: Texts,
    by_name: HashMap<String, MessageId>,
}

impl Library {
    pub fn load() -> Self {
        let types = Types::built_in();
        let by_name = types.messages().map(|(id, message)| (names::message(message), id)).collect();
        Self { types, texts: Texts::load(), by_name }
    }
}

/// Renders the schemas of one document.
pub(super) struct Schemas<'a> {
    types: &'static Types,
    library: &'a Library,
    dialect: Dialect,
    /// The group versions that the document describes.
    versions: Vec<&'a GroupVersion>,
    names: BTreeSet<String>,
}

impl<'a> Schemas<'a> {
    /// What `items` name, and what that refers to.
    pub fn new(
        dialect: Dialect,
        library: &'a Library,
        versions: Vec<&'a GroupVersion>,
        items: &[PathItem],
    ) -> Self {
        let types = library.types;
        let mut schemas = Self { types, library, dialect, versions, names: BTreeSet::new() };
        let operations = items.iter().flat_map(|item| &item.operations);
        let mut open: Vec<String> = operations.flat_map(|operation| operation.schemas()).collect();
        while let Some(name) = open.pop() {
            if schemas.names.contains(&name) {
                continue;
            }
            if let Some(&id) = library.by_name.get(&name) {
                open.extend(schemas.references(types.message(id)));
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

    /// An object of which nothing is known but its kind.
    fn custom(&self, name: &str) -> Value {
        let resources = self.versions.iter().flat_map(|version| &version.resources);
        let named = |resource: &ResourceDefinition, kind: &str| {
            names::schema(Origin::Custom, &resource.group, &resource.version, kind) == name
        };
        let kinds: Vec<Value> = resources
            .flat_map(|resource| [(resource, &resource.kind), (resource, &resource.list_kind)])
            .filter(|(resource, kind)| named(resource, kind))
            .map(|(resource, kind)| {
                json!({"group": &*resource.group, "kind": &**kind, "version": &*resource.version})
            })
            .collect();
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
        let kind = &*message.name;
        let of = |api_version: &str| {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            json!({"group": group, "kind": kind, "version": version})
        };
        match &message.role {
            Role::Part => None,
            Role::Kind(api_version) => Some(json!([of(api_version)])),
            Role::SharedKind if matches!(kind, "DeleteOptions" | "WatchEvent") => {
                let own = self.versions.iter().map(|version| version.api_version());
                let mut all: Vec<String> = own.chain(["v1".to_owned()]).collect();
                all.sort_by(|a, b| (a.contains('/'), a).cmp(&(b.contains('/'), b)));
                all.dedup();
                Some(all.iter().map(|version| of(version)).collect())
            }
            Role::SharedKind => Some(json!([of("v1")])),
        }
    }
}

/// The form of `x-kubernetes-group-version-kind` on an operation.
pub(super) fn gvk(kind: &ForeignKind) -> Value {
    json!({"group": &*kind.group, "kind": &*kind.kind, "version": &*kind.version})
}

/// What `/version` answers.
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
