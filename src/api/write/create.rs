//! What a new object goes through, as pure functions.

use uuid::Uuid;

use crate::api::error::Error;
use crate::api::meta::{self, create::Stamp};
use crate::api::resource::Resource;
use crate::api::{ObjectMap, metadata, metadata_mut};
use crate::causes::Causes;
use crate::kinds::behavior::part::Part;
use crate::kinds::behavior::strategy::Writer;

/// What a new object is called, and what it said of that.
pub(in crate::api) struct Naming {
    pub name: String,
    /// The name was generated: another one may be free where this one is not.
    pub generated: bool,
    /// It said `generateName`, though it may have a name, too.
    pub prefixed: bool,
    /// The resourceVersion that it was sent with.
    pub version: String,
}

/// Gives an object its uid, and a name if it needs one.
pub(in crate::api) fn stamp(
    resource: &Resource,
    object: &mut ObjectMap,
    generate_name: &dyn Fn(&str) -> String,
    now: &str,
) -> Naming {
    let metadata = metadata_mut(object);
    let version = meta::text(metadata, "resourceVersion").to_owned();
    let generated = meta::create::wants_generated_name(metadata);
    let prefix = meta::text(metadata, "generateName");
    let prefixed = !prefix.is_empty();
    let given = match generated {
        true => Some(generate_name(prefix)),
        false => resource.behavior.strategy.own_name(metadata),
    };
    let uid = Uuid::new_v4().to_string();
    meta::create::prepare(metadata, &Stamp { uid: &uid, now });
    if let Some(name) = given {
        metadata.insert("name", name.into());
    }
    meta::drop_empty(metadata);
    Naming { name: meta::text(metadata, "name").to_owned(), generated, prefixed, version }
}

/// What the kind adds.
pub(in crate::api) fn prepare(resource: &Resource, object: &mut ObjectMap, writer: &Writer<'_>) {
    resource.behavior.strategy.hooks.begin_create(object);
    resource.behavior.strategy.prepare_create(object, writer);
}

/// What the rules do not allow.
pub(super) fn causes(resource: &Resource, object: &ObjectMap) -> Result<Causes, Error> {
    let empty = ObjectMap::new();
    let metadata = metadata(object).unwrap_or(&empty);
    let mut causes =
        meta::create::validate(metadata, resource.definition.scope, resource.behavior.strategy.names);
    causes.append(resource.behavior.rules.create(object)?);
    causes.extend(resource.behavior.scale_causes(Part::Main, object));
    Ok(causes)
}
