//! `Resource`: a definition together with everything that verbs look up often.

pub mod custom;
pub mod hook;
pub mod versions;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use self::custom::Custom;
use self::hook::Hook;
use crate::ObjectMap;
use crate::causes::Cause;
use crate::codec::at_rest::StorageMediaType;
use crate::codec::object::Object;
use crate::codec::protobuf;
use crate::error::Error;
use crate::kinds::behavior::Behavior;
use crate::kinds::built_in;
use crate::options::ask::Seen;
use crate::options::list::Selection;
use crate::options::strictness::conform;
use crate::patch::apply::schema::Schema;
use crate::schema::kind::Kind;
use crate::schema::names::{GroupKind, GroupResource, GroupVersion};
use crate::schema::registry::Registry;
use crate::schema::resource::{ResourceDefinition, Storage};
use crate::schema::types::Fit;
use crate::storage::{Key, ResourceId};
use crate::tree::Value;

/// One served version of a resource.
pub struct Resource {
    pub definition: Arc<ResourceDefinition>,
    /// The store's number of the resource; all its versions share it. [`ResourceId::NONE`] of reviews and other requests
    /// that are not stored.
    pub id: ResourceId,
    /// How the kind behaves.
    pub behavior: Behavior,
    /// The definition of a custom resource; `None` for other resources, and while nobody has stored the definition.
    pub custom: Option<Custom>,
    /// The kind and version in which rows are written from now on. Older rows may be in another version.
    pub stored_kind: Kind,
    /// The apiVersion of `stored_kind`, in the form that the store shares.
    pub stored_version: Arc<str>,
    /// The concerns of writes of the resource.
    pub concerns: ConcernSet,
    /// The encoding of rows that are written from now on.
    pub storage_media_type: StorageMediaType,
    /// The kind in every version to which objects can be converted, the served one first, and how values of that
    /// version are merged (built when first needed).
    schemas: Vec<(Kind, OnceLock<Option<Schema>>)>,
    /// Whether a client has asked for objects in protobuf. From then on, writes keep the protobuf encoding in memory.
    read_in_protobuf: AtomicBool,
    /// Whether a client has listed objects in protobuf since [`Resource::has_unused_messages`] was asked last.
    listed_in_protobuf: AtomicBool,
    zero: OnceLock<ObjectMap>,
}

/// How rows are written from now on.
pub(super) struct StoredAs {
    pub kind: Kind,
    pub media_type: StorageMediaType,
    pub concerns: ConcernSet,
}

/// Concerns of writes, by their places in a list that has at most 32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConcernSet(u32);

impl ConcernSet {
    /// The places, from the first one on.
    pub fn places(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let place = left.trailing_zeros();
            left &= left.wrapping_sub(1);
            (place < u32::BITS).then_some(place as usize)
        })
    }
}

/// The set of the places that are true.
impl FromIterator<bool> for ConcernSet {
    fn from_iter<I: IntoIterator<Item = bool>>(places: I) -> Self {
        Self(places.into_iter().enumerate().fold(0, |set, (place, is_in)| set | u32::from(is_in) << place))
    }
}

impl Resource {
    pub(super) fn new(
        registry: &Registry,
        definition: Arc<ResourceDefinition>,
        id: ResourceId,
        stored: StoredAs,
        custom: Option<Custom>,
    ) -> Self {
        let behavior = match &custom {
            Some(custom) => Behavior::declared(&definition, custom.version.version().declared.clone()),
            None => built_in::behavior(&definition),
        };
        let schemas = match &custom {
            Some(custom) => every_version(custom),
            None => schemas(registry, &definition, &behavior),
        };
        Self {
            id,
            stored_version: stored.kind.gvk.api_version().as_str().into(),
            stored_kind: stored.kind,
            storage_media_type: stored.media_type,
            concerns: stored.concerns,
            schemas,
            behavior,
            custom,
            read_in_protobuf: AtomicBool::new(false),
            listed_in_protobuf: AtomicBool::new(false),
            zero: OnceLock::new(),
            definition,
        }
    }

    /// The definition of a custom resource whose objects a webhook converts.
    pub fn hooked(&self) -> Option<(&Custom, &Arc<Hook>)> {
        let custom = self.custom.as_ref()?;
        custom.hook.as_ref().map(|hook| (custom, hook))
    }

    pub fn group_resource(&self) -> GroupResource {
        self.definition.group_resource()
    }

