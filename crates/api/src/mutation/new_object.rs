//! The steps by which an object is made.

use crate::causes::Causes;
use crate::error::Error;
use crate::kinds::behavior::part::Part;
use crate::kinds::behavior::strategy::Writer;
use crate::meta::{self, create::Stamp};
use crate::resource::Resource;
use crate::{Cluster, ObjectMap, metadata, metadata_mut};

/// The name of a new object, and what its metadata said about it.
pub struct Naming {
    pub name: String,
    /// The name was generated: if it is taken, another one may be free.
    pub generated: bool,
    /// The metadata have a `generateName`, and perhaps a name as well.
    pub prefixed: bool,
    /// The resourceVersion that the client sent.
    pub version: String,
}

/// Gives an object its uid, and a name if it needs one.
pub fn stamp(cluster: &Cluster, resource: &Resource, object: &mut ObjectMap, now: &str) -> Naming {
    let metadata = metadata_mut(object);
    let version = meta::text(metadata, "resourceVersion").to_owned();
    let generated = meta::create::wants_generated_name(metadata);
    let prefix = meta::text(metadata, "generateName");
    let prefixed = !prefix.is_empty();
    let uuid = || cluster.runtime.random.uuid().to_string();
    let given = match generated {
        true => Some((cluster.config.generate_name)(prefix)),
        false => resource.behavior.strategy.own_name(metadata, &uuid),
    };
    let uid = uuid();
    meta::create::prepare(metadata, &Stamp { uid: &uid, now });
    if let Some(name) = given {
        // Go prints it first.
        let others = std::mem::take(metadata);
        metadata.insert("name", name.into());
        metadata.extend(others.into_iter().filter(|(member, _)| member != "name"));
    }
    meta::drop_empty(metadata);
    Naming { name: meta::text(metadata, "name").to_owned(), generated, prefixed, version }
}

/// Lets the kind make its changes to a new object.
pub fn prepare(resource: &Resource, object: &mut ObjectMap, writer: &Writer<'_>) {
    resource.behavior.strategy.hooks.begin_create(object);
    resource.behavior.strategy.prepare_create(object, writer);
}

/// The violations of the kind's rules.
pub fn causes(resource: &Resource, object: &ObjectMap) -> Result<Causes, Error> {
    let empty = ObjectMap::new();
    let metadata = metadata(object).unwrap_or(&empty);
    let mut causes =
        meta::create::validate(metadata, resource.definition.scope, resource.behavior.strategy.names);
    let scale = resource.behavior.scale_causes(Part::Main, object);
    match &resource.custom {
        Some(custom) => causes.append(custom.version.version().create_causes(object, scale)),
        None => {
            let rules = &resource.behavior.rules;
            let found = rules.create(object)?;
            if rules.names_last() && !found.is_empty() {
                return Ok(found);
            }
            causes.append(found);
        }
    }
    Ok(causes)
}
