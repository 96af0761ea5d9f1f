//! What a server has made of the definitions that it has seen.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use imbl::OrdMap;
use tokio_util::sync::CancellationToken;

use super::{Custom, StoredDefinition};
use crate::api::conversion::Hook;
use crate::cache::{Objects, Range};
use crate::codec::object::Object;
use crate::kinds::custom::{CustomDefinition, Digest, Unserved};
use crate::revision::Revision;
use crate::schema::structural::Schemas;
use crate::storage::{Key, ResourceId};

/// The definitions by name.
#[derive(Clone, Default)]
pub struct Known(OrdMap<Box<str>, Definition>);

#[derive(Clone)]
struct Definition {
    /// The newest one that was looked at.
    revision: Revision,
    /// `None` if it could not be read.
    digest: Option<Digest>,
    stored: Arc<StoredDefinition>,
    /// Nothing, if nothing is served for it.
    served: Vec<Custom>,
}

/// The definitions as they are to be known once what they say is served.
pub struct Update {
    next: Known,
    /// Those that mean what they meant, at a newer revision.
    confirmed: Vec<(Arc<StoredDefinition>, Revision)>,
    pub changes_what_is_served: bool,
}

impl Known {
    /// Looks at what has changed.
    pub fn update(
        &self,
        resource: ResourceId,
        objects: &Objects,
        schemas: &Schemas,
        mut number: impl FnMut() -> u32,
    ) -> Update {
        let mut update = Update { next: self.clone(), confirmed: Vec::new(), changes_what_is_served: false };
        for object in objects.range(&Range::of(None)) {
            let known = self.0.get(object.name());
            if known.is_none_or(|known| known.revision != object.revision()) {
                update.look_at(resource, object, known, (schemas, &mut number));
            }
        }
        if update.next.0.len() > objects.len() {
            update.forget_others(objects);
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
        (schemas, number): (&Schemas, &mut dyn FnMut() -> u32),
    ) {
        let revision = object.revision();
        let digest = object.json().ok().and_then(Digest::of);
        if let Some(known) = known.filter(|known| digest.is_none() || digest == known.digest) {
            if digest.is_none() {
                // Unreadable is not gone.
                tracing::error!(
                    name = object.name(),
                    "a definition cannot be read; what it said is served on"
                );
            }
            self.confirmed.push((known.stored.clone(), revision));
            self.next.0.insert(object.name().into(), Definition { revision, ..known.clone() });
            return;
        }
        let stored = Arc::new(StoredDefinition::new(Key::new(resource, "", object.name()), revision));
        // Who watches goes on where objects look as they did.
        let same_form =
            known.filter(|known| known.digest.zip(digest).is_some_and(|(a, b)| a.has_form_of(&b)));
        let replaced = same_form.and_then(|known| known.served.first()).map(|custom| custom.replaced.clone());
        let served = served(object, &stored, replaced.unwrap_or_default(), (schemas, number));
        self.changes_what_is_served |=
            !served.is_empty() || known.is_some_and(|known| !known.served.is_empty());
        self.next.0.insert(object.name().into(), Definition { revision, digest, stored, served });
    }

    fn forget_others(&mut self, objects: &Objects) {
        let gone: Vec<Box<str>> =
            self.next.0.keys().filter(|name| objects.get("", name).is_none()).cloned().collect();
        for name in gone {
            let known = self.next.0.remove(&name);
            self.changes_what_is_served |= known.is_some_and(|known| !known.served.is_empty());
        }
    }

    /// All versions that are to be served.
    pub fn served(&self) -> Vec<Custom> {
        self.next.0.values().flat_map(|definition| &definition.served).cloned().collect()
    }

    /// What it says is served.
    pub fn commit(self) -> Known {
        for (stored, revision) in self.confirmed {
            stored.revision.store(revision.0, Ordering::SeqCst);
        }
        self.next
    }
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
            let served = Arc::new(definition).served().into_iter();
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
