//! Which servers write to the store, and how they encode: the registry's rows and the StorageVersion objects that show
//! them, changed together in one transaction.

use std::collections::HashMap;
use std::sync::Arc;

use super::catalog::Served;
use super::error::Error;
use super::ownership::{self, Tracking};
use super::resource::Resource;
use super::storage_version::{self, Entry};
use super::write::{create, put_mutation};
use super::{Api, ObjectMap, Target, fields, metadata_mut, now};
use crate::api::options::write::WriteOptions;
use crate::cache::{Range, State};
use crate::codec::at_rest::ValueFormat;
use crate::codec::object::Object;
use crate::kinds::behavior::part::Part;
use crate::kinds::behavior::strategy::Writer;
use crate::kinds::custom::{CustomDefinition, CustomVersion};
use crate::schema::names::{GroupResource, Gvr};
use crate::schema::resource::{ResourceDefinition, Storage};
use crate::storage::{
    Change, EncodedResource, Expect, Fence, Mutation, Registration, RegistryChange, Together,
};
use crate::tree::{Value, json};
use crate::user::User;
use crate::warnings::Warnings;

/// What a registration writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The rows of this server, and every object that differs from them.
    Whole,
    /// Only objects that differ from the rows; the rows exist already.
    Repair,
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

/// How a server encodes one resource. It is kept in the registry's rows, and in a StorageVersion object of this name.
struct Claim {
    name: String,
    encoded: EncodedResource,
    /// The definition of a custom resource, with which its StorageVersion goes.
    owner: Option<Value>,
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

    /// Registers a server for the resources that are served now. An attempt that loses a race is repeated at once, so
    /// that no registration fails because of another server.
    pub async fn register(&self, own: &OwnRegistration, extent: Extent) -> Result<(), Error> {
        let claims = claims(&self.catalog.served());
        let rows = Arc::new(Registration {
            server: own.server.clone(),
            incarnation: own.incarnation.clone(),
            format: ValueFormat::NEWEST,
            resources: claims.iter().map(|claim| claim.encoded.clone()).collect(),
        });
        self.change_together(|state| {
            let mut mutations = self.forget_others(state, own, &claims)?;
            for claim in &claims {
                mutations.extend(self.register_one(state, claim, &entry(&own.server, &claim.encoded))?);
            }
            let needed = extent == Extent::Whole || !mutations.is_empty();
            Ok(needed.then(|| Plan { mutations, registry: RegistryChange::Put(rows.clone()) }))
        })
        .await
    }

    /// Removes the server's entries from the StorageVersions of resources that it does not serve any more.
    fn forget_others(
        &self,
        state: &State,
        own: &OwnRegistration,
        claims: &[Claim],
    ) -> Result<Vec<Mutation>, Error> {
        let resource = self.storage_versions()?;
        let mut mutations = Vec::new();
        for found in state.objects(resource.id).range(&Range::of(None)) {
            if claims.binary_search_by(|claim| (*claim.name).cmp(found.name())).is_ok() {
                continue;
            }
            let object = match resource.decode_closed(found) {
                Ok(object) => object,
                Err(error) => {
                    self.unreadable.tell("registration", found, error);
                    continue;
                }
            };
            if storage_version::servers(&object).any(|server| server == own.server()) {
                mutations.push(removal(resource, found, &object, |server| server == own.server())?);
            }
        }
        Ok(mutations)
    }

