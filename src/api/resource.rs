//! `Resource`: a definition together with what verbs look up again and again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::ObjectMap;
use super::admission::plugins::Plugins;
use super::convert::{Conversion, conversion, other_version};
use super::error::Error;
use super::options::list::Selection;
use super::selector::selectable::SelectableFields;
use super::strategy::Strategy;
use super::strictness::conform;
use super::validation::Rules;
use super::warnings::Advice;
use crate::codec::at_rest::StorageMediaType;
use crate::codec::object::Object;
use crate::codec::protobuf;
use crate::patch::apply::schema::Schema;
use crate::schema::kind::Kind;
use crate::schema::names::{GroupKind, GroupResource, GroupVersion, Gvk, Gvr};
use crate::schema::registry::Registry;
use crate::schema::resource::{ResourceDefinition, Storage};
use crate::schema::types::Fit;
use crate::storage::ResourceId;
use crate::tree::{Text, Value};

/// One served version of a stored resource.
pub struct Resource {
    pub definition: Arc<ResourceDefinition>,
    /// The store's number; all versions of a resource share it.
    pub id: ResourceId,
    pub fields: SelectableFields,
    pub strategy: Strategy,
    pub plugins: Plugins,
    pub rules: Rules,
    pub advice: Advice,
    /// The kind that rows are encoded in from now on; older ones may be in another version.
    pub stored_kind: Kind,
    /// Its apiVersion, as the store shares it.
    pub stored_version: Arc<str>,
    /// The form of those rows.
    pub storage_media_type: StorageMediaType,
    /// From the other version in which a row may be encoded, if the kind has another look.
    from_other: Option<FromOther>,
    /// `None` where the served version is the stored one.
    to_stored: Option<Conversion>,
    /// The kind in every version that objects can be converted to, the served one first, and how its values are merged:
    /// built when first needed.
    schemas: Vec<(Kind, OnceLock<Option<Schema>>)>,
    /// Whether somebody has asked for objects in protobuf: from then on writes leave theirs in memory.
    read_in_protobuf: AtomicBool,
    zero: OnceLock<ObjectMap>,
}

/// What rows are from now on.
struct StoredAs {
    kind: Kind,
    media_type: StorageMediaType,
}

struct FromOther {
    version: GroupVersion,
    conversion: Conversion,
}

/// All served resources, by their place in a URL.
pub struct Resources {
    registry: Arc<Registry>,
    /// Every version of every group with this plural: rarely more than one, and found without making a key.
    by_plural: HashMap<Text, Vec<Arc<Resource>>>,
}

impl Resource {
    fn new(
        registry: &Registry,
        definition: Arc<ResourceDefinition>,
        id: ResourceId,
        stored: StoredAs,
    ) -> Self {
        let from_other = other_version(definition.gvk()).and_then(|version| {
            let conversion =
                conversion(&version.with_kind(definition.kind_name().clone()), definition.api_version())?;
            Some(FromOther { version, conversion })
        });
        let to_stored = conversion(definition.gvk(), stored.kind.gvk.api_version());
        Self {
            id,
            fields: SelectableFields::built_in(definition.group(), definition.kind_name()),
            strategy: Strategy::of(&definition),
            plugins: Plugins::of(&definition),
            rules: Rules::of(&definition),
            advice: Advice::of(&definition),
            stored_version: stored.kind.gvk.api_version().as_str().into(),
            stored_kind: stored.kind,
            storage_media_type: stored.media_type,
            from_other,
            to_stored,
            schemas: schemas(registry, &definition),
            read_in_protobuf: AtomicBool::new(false),
            zero: OnceLock::new(),
            definition,
        }
    }

    pub fn group_resource(&self) -> GroupResource {
        self.definition.group_resource()
    }

    /// What errors about its objects call the kind: events are core's, wherever they are served.
    pub fn group_kind(&self) -> GroupKind {
        match self.definition.kind_name().as_str() {
            "Event" => GroupKind::new("", "Event"),
            _ => self.definition.group_kind(),
        }
    }

    /// Whether an object goes out as it is stored, without a conversion.
    pub fn serves_as_stored(&self, object: &Object) -> bool {
        self.from_other.as_ref().is_none_or(|other| object.api_version() != Some(other.version.api_version()))
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
        self.served(object, object.to_map()?)
    }

    /// As [`Resource::decode`], [closed](crate::codec::managed): what writes work on.
    pub fn decode_closed(&self, object: &Object) -> Result<ObjectMap, Error> {
        self.served(object, object.to_closed_map()?)
    }

