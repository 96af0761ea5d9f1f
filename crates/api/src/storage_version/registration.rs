//! The registration of servers that write to the store, with their encodings: the registry's rows and the StorageVersion
//! objects that show them, changed together in one transaction.

mod claims;

use std::sync::Arc;

use self::claims::{Claim, Owner, changed_claims, claims};
use super::Entry;
use crate::cache::{Range, State};
use crate::catalog::Served;
use crate::codec::at_rest::ValueFormat;
use crate::codec::object::Object;
use crate::effects::Effects;
use crate::error::Error;
use crate::kinds::behavior::part::Part;
use crate::kinds::behavior::strategy::Writer;
use crate::mutation::new_object;
use crate::options::write::WriteOptions;
use crate::ownership::{self, Tracking};
use crate::resource::Resource;
use crate::schema::names::Gvr;
use crate::storage::{
    Amendment, EncodedResource, Expect, Fence, Mutation, Registration, RegistryChange, Together,
};
use crate::storage_version;
use crate::tree::Value;
use crate::user::User;
use crate::warnings::Warnings;
use crate::{Api, ObjectMap, Target, fields, metadata_mut};

/// Each conflict is another server's success. After so many in a row the attempt fails, and the next one comes after a pause.
const MOST_CONFLICTS: u32 = 100;

pub use self::claims::storage_version_name;

/// The extent of what a registration writes.
#[derive(Clone)]
pub enum Extent {
    /// The rows of this server, and every object that differs from them.
    Whole,
    /// Only objects that differ from the rows; the rows exist already.
    Repair,
    /// The changes since this generation, for which the server is registered.
    Since(Arc<Served>),
}

/// The content of a transaction, which is committed wholly or not at all.
struct Plan {
    mutations: Vec<Mutation>,
    registry: RegistryChange,
}

/// The id under which this server registers, and its present incarnation.
#[derive(Clone, Debug)]
pub struct OwnRegistration {
    server: Arc<str>,
    incarnation: Arc<str>,
}

impl OwnRegistration {
    pub fn new(server: &str, incarnation: &str) -> Self {
        Self { server: server.into(), incarnation: incarnation.into() }
    }

    pub fn server(&self) -> &str {
        &self.server
    }
}

impl Api {
    /// The server's right to write, which depends on its registration.
    pub fn fence(&self, registration: &OwnRegistration) -> Fence {
        // A server needs namespaces and leases before it can register.
        let first = [
            Gvr::fixed("v1", "namespaces"),
            Gvr::fixed("coordination.k8s.io/v1", "leases"),
            STORAGE_VERSIONS,
        ];
        let exempt = first.iter().filter_map(|name| self.resources.get(name)).map(|resource| resource.id);
        Fence {
            server: registration.server.clone(),
            incarnation: registration.incarnation.clone(),
            exempt: exempt.collect(),
        }
    }

    /// Registers a server for the resources that are served now, and returns these. An attempt that loses a race is repeated
    /// at once, so that no registration fails because of another server.
    pub async fn register(&self, own: &OwnRegistration, extent: &Extent) -> Result<Arc<Served>, Error> {
        let served = self.catalog.served();
        match extent {
            Extent::Whole => self.register_all(own, &served, true).await?,
            Extent::Repair => self.register_all(own, &served, false).await?,
            Extent::Since(before) => self.register_changes(own, before, &served).await?,
        }
        Ok(served)
    }

    /// Registers the server for everything that is served. Without `rows`, its rows are written only if an object has to
    /// be.
    async fn register_all(&self, own: &OwnRegistration, served: &Served, rows: bool) -> Result<(), Error> {
        let claims = claims(served);
        let registration = Arc::new(Registration {
            server: own.server.clone(),
            incarnation: own.incarnation.clone(),
            format: ValueFormat::NEWEST,
            resources: claims.iter().map(|claim| claim.encoded.clone()).collect(),
        });
        self.change_together(|state| {
            let mut mutations = Vec::new();
            self.forget_others(state, own, &claims, &mut mutations)?;
            for claim in &claims {
                mutations.extend(self.register_one(state, own, claim)?);
            }
            let needed = rows || !mutations.is_empty();
            Ok(needed.then(|| Plan { mutations, registry: RegistryChange::Put(registration.clone()) }))
        })
        .await
    }