    /// Removes the entries of servers that are `gone` according to a state, StorageVersions that are left without
    /// entries, and the object `also`: the lease that would let the server count as alive.
    pub async fn withdraw(
        &self,
        also: Option<Target<'_>>,
        gone: impl Fn(&State, &str) -> bool,
    ) -> Result<(), Error> {
        let resource = self.storage_versions()?;
        self.change_together(|state| {
            let mut mutations: Vec<Mutation> =
                also.and_then(|target| delete(target, state)).into_iter().collect();
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
                let leaving = storage_version::servers(&object).filter(|server| gone(state, server));
                let before = mutations.len();
                for server in leaving {
                    if before == mutations.len() {
                        mutations.push(removal(resource, found, &object, |server| gone(state, server))?);
                    }
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

    /// Plans on the newest state, and repeats that until the transaction meets the state for which it was planned.
    async fn change_together(
        &self,
        plan: impl Fn(&State) -> Result<Option<Plan>, Error>,
    ) -> Result<(), Error> {
        let mut state = self.cache.fresh().await?;
        loop {
            let Some(Plan { mutations, registry }) = plan(&state)? else { return Ok(()) };
            match self.store.write_together(mutations, registry).await? {
                Together::Committed => return Ok(()),
                Together::Conflict { judged_at } => state = self.cache.at_least(judged_at).await?,
            }
        }
    }

    /// A StorageVersion without entries. It is written in a transaction of the server's own, which admission does not
    /// see.
    fn new_object(&self, target: Target<'_>) -> ObjectMap {
        let resource = target.resource;
        let mut object = ObjectMap::new();
        object.extend(resource.definition.gvk().claims());
        metadata_mut(&mut object).insert("name", target.name.into());
        object.insert("spec", ObjectMap::new().into());
        ownership::track_create(resource, &mut object, WriteOptions::default().manager());
        let now = now();
        create::stamp(resource, &mut object, &*self.config.generate_name, &now);
        let writer = Writer { user: &User::apiserver(), now: &now, warnings: &Warnings::UNREAD };
        create::prepare(resource, &mut object, &writer);
        object
    }

    fn register_one(&self, state: &State, claim: &Claim, entry: &Entry) -> Result<Option<Mutation>, Error> {
        let (resource, name) = (self.storage_versions()?, &*claim.name);
        let target = Target { resource, namespace: "", name };
        let found = state.get(resource.id, "", name);
        let (mut old, expect) = match &found {
            Some(found) => (resource.decode_closed(found)?, Expect::At(found.revision())),
            None => (self.new_object(target), Expect::Absent),
        };
        let status = storage_version::with_entry(&old, entry, &now());
        if old.get("status") == Some(&status) && is_owned(&old, claim.owner.as_ref()) {
            return Ok(None);
        }
        if let Some(owner) = &claim.owner {
            metadata_mut(&mut old).insert("ownerReferences", vec![owner.clone()].into());
        }
        put_mutation(target, expect, with_status(resource, &old, status)).map(Some)
    }

    fn storage_versions(&self) -> Result<&Arc<Resource>, Error> {
        self.resources.get(&STORAGE_VERSIONS).ok_or(Error::UnknownResource)
    }
}

const STORAGE_VERSIONS: Gvr = Gvr::fixed("internal.apiserver.k8s.io/v1alpha1", "storageversions");

/// The object's name. The core group is spelled out: `core.pods`.
pub fn storage_version_name(resource: &GroupResource) -> String {
    let group = if resource.group.is_empty() { "core" } else { &resource.group };
    format!("{group}.{}", resource.plural)
}

/// How this server encodes each stored resource, sorted by name.
fn claims(served: &Served) -> Vec<Claim> {
    let registry = served.registry();
    let mut versions: HashMap<&GroupResource, Vec<&ResourceDefinition>> = HashMap::new();
    for definition in registry.definitions() {
        if let Storage::Table { resource, .. } = &definition.storage {
            versions.entry(resource).or_default().push(definition);
        }
    }
    let claim = |(name, definition): (&GroupResource, &Arc<ResourceDefinition>)| {
        let resource = served.get(&definition.gvr())?;
        let encoded = encoded(versions.get(name)?, name, resource);
        let owner = resource.custom.as_ref().map(|custom| owner(&custom.version.definition));
        Some(Claim { name: storage_version_name(name), encoded, owner })
    };
    let mut claims: Vec<_> = registry.stored().filter_map(claim).collect();
    claims.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    claims
}

/// The reference to a definition. Nobody waits for what it refers from.
fn owner(definition: &CustomDefinition) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "name": definition.name.as_str(), "uid": definition.uid.as_str(),
    })
}

fn is_owned(object: &ObjectMap, owner: Option<&Value>) -> bool {
    let references = fields::items(object, &["metadata", "ownerReferences"]);
    owner.is_none_or(|owner| references == std::slice::from_ref(owner))
}

/// `all` are the definitions of every version that is stored under the name.
fn encoded(all: &[&ResourceDefinition], stored: &GroupResource, resource: &Resource) -> EncodedResource {
    let versions = |own: bool| {
        let definitions = all.iter().filter(move |definition| (*definition.group() == stored.group) == own);
        definitions.map(|definition| definition.api_version().as_str().into())
    };
    let declared = |is_told: fn(&CustomVersion) -> bool| {
        let versions = resource.custom.iter().flat_map(|custom| &custom.version.definition.versions);
        let told = versions.filter(move |version| is_told(version));
        told.map(|version| version.kind.gvk.api_version().as_str().into()).collect()
    };
    let (decodable, served) = match &resource.custom {
        Some(_) => (declared(|_| true), declared(|version| version.is_served)),
        None => (versions(true).chain(versions(false)).collect(), versions(true).collect()),
    };
    EncodedResource { resource: resource.id, encoding: (&*resource.stored_version).into(), decodable, served }
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

fn with_status(resource: &Resource, old: &ObjectMap, status: Value) -> ObjectMap {
    let mut new = old.clone();
    new.insert("status", status);
    let options = WriteOptions::default();
    let tracking = Tracking { manager: options.manager(), part: Part::Status };
    ownership::track_update(resource, None, old, &mut new, tracking);
    new
}

/// Writes the object without these entries, or deletes it if neither entries nor finalizers are left.
fn removal(
    resource: &Resource,
    found: &Object,
    object: &ObjectMap,
    gone: impl Fn(&str) -> bool,
) -> Result<Mutation, Error> {
    let target = Target { resource, namespace: "", name: found.name() };
    let new = with_status(resource, object, storage_version::without_entries(object, gone, &now()));
    if storage_version::entries(&new).is_empty() && !found.mentions("finalizers") {
        return Ok(deletion(target, found));
    }
    put_mutation(target, Expect::At(found.revision()), new)
}

fn delete(target: Target<'_>, state: &State) -> Option<Mutation> {
    let found = state.get(target.resource.id, target.namespace, target.name)?;
    Some(deletion(target, &found))
}

fn deletion(target: Target<'_>, found: &Object) -> Mutation {
    Mutation::new(target.key(), Expect::At(found.revision()), Change::Delete)
}