    fn served(&self, object: &Object, map: ObjectMap) -> Result<ObjectMap, Error> {
        Ok(match &self.from_other {
            Some(other)
                if map.get("apiVersion").is_some_and(|v| v == other.version.api_version().as_str()) =>
            {
                let mut served = other.conversion.convert(map);
                conform(&self.definition.kind, &mut served)
                    .map_err(|why| Error::Internal(format!("{object:?} cannot be converted: {why}")))?;
                served
            }
            _ => map,
        })
    }

    /// Gives an object of the served version its defaults.
    pub fn default(&self, object: &mut ObjectMap) {
        self.definition.kind.default(object);
    }

    /// Makes of an object what upstream's types make of it; the words of Go's decoder if it is none of its kind.
    pub fn conform(&self, object: &mut ObjectMap) -> Result<Fit, String> {
        conform(&self.definition.kind, object)
    }

    /// How values of a version are merged; `None` for versions that are not served.
    pub fn schema(&self, api_version: &str) -> Option<&Schema> {
        let (kind, schema) = self.schemas.iter().find(|(kind, _)| kind.gvk.api_version() == api_version)?;
        schema.get_or_init(|| Schema::of(kind)).as_ref()
    }

    /// The zero value of the kind, as upstream's types print it.
    pub fn zero(&self) -> &ObjectMap {
        self.zero.get_or_init(|| {
            let kind = &self.definition.kind;
            let zero = protobuf::decode(kind, &[]).unwrap_or_default();
            kind.gvk.claims().into_iter().chain(zero).collect()
        })
    }

    /// An object of any version in another one that [`Resource::schema`] knows.
    pub fn to_version(&self, object: ObjectMap, api_version: &str) -> ObjectMap {
        let from = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        let from = Gvk::parse(from, self.definition.kind_name());
        match from.ok().and_then(|from| conversion(&from, api_version)) {
            Some(conversion) => conversion.convert(object),
            None => object,
        }
    }

    /// An object of the served version as it is stored.
    pub fn to_stored(&self, object: ObjectMap) -> Result<ObjectMap, Error> {
        Ok(match &self.to_stored {
            Some(conversion) => {
                let mut stored = conversion.convert(object);
                conform(&self.stored_kind, &mut stored).map_err(Error::BadRequest)?;
                // Upstream would give them when it reads the object again.
                self.stored_kind.default(&mut stored);
                stored
            }
            None => object,
        })
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
        if selection.decodes() {
            let object = Value::Object(self.decode(object)?);
            return Ok(selection.fields.matches_object(&self.fields, &object));
        }
        Ok(selection.fields.matches(|field| match field {
            "metadata.name" => object.name().into(),
            _ => object.namespace().into(),
        }))
    }
}

fn schemas(registry: &Registry, definition: &ResourceDefinition) -> Vec<(Kind, OnceLock<Option<Schema>>)> {
    let other =
        other_version(definition.gvk()).map(|version| in_version(registry, &definition.kind, &version));
    [definition.kind.clone()].into_iter().chain(other).map(|kind| (kind, OnceLock::new())).collect()
}

/// A kind in another version, which may not be served.
fn in_version(registry: &Registry, kind: &Kind, version: &GroupVersion) -> Kind {
    let gvk = version.with_kind(kind.gvk.kind.clone());
    let served = registry.by_kind(&gvk).map(|definition| definition.kind.clone());
    served.or_else(|| kind.sibling(&gvk)).unwrap_or_else(|| Kind::opaque(gvk))
}

impl Resources {
    /// `ids` tells the store's number of each stored resource.
    pub fn new(
        registry: Arc<Registry>,
        ids: &HashMap<GroupResource, ResourceId>,
        storage_media_type: StorageMediaType,
    ) -> Self {
        let mut by_plural: HashMap<Text, Vec<Arc<Resource>>> = HashMap::new();
        for definition in registry.definitions() {
            let Storage::Table { resource, version } = &definition.storage else { continue };
            let Some(id) = ids.get(resource) else { continue };
            let kind = in_version(&registry, &definition.kind, version);
            let stored = StoredAs { kind, media_type: storage_media_type };
            let resource = Resource::new(&registry, definition.clone(), *id, stored);
            by_plural.entry(definition.plural.clone()).or_default().push(Arc::new(resource));
        }
        Self { registry, by_plural }
    }

    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    pub fn get(&self, name: &Gvr) -> Option<&Arc<Resource>> {
        let of_version =
            |resource: &&Arc<Resource>| *resource.definition.group_version() == name.group_version;
        self.by_plural.get(&name.plural)?.iter().find(of_version)
    }

    /// A version of a kind, by what an `ownerReference` says.
    pub fn by_kind(&self, gvk: &Gvk) -> Option<&Arc<Resource>> {
        self.get(&self.registry.by_kind(gvk)?.gvr())
    }

    /// Every stored resource once, in the version it is stored in where that is served.
    pub fn stored(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.registry.stored().filter_map(|(_, definition)| self.get(&definition.gvr()))
    }
}