    /// Writes what is different from an earlier generation, for which the server is registered: a definition costs the same
    /// however many resources there are.
    async fn register_changes(
        &self,
        own: &OwnRegistration,
        before: &Served,
        served: &Served,
    ) -> Result<(), Error> {
        let (claims, dropped) = changed_claims(before, served);
        if claims.is_empty() && dropped.is_empty() {
            return Ok(());
        }
        let amendment = Arc::new(Amendment {
            server: own.server.clone(),
            encoded: claims.iter().map(|claim| claim.encoded.clone()).collect(),
            dropped: dropped.iter().map(|claim| claim.encoded.resource).collect(),
        });
        let resource = self.storage_versions()?;
        self.change_together(|state| {
            let mut mutations = Vec::new();
            for claim in &dropped {
                if let Some(found) = state.get(resource.id, "", &claim.name) {
                    self.forget(&found, own, &mut mutations)?;
                }
            }
            for claim in &claims {
                mutations.extend(self.register_one(state, own, claim)?);
            }
            Ok(Some(Plan { mutations, registry: RegistryChange::Amend(amendment.clone()) }))
        })
        .await
    }

    /// Removes the server's entries from the StorageVersions of resources that it does not serve any more.
    fn forget_others(
        &self,
        state: &State,
        own: &OwnRegistration,
        claims: &[Claim],
        mutations: &mut Vec<Mutation>,
    ) -> Result<(), Error> {
        let resource = self.storage_versions()?;
        for found in state.objects(resource.id).range(&Range::of(None)) {
            if claims.binary_search_by(|claim| (*claim.name).cmp(found.name())).is_ok() {
                continue;
            }
            self.forget(found, own, mutations)?;
        }
        Ok(())
    }

    /// Removes the server's entry from a StorageVersion, if there is one.
    fn forget(
        &self,
        found: &Arc<Object>,
        own: &OwnRegistration,
        mutations: &mut Vec<Mutation>,
    ) -> Result<(), Error> {
        let object = match self.storage_versions()?.decode_closed(found) {
            Ok(object) => object,
            Err(error) => {
                self.unreadable.tell("registration", found, error);
                return Ok(());
            }
        };
        let is_own = |server: &str| server == own.server();
        match storage_version::servers(&object).any(is_own) {
            true => self.remove_entries(found, &object, is_own, mutations),
            false => Ok(()),
        }
    }

    /// Writes the object without these entries, or deletes it if neither entries nor finalizers are left.
    fn remove_entries(
        &self,
        found: &Arc<Object>,
        object: &ObjectMap,
        gone: impl Fn(&str) -> bool,
        mutations: &mut Vec<Mutation>,
    ) -> Result<(), Error> {
        let resource = self.storage_versions()?;
        let (target, now) = (Target { resource, namespace: "", name: found.name() }, self.now());
        let status = storage_version::without_entries(object, gone, &now);
        let new = with_status(resource, object, status, &now);
        if storage_version::entries(&new).is_empty() && !found.mentions("finalizers") {
            return self.add_removal(Effects::default(), target, found.clone(), mutations);
        }
        mutations.push(self.put_mutation(target, Expect::At(found.revision()), new)?);
        Ok(())
    }

    /// Removes the entries of servers that are `gone` from an object according to a state, StorageVersions that are left without
    /// entries, and the object `also`: the lease that would let the server count as alive.
    pub async fn withdraw(
        &self,
        also: Option<Target<'_>>,
        gone: impl Fn(&State, &ObjectMap, &str) -> bool,
    ) -> Result<(), Error> {
        let resource = self.storage_versions()?;
        self.change_together(|state| {
            let mut mutations = Vec::new();
            if let Some(target) = also
                && let Some(found) = state.get(target.resource.id, target.namespace, target.name)
            {
                self.add_removal(Effects::default(), target, found, &mut mutations)?;
            }
            let mut servers: Vec<Box<str>> = Vec::new();
            for found in state.objects(resource.id).range(&Range::of(None)) {
                let object = match resource.decode_closed(found) {
                    Ok(object) => object,
                    // The servers that an unreadable object names are unknown, so no entry is removed.
                    Err(error) => {
                        self.unreadable.tell("storage-version-gc", found, error);
                        continue;
                    }
                };
                let is_gone = |server: &str| gone(state, &object, server);
                let leaving: Vec<&str> =
                    storage_version::servers(&object).filter(|server| is_gone(server)).collect();
                if !leaving.is_empty() {
                    self.remove_entries(found, &object, is_gone, &mut mutations)?;
                }
                for server in leaving {
                    if !servers.iter().any(|known| &**known == server) {
                        servers.push(server.into());
                    }
                }
            }
            let registry = RegistryChange::Remove(servers);
            Ok((!mutations.is_empty()).then_some(Plan { mutations, registry }))
        })
        .await
    }

