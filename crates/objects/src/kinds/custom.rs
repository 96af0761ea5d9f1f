//! The meaning of a stored CustomResourceDefinition: the kinds that it defines, and how they are served.
//!
//! Pure: a definition is read when it is new or has changed, and never changes afterwards.

mod conversion;
mod digest;
mod rules;
mod served;
mod source;

use std::sync::Arc;

use crate::codec::object::{Object, Undecodable};
use crate::fields;
use crate::kinds::behavior::declared::Declared;
use crate::kinds::prelude::*;
use crate::schema::kind::{Kind, Shape};
use crate::schema::names::{GroupResource, GroupVersion, Gvk};
use crate::schema::resource::{ResourceDefinition, Scope};
use crate::schema::structural::{NotStructural, Schemas};
use crate::tree::Text;

use tokio::sync::OnceCell;

use source::Source;

pub use conversion::{ConversionWebhook, WebhookPlace};
pub use digest::Digest;
pub use rules::CompiledRules;

/// All that a definition defines.
#[derive(Debug)]
pub struct CustomDefinition {
    /// The name of the definition, `widgets.example.com`.
    pub name: Text,
    pub uid: Text,
    pub resource: GroupResource,
    pub scope: Scope,
    pub names: AcceptedNames,
    /// It is being deleted: objects may still be changed, but no new ones come.
    pub is_terminating: bool,
    /// Whether discovery lists it; it is served before, as soon as its names are accepted.
    pub is_established: bool,
    /// In the order of the definition, whether they are served or not.
    pub versions: Vec<CustomVersion>,
    /// The index in `versions` of the one that objects are stored in.
    stored: usize,
    /// The webhook that converts objects from version to version; `None` with strategy `None`.
    pub conversion: Option<ConversionWebhook>,
    /// The definition itself, for what is seldom asked for.
    source: Arc<Source>,
}

/// The names under which objects are served: those of the definition's status, which no other definition has.
#[derive(Debug)]
pub struct AcceptedNames {
    pub kind: Text,
    pub list_kind: Text,
    pub singular: Text,
    pub short_names: Vec<Text>,
    pub categories: Vec<Text>,
}

/// One version of a definition.
#[derive(Debug)]
pub struct CustomVersion {
    pub kind: Kind,
    pub is_served: bool,
    pub is_stored: bool,
    /// How objects are seen from outside: columns, selectable fields, the Scale, warnings.
    pub declared: Declared,
    subresources: Vec<Text>,
    /// The definition, of which the rules are read.
    source: Arc<Source>,
    /// Compiled when the first object is written; `None` if the schema has no rules.
    rules: OnceCell<Option<CompiledRules>>,
    /// The number by which objects are marked that are just as this version's schema has them; no other version ever
    /// gets it.
    pub number: u32,
}

/// A version that is served.
#[derive(Clone, Debug)]
pub struct ServedVersion {
    pub resource: Arc<ResourceDefinition>,
    pub definition: Arc<CustomDefinition>,
    /// The index of the version in the definition.
    pub index: usize,
}

