//! Writes of whole states for tests: what is in a snapshot, and objects as they are given. Nothing is asked or admitted.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::snapshot::Snapshot;
use crate::cache::{Objects, Range, State};
use crate::codec::media_type::MediaType;
use crate::codec::object::{Draft, Object, Replaces};
use crate::decode::{self, Encoded};
use crate::error::Error;
use crate::options::strictness::Strictness;
use crate::options::write::FieldValidation;
use crate::resource::Resource;
use crate::revision::Revision;
use crate::schema::names::{GroupResource, GroupVersion};
use crate::schema::resource::Scope;
use crate::storage::{Change, Expect, Key, Mutation, ResourceId, Written};
use crate::tree::{Map, Value};
use crate::warnings::Warnings;
use crate::{Api, Target, fields, meta, metadata_mut};

/// How often a write is tried while others write the same objects.
const ATTEMPTS: usize = 20;

impl Api {
    /// Makes everything what it is in a snapshot of this server, or of one that has the same history. Returns the newest
    /// revision then, which is higher than before in any case. What has not changed is not written.
    pub async fn restore(&self, snapshot: &Snapshot) -> Result<Revision, Error> {
        let mut is_written = false;
        for _ in 0..ATTEMPTS {
            let state = self.cache.fresh().await?;
            let differences = self.differences(&state, snapshot).await?;
            if is_written && differences.is_empty() {
                return Ok(state.revision);
            }
            let last = self.aggregation.row_behind(&state);
            is_written |= self.write_unit(differences, last).await?;
        }
        Err(busy())
    }

    /// The mutations that make a state that of a snapshot.
    async fn differences(&self, state: &State, snapshot: &Snapshot) -> Result<Vec<Mutation>, Error> {
        let served = self.catalog.served();
        let own = [self.hidden.token_keys.id(), self.hidden.aggregations.id()];
        let names: BTreeSet<GroupResource> = snapshot
            .resources
            .keys()
            .cloned()
            .chain(served.stored().map(|one| one.group_resource()))
            .collect();
        let names: Vec<GroupResource> = names.into_iter().collect();
        let ids = self.cache.backend().resource_ids(&names).await?;
        let mut mutations = Vec::new();
        for (name, id) in names.iter().zip(ids).filter(|(_, id)| !own.contains(id)) {
            let there = snapshot.resources.get(name);
            let wanted = there.map(|there| snapshot.state.objects(*there)).unwrap_or_default();
            self.differences_of(id, &state.objects(id), &wanted, &mut mutations)?;
        }
        Ok(mutations)
    }