    /// The kind that errors name. Events belong to the core group there, in whichever group they are served.
    pub fn group_kind(&self) -> GroupKind {
        match &self.definition.storage {
            Storage::Table { resource, .. } => {
                GroupKind { group: resource.group.clone(), ..self.definition.group_kind() }
            }
            Storage::Virtual => self.definition.group_kind(),
        }
    }

    /// Whether an object is served as it is stored, without a conversion.
    pub fn serves_as_stored(&self, object: &Object) -> bool {
        if let Some(custom) = &self.custom {
            return custom.serves_as_stored(object);
        }
        self.behavior.other_version.is_none_or(|other| object.api_version() != Some(other.api_version))
    }

    pub fn is_read_in_protobuf(&self) -> bool {
        self.read_in_protobuf.load(Ordering::Relaxed)
    }

    /// Notes that a client reads unconverted objects in protobuf.
    pub fn note_protobuf_reader(&self) {
        self.read_in_protobuf.store(true, Ordering::Relaxed);
    }

    /// Notes that a client lists objects in protobuf.
    pub fn note_protobuf_list(&self) {
        self.listed_in_protobuf.store(true, Ordering::Relaxed);
    }

    /// Whether objects may hold protobuf messages that no list has read since this was asked last.
    pub fn has_unused_messages(&self) -> bool {
        !self.listed_in_protobuf.swap(false, Ordering::Relaxed) && self.is_read_in_protobuf()
    }

    /// Parses a stored object into the served version.
    pub fn decode(&self, object: &Object) -> Result<ObjectMap, Error> {
        self.served(object, object.to_map()?)
    }

    /// Like [`Resource::decode`], but [closed](crate::codec::managed), as writes need it.
    pub fn decode_closed(&self, object: &Object) -> Result<ObjectMap, Error> {
        self.served(object, object.to_closed_map()?)
    }

    fn served(&self, object: &Object, map: ObjectMap) -> Result<ObjectMap, Error> {
        match &self.custom {
            Some(custom) if custom.serves_as_stored(object) => Ok(map),
            _ => self.of_stored(map, || format!("{object:?}")),
        }
    }

    /// An object of the stored version in the served one. `what` names it in errors.
    pub(super) fn of_stored(&self, map: ObjectMap, what: impl Fn() -> String) -> Result<ObjectMap, Error> {
        if let Some(custom) = &self.custom {
            return custom.read(map);
        }
        Ok(match &self.behavior.other_version {
            Some(other) if map.get("apiVersion").is_some_and(|v| v == other.api_version) => {
                let mut served = other.convert_from(map, self.definition.api_version());
                conform(&self.definition.kind, &mut served)
                    .map_err(|why| Error::Internal(format!("{} cannot be converted: {why}", what())))?;
                served
            }
            _ => map,
        })
    }

    /// Sets the defaults in an object of the served version.
    pub fn default(&self, object: &mut ObjectMap) -> Result<(), Error> {
        Ok(self.definition.kind.default(object)?)
    }

    /// Makes an object conform to its Go type, as decoding does upstream. The error is the text of Go's decoder.
    pub fn conform(&self, object: &mut ObjectMap) -> Result<Fit, String> {
        conform(&self.definition.kind, object)
    }

    /// How values of a version are merged; `None` for versions that are not served.
    pub fn schema(&self, api_version: &str) -> Option<&Schema> {
        let (kind, schema) = self.schemas.iter().find(|(kind, _)| kind.gvk.api_version() == api_version)?;
        schema.get_or_init(|| Schema::of(kind)).as_ref()
    }

    /// The zero value of the kind as upstream's types print it.
    pub fn zero(&self) -> &ObjectMap {
        self.zero.get_or_init(|| {
            let kind = &self.definition.kind;
            let zero = protobuf::decode(kind, &[]).unwrap_or_default();
            kind.gvk.claims().into_iter().chain(zero).collect()
        })
    }

    /// Converts an object of any version into another version that [`Resource::schema`] knows.
    pub fn to_version(&self, object: ObjectMap, api_version: &str) -> ObjectMap {
        if let Some(custom) = &self.custom {
            return custom.to_version(object, api_version);
        }
        let Some(other) = &self.behavior.other_version else { return object };
        let from = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        let served = self.definition.api_version();
        if from == served.as_str() && api_version == other.api_version {
            other.convert_to(object)
        } else if from == other.api_version && api_version == served.as_str() {
            other.convert_from(object, served)
        } else {
            object
        }
    }