/// Why nothing is served for a definition.
#[derive(Debug, thiserror::Error)]
pub enum Unserved {
    #[error(transparent)]
    Unreadable(#[from] Undecodable),
    /// Its names belong to others, or nobody has looked yet.
    #[error("its names are not accepted")]
    NotAccepted,
    #[error("no version of it is stored")]
    NothingStored,
    #[error("{version}: {why}")]
    Schema { version: Text, why: NotStructural },
}

impl CustomDefinition {
    /// Reads a definition; `number` gives each version its own.
    pub fn read(
        stored: &Arc<Object>,
        schemas: &Schemas,
        mut number: impl FnMut() -> u32,
    ) -> Result<Self, Unserved> {
        let object = &stored.to_map()?;
        if !has_condition(object, "Established") && !has_condition(object, "NamesAccepted") {
            return Err(Unserved::NotAccepted);
        }
        let group = fields::text(object, &["spec", "group"]);
        let plural = fields::text(object, &["spec", "names", "plural"]);
        let names = AcceptedNames::read(object);
        let versions = fields::items(object, &["spec", "versions"]).iter().filter_map(Value::as_object);
        let empty = Map::new();
        let spec = fields::object(object, "spec").unwrap_or(&empty);
        let source = Arc::new(Source::new(stored, object));
        let version = |entry: &Map| {
            let kind = CustomVersion::kind(group, &names.kind, entry, schemas)?;
            Ok(CustomVersion::read(spec, entry, kind, number(), &source))
        };
        let versions: Vec<_> = versions.map(version).collect::<Result<_, Unserved>>()?;
        let stored = versions.iter().position(|version| version.is_stored).ok_or(Unserved::NothingStored)?;
        Ok(Self {
            name: fields::text(object, &["metadata", "name"]).into(),
            uid: fields::text(object, &["metadata", "uid"]).into(),
            resource: GroupResource::new(group, plural),
            scope: match fields::text(object, &["spec", "scope"]) {
                "Namespaced" => Scope::Namespaced,
                _ => Scope::Cluster,
            },
            names,
            is_established: has_condition(object, "Established"),
            is_terminating: has_condition(object, "Terminating"),
            versions,
            stored,
            conversion: ConversionWebhook::of(object),
            source,
        })
    }

    /// The version that objects are stored in.
    pub fn stored(&self) -> &CustomVersion {
        &self.versions[self.stored]
    }

    /// The version that an `apiVersion` names.
    pub fn version(&self, api_version: &str) -> Option<&CustomVersion> {
        self.versions.iter().find(|version| version.kind.gvk.api_version() == api_version)
    }
}

impl AcceptedNames {
    fn read(object: &ObjectMap) -> Self {
        let text = |name| fields::text(object, &["status", "acceptedNames", name]).into();
        let texts = |name| {
            let list = fields::items(object, &["status", "acceptedNames", name]);
            list.iter().filter_map(Value::as_str).map(Text::from).collect()
        };
        Self {
            kind: text("kind"),
            list_kind: text("listKind"),
            singular: text("singular"),
            short_names: texts("shortNames"),
            categories: texts("categories"),
        }
    }
}

impl CustomVersion {
    /// `entry` is that of `spec.versions`.
    fn read(spec: &Map, entry: &Map, kind: Kind, number: u32, source: &Arc<Source>) -> Self {
        let flag = |name| entry.get(name).and_then(Value::as_bool).unwrap_or_default();
        let subresources = fields::object(entry, "subresources").into_iter().flatten();
        let subresources = subresources.filter(|(_, declared)| !declared.is_null());
        Self {
            kind,
            is_served: flag("served"),
            is_stored: flag("storage"),
            declared: Declared::read(spec, entry),
            subresources: subresources.map(|(name, _)| name.clone()).collect(),
            source: source.clone(),
            rules: OnceCell::new(),
            number,
        }
    }

    fn kind(group: &str, kind: &Text, entry: &Map, schemas: &Schemas) -> Result<Kind, Unserved> {
        let name = fields::text(entry, &["name"]);
        let gvk = Gvk { group_version: GroupVersion::new(group, name), kind: kind.clone() };
        let schema = fields::at(entry, &["schema", "openAPIV3Schema"]).and_then(Value::as_object);
        let structural = schema.map(|schema| schemas.read(schema)).transpose();
        let structural = structural.map_err(|why| Unserved::Schema { version: name.into(), why })?;
        let shape = structural.map_or(Shape::Opaque, |schema| Shape::Structural(Arc::new(schema)));
        Ok(Kind { gvk, shape })
    }

    /// Whether it has a subresource of this name.
    pub fn has_subresource(&self, name: &str) -> bool {
        self.subresources.iter().any(|subresource| subresource == name)
    }
}

impl ServedVersion {
    pub fn version(&self) -> &CustomVersion {
        &self.definition.versions[self.index]
    }
}

/// Whether a condition of the definition is true.
pub fn has_condition(object: &ObjectMap, kind: &str) -> bool {
    let conditions = fields::items(object, &["status", "conditions"]);
    conditions.iter().any(|condition| condition["type"] == kind && condition["status"] == "True")
}