    fn differences_of(
        &self,
        resource: ResourceId,
        found: &Objects,
        wanted: &Objects,
        mutations: &mut Vec<Mutation>,
    ) -> Result<(), Error> {
        let all = Range::of(None);
        let (mut found, mut wanted) = (found.range(&all).peekable(), wanted.range(&all).peekable());
        loop {
            let order = match (found.peek(), wanted.peek()) {
                (Some(found), Some(wanted)) => found.key().cmp(wanted.key()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return Ok(()),
            };
            let found = if order.is_le() { found.next() } else { None };
            let wanted = if order.is_ge() { wanted.next() } else { None };
            if let Some(mutation) = self.difference(resource, found, wanted)? {
                mutations.push(mutation);
            }
        }
    }

    fn difference(
        &self,
        resource: ResourceId,
        found: Option<&Arc<Object>>,
        wanted: Option<&Arc<Object>>,
    ) -> Result<Option<Mutation>, Error> {
        let Some(object) = found.or(wanted) else { return Ok(None) };
        let key = Key::new(resource, object.namespace(), object.name());
        let expect = found.map_or(Expect::Absent, |found| Expect::At(found.revision()));
        let Some(wanted) = wanted else { return Ok(Some(Mutation::new(key, expect, Change::Delete))) };
        let is_same =
            |found: &Arc<Object>| Arc::ptr_eq(found, wanted) || found.to_stored() == wanted.to_stored();
        if found.is_some_and(is_same) {
            return Ok(None);
        }
        let draft = Draft::parse(wanted.namespace(), wanted.name(), wanted.to_stored());
        let draft = draft.replacing(Replaces::Anything);
        let draft = self.encryption.seal(&key, draft).map_err(|error| Error::Internal(error.to_string()))?;
        let change = Change::Put {
            uid: wanted.uid().unwrap_or_default().into(),
            stored_version: wanted.api_version().unwrap_or_default().into(),
            value: draft.into(),
        };
        Ok(Some(Mutation::new(key, expect, change)))
    }

    /// Creates or replaces objects, in one transaction, as they are: with their status, uids and times if they have some.
    pub async fn seed(&self, objects: &[Map]) -> Result<Revision, Error> {
        for _ in 0..ATTEMPTS {
            let state = self.cache.fresh().await?;
            let (mut mutations, mut seen) = (Vec::with_capacity(objects.len()), BTreeSet::new());
            for object in objects {
                let mutation = self.seeded(&state, object)?;
                if !seen.insert(mutation.key.clone()) {
                    let Key { namespace, name, .. } = &mutation.key;
                    return Err(Error::bad_request(format!("{namespace}/{name} is there twice")));
                }
                mutations.push(mutation);
            }
            let Some(last) = mutations.pop() else { return Ok(state.revision) };
            if self.write_unit(mutations, last).await? {
                return Ok(self.cache.revision());
            }
        }
        Err(busy())
    }

    fn seeded(&self, state: &State, object: &Map) -> Result<Mutation, Error> {
        let resource = self.resource_of(object)?;
        let text = Value::Object(object.clone()).to_string();
        let body = Encoded { media: MediaType::Json, bytes: text.into() };
        let strictness = Strictness { validation: FieldValidation::Ignore, warnings: &Warnings::UNREAD };
        let mut object = decode::object(&resource.definition, &body, strictness)?;
        resource.default(&mut object)?;
        let metadata = metadata_mut(&mut object);
        let name = meta::text(metadata, "name").to_owned();
        if name.is_empty() {
            let kind = &resource.definition.kind.gvk.kind;
            return Err(Error::bad_request(format!("a {kind} has no name")));
        }
        let namespace = match resource.definition.scope {
            Scope::Cluster => String::new(),
            Scope::Namespaced => Some(meta::text(metadata, "namespace"))
                .filter(|namespace| !namespace.is_empty())
                .unwrap_or("default")
                .to_owned(),
        };
        if !namespace.is_empty() {
            metadata.insert("namespace", namespace.as_str().into());
        }
        let found = state.get(resource.id, &namespace, &name);
        if meta::text(metadata, "uid").is_empty() {
            let known = found.as_ref().and_then(|found| found.uid().map(str::to_owned));
            let uid = known.unwrap_or_else(|| self.runtime.random.uuid().to_string());
            metadata.insert("uid", uid.into());
        }
        if meta::text(metadata, "creationTimestamp").is_empty() {
            metadata.insert("creationTimestamp", self.now().into());
        }
        let expect = found.map_or(Expect::Absent, |found| Expect::At(found.revision()));
        let target = Target { resource: &resource, namespace: &namespace, name: &name };
        self.put_mutation(target, expect, object)
    }

    /// The resource of an object's kind.
    fn resource_of(&self, object: &Map) -> Result<Arc<Resource>, Error> {
        let (version, kind) = (fields::text(object, &["apiVersion"]), fields::text(object, &["kind"]));
        let parsed = match version.split_once('/') {
            Some((group, version)) => GroupVersion::new(group, version),
            None => GroupVersion::new("", version),
        };
        let served = self.catalog.served();
        let resource = served.by_kind(&parsed.with_kind(kind)).filter(|one| served.stores(one.id));
        resource.cloned().ok_or_else(|| {
            Error::bad_request(format!("nothing of kind {kind:?} and apiVersion {version:?} is stored here"))
        })
    }

    /// Writes all of these or none; whether they are written. Otherwise what they expected has changed.
    async fn write_unit(&self, before: Vec<Mutation>, last: Mutation) -> Result<bool, Error> {
        match self.store.write_joined(before, last).await? {
            Written::Committed { .. } => Ok(true),
            Written::Conflict { judged_at, .. } | Written::Unmet { judged_at } => {
                self.cache.at_least(judged_at).await?;
                Ok(false)
            }
        }
    }
}

fn busy() -> Error {
    Error::Internal("others write the same objects all the time".to_owned())
}
