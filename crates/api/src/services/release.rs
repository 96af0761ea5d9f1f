//! Release of claims: those of a Service that gives them up, and orphans, which no Service holds.

use std::sync::Arc;

use super::Claim;
use super::claims::{MANAGER, MANAGER_LABEL};
use crate::cache::{Range, State};
use crate::codec::object::{Object, Undecodable};
use crate::error::Error;
use crate::failpoints::{Bug, strikes};
use crate::schema::names::Gvr;
use crate::storage::{Change, Expect, Key, Mutation, Requirement, ResourceId, Written};
use crate::tree::Value;
use crate::{Cluster, ObjectMap, Target, fields};

/// How often a claim is given back when its Service is written meanwhile.
const ATTEMPTS: usize = 4;

impl Cluster {
    /// Releases claims of a Service. Claims that cannot be released now are found by the sweep.
    pub(super) async fn release(&self, target: Target<'_>, claims: &[Claim]) {
        if claims.is_empty() || strikes(Bug::ClaimKept) {
            return;
        }
        let Ok(state) = self.cache.fresh().await else { return };
        for claim in claims {
            if let Err(error) = self.release_one(target, *claim, state.clone()).await {
                tracing::warn!(%error, name = claim.name(), "cannot release what a Service had");
            }
        }
    }

    /// Releases a claim, unless the Service holds it: a failover may have taken back why it is released. If the state is
    /// too old to tell, the newest one is asked for.
    async fn release_one(
        &self,
        target: Target<'_>,
        claim: Claim,
        mut state: Arc<State>,
    ) -> Result<(), Error> {
        let Some((resource, name)) = self.claim_key(claim) else { return Ok(()) };
        for _ in 0..ATTEMPTS {
            let Some(object) = state.get(resource, "", &name) else { return Ok(()) };
            let service = state.get(target.resource.id, target.namespace, target.name);
            let is_held = service.as_ref().is_some_and(|service| self.may_hold(service, &name));
            let is_held = is_held && !strikes(Bug::ClaimDroppedEarly);
            if is_held || !is_parent(&object, target.namespace, target.name) {
                return Ok(());
            }
            let orphan = Orphan { resource, object, without: without(target.key(), service.as_deref()) };
            if self.drop_claim(&orphan).await? {
                return Ok(());
            }
            state = self.cache.fresh().await?;
        }
        Ok(())
    }

    /// Removes a claim if neither it nor its Service has changed. Returns whether it is removed.
    async fn drop_claim(&self, orphan: &Orphan) -> Result<bool, Error> {
        let Orphan { resource, object, without } = orphan;
        let key = Key::new(*resource, "", object.name());
        let mutation = Mutation::new(key, Expect::At(object.revision()), Change::Delete);
        let written = self.store.write(mutation.requiring([without.clone()])).await?;
        Ok(matches!(written, Written::Committed { .. }))
    }

    /// Claims that no Service holds in this server's state.
    pub fn orphaned_claims(&self, state: &State) -> Vec<Orphan> {
        let Some(services) = self.resources.get(&Gvr::fixed("v1", "services")) else { return Vec::new() };
        let addresses = self
            .resources
            .get(&Gvr::fixed("networking.k8s.io/v1", "ipaddresses"))
            .map(|addresses| addresses.id);
        let mut orphans = Vec::new();
        for resource in addresses.into_iter().chain([self.hidden.node_ports.id()]) {
            for object in state.objects(resource).range(&Range::of(None)) {
                let claimed =
                    resource == self.hidden.node_ports.id() || object.label(MANAGER_LABEL) == Some(MANAGER);
                let parent = match parent(object) {
                    Ok(parent) => parent.filter(|_| claimed),
                    Err(error) => {
                        self.unreadable.tell("service-claims", object, error);
                        continue;
                    }
                };
                let Some((namespace, name)) = parent else { continue };
                let service = state.get(services.id, &namespace, &name);
                if !service.as_ref().is_some_and(|service| self.may_hold(service, object.name())) {
                    let key = Key::new(services.id, &namespace, &name);
                    let without = without(key, service.as_deref());
                    orphans.push(Orphan { resource, object: object.clone(), without });
                }
            }
        }
        orphans
    }

    /// Whether a Service holds the claim of this name. A Service that cannot be read may hold it.
    fn may_hold(&self, service: &Object, claim: &str) -> bool {
        let service_map = match service.to_map() {
            Ok(map) => map,
            Err(error) => {
                self.unreadable.tell("service-claims", service, error);
                return true;
            }
        };
        let held = fields::object(&service_map, "spec").map(super::wants::held).unwrap_or_default();
        held.iter().any(|held| held.name() == claim)
    }

    /// Deletes an orphaned claim, unless it or its Service has been written meanwhile.
    pub async fn sweep(&self, orphan: &Orphan) -> Result<(), Error> {
        self.drop_claim(orphan).await.map(drop)
    }

    /// Releases everything that a deleted Service had.
    pub(crate) async fn release_all(&self, target: Target<'_>, last: &ObjectMap) {
        if let Some(spec) = fields::object(last, "spec") {
            self.release(target, &super::wants::held(spec)).await;
        }
    }
}

/// A claim that no Service holds.
#[derive(Clone, Debug)]
pub struct Orphan {
    resource: ResourceId,
    object: Arc<Object>,
    /// The version of its Service that does not hold it.
    without: Requirement,
}

impl Orphan {
    /// Whether both are the same claim. One created later under the same name is a different claim.
    pub fn is(&self, other: &Self) -> bool {
        self.resource == other.resource
            && self.object.name() == other.object.name()
            && self.object.revision() == other.object.revision()
    }
}

/// Namespace and name of the Service for which the claim was made.
fn parent(object: &Object) -> Result<Option<(String, String)>, Undecodable> {
    let map = object.to_map()?;
    let reference = fields::at(&map, &["spec", "parentRef"]).and_then(Value::as_object);
    Ok(reference.and_then(|reference| {
        let text = |name: &str| fields::text(reference, &[name]).to_owned();
        let of_service = text("resource") == "services" && text("group").is_empty();
        of_service.then(|| (text("namespace"), text("name")))
    }))
}

/// The requirement that the Service is still as it was found.
fn without(key: Key, service: Option<&Object>) -> Requirement {
    Requirement { key, expect: service.map_or(Expect::Absent, |service| Expect::At(service.revision())) }
}

/// Whether the claim was made for this Service; false if it cannot be read, so that it stays.
fn is_parent(object: &Object, namespace: &str, name: &str) -> bool {
    let parent = parent(object).ok().flatten();
    parent.is_some_and(|parent| (&*parent.0, &*parent.1) == (namespace, name))
}