    /// Plans on the newest state, and repeats that until the transaction meets the state for which it was planned. In a database
    /// whose indexes a power cut has spoilt it may never do so.
    async fn change_together(
        &self,
        plan: impl Fn(&State) -> Result<Option<Plan>, Error>,
    ) -> Result<(), Error> {
        let mut state = self.cache.fresh().await?;
        for _ in 0..MOST_CONFLICTS {
            let Some(Plan { mutations, registry }) = plan(&state)? else { return Ok(()) };
            match self.store.write_together(mutations, registry).await? {
                Together::Committed => return Ok(()),
                Together::Conflict { judged_at } => state = self.cache.at_least(judged_at).await?,
            }
        }
        Err(Error::Internal("what the database lists and what it finds differ, time after time".to_owned()))
    }

    /// A StorageVersion without entries. It is written in a transaction of the server's own, which admission does not
    /// see.
    fn new_object(&self, target: Target<'_>) -> ObjectMap {
        let resource = target.resource;
        let mut object = ObjectMap::new();
        object.extend(resource.definition.gvk().claims());
        metadata_mut(&mut object).insert("name", target.name.into());
        object.insert("spec", ObjectMap::new().into());
        let now = self.now();
        ownership::track_create(resource, &mut object, WriteOptions::default().manager(), &now);
        new_object::stamp(self, resource, &mut object, &now);
        let writer = Writer { user: &User::apiserver(), now: &now, warnings: &Warnings::UNREAD };
        new_object::prepare(resource, &mut object, &writer);
        object
    }

    fn register_one(
        &self,
        state: &State,
        own: &OwnRegistration,
        Claim { name, encoded, owner }: &Claim,
    ) -> Result<Option<Mutation>, Error> {
        let resource = self.storage_versions()?;
        let target = Target { resource, namespace: "", name };
        let found = state.get(resource.id, "", name);
        let (mut old, expect) = match &found {
            Some(found) => (resource.decode_closed(found)?, Expect::At(found.revision())),
            None => (self.new_object(target), Expect::Absent),
        };
        let status = storage_version::with_entry(&old, &entry(&own.server, encoded), &self.now());
        let owner = owner.as_ref().map(Owner::reference).filter(|owner| !is_owned(&old, owner));
        if old.get("status") == Some(&status) && owner.is_none() {
            return Ok(None);
        }
        if let Some(owner) = owner {
            metadata_mut(&mut old).insert("ownerReferences", vec![owner].into());
        }
        self.put_mutation(target, expect, with_status(resource, &old, status, &self.now())).map(Some)
    }

    fn storage_versions(&self) -> Result<&Arc<Resource>, Error> {
        self.resources.get(&STORAGE_VERSIONS).ok_or(Error::UnknownResource)
    }
}

const STORAGE_VERSIONS: Gvr = Gvr::fixed("internal.apiserver.k8s.io/v1alpha1", "storageversions");

fn is_owned(object: &ObjectMap, owner: &Value) -> bool {
    fields::items(object, &["metadata", "ownerReferences"]) == std::slice::from_ref(owner)
}

fn entry(server: &str, encoded: &EncodedResource) -> Entry {
    let texts = |versions: &[Box<str>]| versions.iter().map(|version| version.to_string()).collect();
    Entry {
        server: server.to_owned(),
        encoding: encoded.encoding.to_string(),
        decodable: texts(&encoded.decodable),
        served: texts(&encoded.served),
    }
}

fn with_status(resource: &Resource, old: &ObjectMap, status: Value, now: &str) -> ObjectMap {
    let mut new = old.clone();
    new.insert("status", status);
    let options = WriteOptions::default();
    let tracking = Tracking { manager: options.manager(), part: Part::Status, now };
    ownership::track_update(resource, None, old, &mut new, tracking);
    new
}
