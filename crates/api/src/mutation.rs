//! Mutations of stored objects: what a write of an object, a client's or the server's own, is to the store.

pub mod new_object;

use std::sync::Arc;

use crate::codec::depth::MAX_DEPTH;
use crate::codec::managed;
use crate::codec::object::{Draft, Replaces};
use crate::error::Error;
use crate::kinds::behavior::strategy::Writer;
use crate::request::Request;
use crate::revision::Revision;
use crate::schema::resource::Verb;
use crate::storage::{Author, Change, Expect, Mutation};
use crate::user::User;
use crate::warnings::Warnings;
use crate::{Cluster, ObjectMap, Target, meta, metadata, metadata_mut, ownership};

/// The manager of the fields that the server sets.
const MANAGER: &str = "kube-apiserver";

impl Cluster {
    /// The mutation that writes an object in the request's version, encrypted if its resource is configured so.
    pub fn put_mutation(
        &self,
        target: Target<'_>,
        expect: Expect,
        object: ObjectMap,
    ) -> Result<Mutation, Error> {
        let verb = if expect == Expect::Absent { Verb::Create } else { Verb::Update };
        let mutation = self.sealed(target, expect, encode(target, object)?)?;
        Ok(Mutation { author: self.author(&Request::own(verb, target), MANAGER), ..mutation })
    }

    /// The writer of a change, as far as he is recorded.
    pub fn author(&self, request: &Request<'_>, manager: &str) -> Option<Arc<Author>> {
        self.config.record_writers.record(request.writer(manager))
    }

    /// The mutation by which the server itself deletes an object.
    pub fn delete_mutation(&self, target: Target<'_>, found: Revision) -> Mutation {
        let author = self.author(&Request::own(Verb::Delete, target), MANAGER);
        Mutation { author, ..Mutation::new(target.key(), Expect::At(found), Change::Delete) }
    }

    /// The variant of [`Cluster::put_mutation`] for a client's write. If `drops_managers` is set, an object that is too long is
    /// written without its managers if it fits then, as upstream does (`isTooLargeError` in `endpoints/handlers`).
    pub fn put_mutation_replacing(
        &self,
        (target, replaces): (Target<'_>, Replaces),
        expect: Expect,
        object: ObjectMap,
        drops_managers: bool,
    ) -> Result<Mutation, Error> {
        let mut encoded = encode(target, object)?;
        encoded.draft = encoded.draft.replacing(replaces);
        if drops_managers && encoded.draft.limited_length() > self.store.max_object_bytes() {
            encoded = without_managers(target, encoded)?;
        }
        self.sealed(target, expect, encoded)
    }

    fn sealed(&self, target: Target<'_>, expect: Expect, encoded: Encoded) -> Result<Mutation, Error> {
        let Encoded { uid, stored_version, draft } = encoded;
        let key = target.key();
        let draft = self.encryption.seal(&key, draft).map_err(|error| Error::Internal(error.to_string()))?;
        Ok(Mutation::new(key, expect, Change::Put { uid, stored_version, value: draft.into() }))
    }

    /// The mutation that a create of an object of the server's own would end in.
    pub fn create_mutation(&self, target: Target<'_>, mut object: ObjectMap) -> Result<Mutation, Error> {
        let (now, user) = (self.now(), User::apiserver());
        if target.resource.definition.namespaced() {
            metadata_mut(&mut object).insert("namespace", target.namespace.into());
        }
        target.resource.default(&mut object)?;
        ownership::track_create(target.resource, &mut object, MANAGER, &now);
        new_object::stamp(self, target.resource, &mut object, &now);
        let writer = Writer { user: &user, now: &now, warnings: &Warnings::UNREAD };
        new_object::prepare(target.resource, &mut object, &writer);
        let causes = new_object::causes(target.resource, &object)?;
        if !causes.is_empty() {
            return Err(target.invalid(causes.into_vec()));
        }
        self.put_mutation(target, Expect::Absent, object)
    }
}

/// An object as it will be stored.
struct Encoded {
    uid: Arc<str>,
    /// The version that it is stored in.
    stored_version: Arc<str>,
    draft: Draft,
}

/// Encodes an object of the request's version; 400 if it could not be read again.
fn encode(target: Target<'_>, object: ObjectMap) -> Result<Encoded, Error> {
    let uid = metadata(&object).map_or("", |metadata| meta::text(metadata, "uid")).into();
    encode_stored(target, uid, target.resource.to_stored(object)?)
}

fn encode_stored(target: Target<'_>, uid: Arc<str>, stored: ObjectMap) -> Result<Encoded, Error> {
    let resource = target.resource;
    let stored_version = resource.version_of(&stored);
    let mark = resource.custom.as_ref().map(|custom| custom.mark(&stored)).unwrap_or_default();
    if managed::depth(&stored) > MAX_DEPTH {
        return Err(Error::BadRequest(format!("the object exceeds the maximum depth of {MAX_DEPTH}")));
    }
    let mut draft =
        Draft::encode(target.namespace, target.name, stored, resource.storage_media_type).settled(mark);
    if !resource.is_read_in_protobuf() {
        draft = draft.without_message();
    }
    Ok(Encoded { uid, stored_version, draft })
}

fn without_managers(target: Target<'_>, encoded: Encoded) -> Result<Encoded, Error> {
    let mut stored = encoded.draft.into_object(Revision(0)).to_closed_map()?;
    metadata_mut(&mut stored).shift_remove("managedFields");
    encode_stored(target, encoded.uid, stored)
}
