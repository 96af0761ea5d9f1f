//! The definitions that a server has seen, and the resources that it serves for them.

use std::sync::Arc;

use imbl::OrdMap;
use tokio_util::sync::CancellationToken;

use crate::cache::Objects;
use crate::codec::object::Object;
use crate::kinds::built_in;
use crate::kinds::custom::{CustomDefinition, Digest, ServedVersion, Unserved};
use crate::resource::custom::{Custom, StoredDefinition};
use crate::resource::hook::Hook;
use crate::revision::Revision;
use crate::schema::names::GroupResource;
use crate::schema::structural::Schemas;
use crate::storage::{Key, ResourceId};

/// The definitions by name.
#[derive(Clone, Default)]
pub struct Known(OrdMap<Box<str>, Definition>);

#[derive(Clone)]
struct Definition {
    /// The newest revision that was looked at.
    revision: Revision,
    /// Whether the definition could be read at that revision.
    is_read: bool,
    /// `None` if it could not be read.
    digest: Option<Digest>,
    stored: Arc<StoredDefinition>,
    /// Empty if nothing is served for the definition.
    served: Vec<Custom>,
}

impl Definition {
    /// Whether this version of the definition has been looked at and could be read.
    fn has_seen(&self, object: &Object) -> bool {
        self.revision == object.revision() && self.is_read
    }
}

/// The means to read definitions.
pub struct Reading<'a> {
    pub schemas: &'a Schemas,
    /// The definitions of the server that this one is a fork of, which have been read already.
    pub inherited: &'a Known,
    /// Gives a number to each structural schema.
    pub number: &'a mut dyn FnMut() -> u32,
}

/// The definitions as they are to be known once what they say is served.
pub struct Update {
    next: Known,
    /// The definitions that mean what they meant, at a newer revision.
    confirmed: Vec<(Arc<StoredDefinition>, Revision)>,
    /// The resources of all other definitions, in the versions in which they are to be served.
    changes: Vec<(GroupResource, Vec<Custom>)>,
}

impl Known {
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|name| &**name)
    }

    /// The versions that are served for a definition with this meaning; `None` if it is not known, or if objects are converted
    /// by a hook, which each server has for itself.
    fn served(&self, name: &str, digest: Digest) -> Option<&[Custom]> {
        let known = self.0.get(name).filter(|known| known.digest == Some(digest))?;
        known.served.iter().all(|custom| custom.hook.is_none()).then_some(&*known.served)
    }

    /// Looks at the definitions of these names, each once.
    pub fn update<'a>(
        &self,
        names: impl IntoIterator<Item = &'a str>,
        resource: ResourceId,
        objects: &Objects,
        mut reading: Reading<'_>,
    ) -> Update {
        let mut update = Update { next: self.clone(), confirmed: Vec::new(), changes: Vec::new() };
        for name in names {
            let known = self.0.get(name);
            match objects.get("", name) {
                Some(object) if known.is_some_and(|known| known.has_seen(&object)) => {}
                Some(object) => update.look_at(resource, &object, known, &mut reading),
                None => update.forget(name),
            }
        }
        update
    }
}

impl Update {
    fn look_at(
        &mut self,
        resource: ResourceId,
        object: &Arc<Object>,
        known: Option<&Definition>,
        reading: &mut Reading<'_>,
    ) {
        let revision = object.revision();
        let digest = object.json().ok().and_then(Digest::of);
        let is_read = digest.is_some();
        if let Some(known) = known.filter(|known| digest.is_none() || digest == known.digest) {
            if digest.is_none() {
                // Unreadable is not gone.
                tracing::error!(
                    name = object.name(),
                    "a definition cannot be read; what it said is served on"
                );
            }
            self.confirmed.push((known.stored.clone(), revision));
            self.next.0.insert(object.name().into(), Definition { revision, is_read, ..known.clone() });
            return;
        }
        let stored = Arc::new(StoredDefinition::new(Key::new(resource, "", object.name()), revision));
        // Who watches goes on where objects look as they did.
        let same_form =
            known.filter(|known| known.digest.zip(digest).is_some_and(|(a, b)| a.has_form_of(&b)));
        let replaced = same_form.and_then(|known| known.served.first()).map(|custom| custom.replaced.clone());
        let replaced = replaced.unwrap_or_default();
        let inherited = digest.and_then(|digest| reading.inherited.served(object.name(), digest));
        let served = match inherited {
            Some(served) => {
                let own = |custom: &Custom| {
                    let (stored, replaced) = (stored.clone(), replaced.clone());
                    Custom { stored, replaced, ..custom.clone() }
                };
                served.iter().map(own).collect()
            }
            None => served(object, &stored, replaced, (reading.schemas, &mut *reading.number)),
        };
        self.changes.extend(resource_of(object.name()).map(|resource| (resource, served.clone())));
        self.next.0.insert(object.name().into(), Definition { revision, is_read, digest, stored, served });
    }

    fn forget(&mut self, name: &str) {
        self.next.0.remove(name);
        self.changes.extend(resource_of(name).map(|resource| (resource, Vec::new())));
    }

    /// The versions in which resources are to be served from now on; none for a resource that nothing defines any more.
    pub fn take_changes(&mut self) -> Vec<(GroupResource, Vec<Custom>)> {
        std::mem::take(&mut self.changes)
    }

    /// The definitions as known from now on, the confirmed ones at their newer revisions. Called when what they say is
    /// served.
    pub fn commit(self) -> Known {
        for (stored, revision) in self.confirmed {
            stored.confirm(revision);
        }
        self.next
    }
}

/// The versions in which the resource of a definition is served that was stored in the past.
pub fn served_as_of(
    object: &Arc<Object>,
    resource: ResourceId,
    schemas: &Schemas,
    mut number: impl FnMut() -> u32,
) -> Vec<Custom> {
    let stored = Arc::new(StoredDefinition::new(Key::new(resource, "", object.name()), object.revision()));
    served(object, &stored, Arc::default(), (schemas, &mut number))
}

/// The resource that a definition of this name defines: the name is `widgets.example.com`.
fn resource_of(name: &str) -> Option<GroupResource> {
    name.split_once('.').map(|(plural, group)| GroupResource::new(group, plural))
}

fn served(
    object: &Arc<Object>,
    stored: &Arc<StoredDefinition>,
    replaced: Arc<CancellationToken>,
    (schemas, number): (&Schemas, &mut dyn FnMut() -> u32),
) -> Vec<Custom> {
    match CustomDefinition::read(object, schemas, number) {
        Ok(definition) => {
            let hook = Hook::of(&definition);
            // In a version of a group that is the server's own, a definition is stored and never served.
            let is_free =
                |version: &ServedVersion| !built_in::has_version(&version.resource.gvk().group_version);
            let served = Arc::new(definition).served().into_iter().filter(is_free);
            let custom = |version| Custom {
                version,
                stored: stored.clone(),
                hook: hook.clone(),
                replaced: replaced.clone(),
            };
            served.map(custom).collect()
        }
        Err(Unserved::NotAccepted) => Vec::new(),
        Err(error) => {
            tracing::error!(name = object.name(), %error, "nothing is served for a definition");
            Vec::new()
        }
    }
}
