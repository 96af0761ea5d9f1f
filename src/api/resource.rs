//! `Resource`: a definition together with what verbs look up again and again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::ObjectMap;
use super::convert::{Conversion, conversion, other_version};
use super::error::Error;
use super::meta;
use super::options::list::Selection;
use super::selector::selectable::SelectableFields;
use super::strategy::Strategy;
use crate::codec::object::Object;
use crate::codec::protobuf;
use crate::patch::apply::schema::Schema;
use crate::schema::names::{GroupKind, GroupResource};
use crate::schema::registry::Registry;
use crate::schema::resource::{ResourceDefinition, Storage};
use crate::schema::types::{self, Types};
use crate::storage::ResourceId;

/// One served version of a stored resource.
pub struct Resource {
    pub definition: Arc<ResourceDefinition>,
    /// The store's number; all versions of a resource share it.
    pub id: ResourceId,
    pub fields: SelectableFields,
    pub strategy: Strategy,
    /// The apiVersion that rows are encoded in.
    pub stored_version: Arc<str>,
    /// `None` where the served version is the stored one.
    conversion: Option<Versions>,
    /// The types of every version that objects can be converted to, the served one first. Built when first needed.
    schemas: Vec<(String, OnceLock<Option<Schema>>)>,
    /// Whether somebody has asked for objects in protobuf: from then on writes leave theirs in memory.
    read_in_protobuf: AtomicBool,
}

struct Versions {
    from_stored: Conversion,
    to_stored: Conversion,
}

/// All served resources, by their place in a URL.
pub struct Resources {
    registry: Arc<Registry>,
    /// Every version of every group with this plural: rarely more than one, and found without making a key.
    by_plural: HashMap<Arc<str>, Vec<Arc<Resource>>>,
}

impl Resource {
    fn new(definition: Arc<ResourceDefinition>, id: ResourceId, stored_version: Arc<str>) -> Self {
        let served = definition.api_version();
        let between = |from: &str, to: &str| conversion(from, to, &definition.kind);
        let conversion = match (between(&stored_version, &served), between(&served, &stored_version)) {
            (Some(from_stored), Some(to_stored)) => Some(Versions { from_stored, to_stored }),
            _ => None,
        };
        Self {
            id,
            fields: SelectableFields::built_in(&definition.group, &definition.kind),
            strategy: Strategy::of(&definition),
            stored_version,
            conversion,
            schemas: schemas(&definition),
            read_in_protobuf: AtomicBool::new(false),
            definition,
        }
    }

    pub fn group_resource(&self) -> GroupResource {
        self.definition.group_resource()
    }

    pub fn group_kind(&self) -> GroupKind {
        self.definition.group_kind()
    }

    /// Whether objects go out as they are stored, without a conversion.
    pub fn serves_stored_version(&self) -> bool {
        self.conversion.is_none()
    }

    pub fn is_read_in_protobuf(&self) -> bool {
        self.read_in_protobuf.load(Ordering::Relaxed)
    }

    /// Notes that somebody asks for objects as they are, in protobuf.
    pub fn note_protobuf_reader(&self) {
        self.read_in_protobuf.store(true, Ordering::Relaxed);
    }

    /// Parses a stored object into the served version.
    pub fn decode(&self, object: &Object) -> Result<ObjectMap, Error> {
        let map = object.to_map()?;
        Ok(match &self.conversion {
            Some(versions) => {
                let converted = versions.from_stored.convert(map);
                // The versions differ in what they print when it is empty.
                let (version, kind) = (self.definition.api_version(), &self.definition.kind);
                protobuf::normalize(&version, kind, &converted).unwrap_or(converted)
            }
            None => map,
        })
    }

    /// Whether an object is of its kind's types, in the words of Go's decoder if it is not.
    pub fn check_types(&self, object: &ObjectMap) -> Result<(), String> {
        meta::types::check(object)?;
        types::check(&self.definition.api_version(), &self.definition.kind, object)
    }

    /// How values of a version are merged; `None` for versions that are not served.
    pub fn schema(&self, api_version: &str) -> Option<&Schema> {
        let (_, schema) = self.schemas.iter().find(|(known, _)| known == api_version)?;
        let build = || {
            let message = Types::built_in().kind(api_version, &self.definition.kind)?;
            Some(Schema::built_in(Types::built_in(), message))
        };
        schema.get_or_init(build).as_ref()
    }

    /// An object of any version in another one that [`Resource::schema`] knows.
    pub fn to_version(&self, object: ObjectMap, api_version: &str) -> ObjectMap {
        let from = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        match conversion(from, api_version, &self.definition.kind) {
            Some(conversion) => conversion.convert(object),
            None => object,
        }
    }

    /// An object of the served version as it is stored.
    pub fn to_stored(&self, object: ObjectMap) -> ObjectMap {
        match &self.conversion {
            Some(versions) => versions.to_stored.convert(object),
            None => object,
        }
    }

    /// Whether a selection means this object. Parses it only for fields beyond name and namespace.
    pub fn selects(&self, selection: &Selection, object: &Object) -> Result<bool, Error> {
        if selection.name.as_deref().is_some_and(|name| name != object.name()) {
            return Ok(false);
        }
        if !selection.labels.is_empty() {
            // One that cannot be read is not one without labels: a list is never silently short.
            object.json()?;
        }
        if !selection.labels.matches(|key| object.label(key)) {
            return Ok(false);
        }
        let beyond_key = |field: &str| !matches!(field, "metadata.name" | "metadata.namespace");
        if selection.fields.terms().iter().any(|term| beyond_key(&term.field)) {
            let object = Value::Object(self.decode(object)?);
            return Ok(selection.fields.matches_object(&self.fields, &object));
        }
        Ok(selection.fields.matches(|field| match field {
            "metadata.name" => object.name().into(),
            _ => object.namespace().into(),
        }))
    }
}

fn schemas(definition: &ResourceDefinition) -> Vec<(String, OnceLock<Option<Schema>>)> {
    let served = definition.api_version();
    let other = other_version(&served, &definition.kind).map(str::to_owned);
    [served].into_iter().chain(other).map(|version| (version, OnceLock::new())).collect()
}

impl Resources {
    /// `ids` tells the store's number of each stored resource.
    pub fn new(registry: Arc<Registry>, ids: &HashMap<GroupResource, ResourceId>) -> Self {
        let mut by_plural: HashMap<Arc<str>, Vec<Arc<Resource>>> = HashMap::new();
        for definition in registry.definitions() {
            let Storage::Table { resource, api_version } = &definition.storage else { continue };
            let Some(id) = ids.get(resource) else { continue };
            let resource = Resource::new(definition.clone(), *id, api_version.clone());
            by_plural.entry(definition.plural.clone()).or_default().push(Arc::new(resource));
        }
        Self { registry, by_plural }
    }

    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    pub fn get(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        let found = |resource: &&Arc<Resource>| {
            *resource.definition.group == *group && *resource.definition.version == *version
        };
        self.by_plural.get(plural)?.iter().find(found)
    }

    /// A version of a kind, by what an `ownerReference` says.
    pub fn by_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Resource>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let definition = self.registry.by_kind(group, version, kind)?;
        self.get(group, version, &definition.plural)
    }

    /// Every stored resource once, in the version it is stored in where that is served.
    pub fn stored(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.registry.stored().filter_map(|(_, definition)| {
            self.get(&definition.group, &definition.version, &definition.plural)
        })
    }
}