    /// Converts an object of the served version into the version in which it is stored.
    pub fn to_stored(&self, object: ObjectMap) -> Result<ObjectMap, Error> {
        if let Some(custom) = &self.custom {
            return custom.to_stored(object);
        }
        Ok(match &self.behavior.other_version {
            Some(other) if *self.stored_version == *other.api_version => {
                let mut stored = other.convert_to(object);
                conform(&self.stored_kind, &mut stored).map_err(Error::BadRequest)?;
                // Upstream would set these defaults when it reads the object again.
                self.stored_kind.default(&mut stored)?;
                stored
            }
            _ => object,
        })
    }

    /// The apiVersion of an object that is to be stored, in the form that the store shares.
    pub fn version_of(&self, stored: &ObjectMap) -> Arc<str> {
        let is_found = self.custom.as_ref().is_some_and(|custom| custom.hook.is_some());
        match stored.get("apiVersion").and_then(Value::as_str) {
            // It stays in the version in which it was found, where only a webhook could convert it.
            Some(version) if is_found && version != &*self.stored_version => version.into(),
            _ => self.stored_version.clone(),
        }
    }

    /// Whether a selection matches this object. Parses the object only if the selection needs more than name, namespace
    /// and labels.
    pub fn selects(&self, selection: &Selection, object: &Object) -> Result<bool, Error> {
        if selection.name.as_deref().is_some_and(|name| name != object.name()) {
            return Ok(false);
        }
        if !selection.labels.is_empty() {
            // An object that cannot be read fails the request, so that a list is never silently incomplete.
            object.json()?;
        }
        if !selection.labels.matches(|key| object.label(key)) {
            return Ok(false);
        }
        if let Some(ask) = selection.ask.as_ref().filter(|ask| ask.selects_some())
            && !self.see(object, |seen| ask.selects(object, seen))?
        {
            return Ok(false);
        }
        if selection.decodes() {
            let object = Value::Object(self.decode(object)?);
            return Ok(selection.fields.matches_object(&self.behavior.fields, &object));
        }
        Ok(selection.fields.matches(|field| match field {
            "metadata.name" => object.name().into(),
            _ => object.namespace().into(),
        }))
    }
}

impl Resource {
    /// Looks at an object in the version that is served, of which no more is parsed than is needed.
    pub fn see<T>(&self, object: &Object, look: impl FnOnce(&Seen<'_>) -> T) -> Result<T, Error> {
        match self.serves_as_stored(object) {
            true => Ok(look(&Seen::Json(object.json()?))),
            false => Ok(look(&Seen::Decoded(&self.decode(object)?))),
        }
    }
}

fn every_version(custom: &Custom) -> Vec<(Kind, OnceLock<Option<Schema>>)> {
    let versions = custom.version.definition.versions.iter();
    versions.map(|version| (version.kind.clone(), OnceLock::new())).collect()
}

fn schemas(
    registry: &Registry,
    definition: &ResourceDefinition,
    behavior: &Behavior,
) -> Vec<(Kind, OnceLock<Option<Schema>>)> {
    let other = behavior
        .other_version
        .map(|other| in_version(registry, &definition.kind, &GroupVersion::fixed(other.api_version)));
    [definition.kind.clone()].into_iter().chain(other).map(|kind| (kind, OnceLock::new())).collect()
}

/// The kind in another version, which may not be served.
pub(super) fn in_version(registry: &Registry, kind: &Kind, version: &GroupVersion) -> Kind {
    let gvk = version.with_kind(kind.gvk.kind.clone());
    let served = registry.by_kind(&gvk).map(|definition| definition.kind.clone());
    served.or_else(|| kind.sibling(&gvk)).unwrap_or_else(|| Kind::opaque(gvk))
}

/// One object of a resource. Cluster-scoped objects have an empty namespace.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    pub resource: &'a Resource,
    pub namespace: &'a str,
    pub name: &'a str,
}

impl Target<'_> {
    pub fn key(&self) -> Key {
        Key::new(self.resource.id, self.namespace, self.name)
    }

    pub fn not_found(&self) -> Error {
        Error::not_found(self.resource.group_resource(), self.name)
    }

    pub fn forbidden(&self, reason: impl Into<String>) -> Error {
        let (resource, name) = (self.resource.group_resource(), self.name.to_owned());
        Error::Forbidden { resource, name, reason: reason.into() }
    }

    pub fn invalid(&self, causes: impl Into<Vec<Cause>>) -> Error {
        let (kind, name) = (self.resource.group_kind(), self.name.to_owned());
        Error::Invalid { kind, name, causes: causes.into() }
    }
}

/// The object with which a write is answered.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The stored object, in the version it is stored in.
    Stored(Arc<Object>),
    /// An object that is not stored, in the request's version: the result of a dry run, or a deleted object's last
    /// state.
    Unstored(ObjectMap),
}
