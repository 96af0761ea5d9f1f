//! What is to be done about one object: as a dependent, and as an owner that waits for its dependents.

use std::sync::Arc;

use serde_json::{Value, json};

use super::graph::{Facts, Graph, Node, OwnerReference};
use crate::api::error::Error;
use crate::api::options::delete::{DeleteOptions, Dependents, Preconditions, Propagation};
use crate::api::options::write::{PatchOptions, WriteOptions};
use crate::api::part::Part;
use crate::api::resource::Resource;
use crate::api::strictness::{Requester, Warnings};
use crate::api::{Api, Target};
use crate::codec::object::Object;
use crate::patch::PatchKind;
use crate::patch::apply::ownership::Conflicts;
use crate::user::User;

/// Set by a foreground deletion: the owner waits for its blocking dependents.
const FOREGROUND: &str = "foregroundDeletion";
/// Set by an orphaning deletion: the owner waits until no dependent names it any more.
const ORPHAN: &str = "orphan";

pub struct Collector<'a> {
    pub api: &'a Api,
}

pub enum Verdict {
    Done,
    /// The object waits for others.
    Later,
}

/// How the owners of a dependent stand.
#[derive(Default)]
struct Owners<'a> {
    /// Alive.
    solid: Vec<&'a OwnerReference>,
    /// Gone.
    dangling: Vec<&'a OwnerReference>,
    /// Waiting, in a foreground deletion, for this dependent among others.
    waiting: Vec<&'a OwnerReference>,
    /// Of kinds that this server does not know; nothing is decided about those.
    unknown: bool,
}

impl Collector<'_> {
    pub async fn collect(&self, graph: &Graph, node: &Node) -> Result<Verdict, Error> {
        let Some(resource) = self.resource(node) else { return Ok(Verdict::Done) };
        let found = self.api.cache.any().get(node.resource, node.namespace(), node.name());
        let Some(object) = found else { return Ok(Verdict::Done) };
        let Some(facts) = Facts::of(&object) else { return Ok(Verdict::Done) };
        let target = Target { resource: &resource, namespace: node.namespace(), name: node.name() };
        if facts.is_deleting() {
            if facts.has_finalizer(ORPHAN) {
                return self.orphan_dependents(graph, target, &facts).await;
            }
            if facts.has_finalizer(FOREGROUND) {
                return self.wait_for_dependents(graph, target, &facts).await;
            }
            return Ok(Verdict::Done);
        }
        self.collect_dependent(graph, target, &object, &facts).await
    }

    async fn collect_dependent(
        &self,
        graph: &Graph,
        target: Target<'_>,
        object: &Object,
        facts: &Facts,
    ) -> Result<Verdict, Error> {
        let owners = self.owners(target, facts);
        if owners.unknown || (owners.dangling.is_empty() && owners.waiting.is_empty()) {
            return Ok(Verdict::Done);
        }
        if !owners.solid.is_empty() {
            let gone: Vec<&str> =
                owners.dangling.iter().chain(&owners.waiting).map(|owner| owner.uid.as_str()).collect();
            self.remove_references(target, object, facts, &gone).await?;
            return Ok(Verdict::Done);
        }
        let has_dependents = graph.dependents(&facts.uid).next().is_some();
        let policy = if !owners.waiting.is_empty() && has_dependents || facts.has_finalizer(FOREGROUND) {
            Propagation::Foreground
        } else if facts.has_finalizer(ORPHAN) {
            Propagation::Orphan
        } else {
            Propagation::Background
        };
        let preconditions = Preconditions {
            uid: Some(facts.uid.clone()),
            resource_version: Some(object.revision().to_string()),
        };
        let options = DeleteOptions {
            dependents: Dependents::Policy(policy),
            preconditions,
            ..DeleteOptions::default()
        };
        match self.api.delete(target, &options).await {
            Ok(_) | Err(Error::NotFound { .. }) => Ok(Verdict::Done),
            // It changed under our hands; its new version is on its way to us.
            Err(Error::Conflict { .. }) => Ok(Verdict::Later),
            Err(error) => Err(error),
        }
    }

    fn owners<'a>(&self, dependent: Target<'_>, facts: &'a Facts) -> Owners<'a> {
        let mut owners = Owners::default();
        for owner in &facts.owner_references {
            match self.owner(dependent, owner) {
                None => owners.unknown = true,
                Some(None) => owners.dangling.push(owner),
                Some(Some(found)) => {
                    let blocks = owner.block_owner_deletion == Some(true);
                    if blocks && found.is_deleting() && found.has_finalizer(FOREGROUND) {
                        owners.waiting.push(owner);
                    } else {
                        owners.solid.push(owner);
                    }
                }
            }
        }
        owners
    }

    /// The living owner; the outer `None` means that its kind is unknown here, or that it cannot own this object.
    fn owner(&self, dependent: Target<'_>, owner: &OwnerReference) -> Option<Option<Facts>> {
        let resource = self.api.resources.by_kind(&owner.api_version, &owner.kind)?;
        let namespaced = resource.definition.namespaced();
        if namespaced && !dependent.resource.definition.namespaced() {
            return None;
        }
        let namespace = if namespaced { dependent.namespace } else { "" };
        let found = self.api.cache.any().get(resource.id, namespace, &owner.name);
        Some(found.and_then(|object| Facts::of(&object)).filter(|facts| facts.uid == owner.uid))
    }

    /// The owner goes once no dependent blocks it; dependents are collected meanwhile.
    async fn wait_for_dependents(
        &self,
        graph: &Graph,
        target: Target<'_>,
        facts: &Facts,
    ) -> Result<Verdict, Error> {
        let mut blocking = Vec::new();
        for node in graph.dependents(&facts.uid) {
            let Some(dependent) = self.api.cache.any().get(node.resource, node.namespace(), node.name())
            else {
                continue;
            };
            let blocks =
                |owner: &OwnerReference| owner.uid == facts.uid && owner.block_owner_deletion == Some(true);
            if Facts::of(&dependent).is_some_and(|dependent| dependent.owner_references.iter().any(blocks)) {
                blocking.push(node.clone());
            }
        }
        if blocking.is_empty() {
            self.remove_finalizer(target, facts, FOREGROUND).await?;
            return Ok(Verdict::Done);
        }
        for node in blocking {
            // Collected here and not by the queue, which would look at the owner first, again and again.
            let collected = Box::pin(self.collect(graph, &node)).await;
            if let Err(error) = collected {
                tracing::debug!(%error, name = node.name(), "dependent not collected yet");
            }
        }
        Ok(Verdict::Later)
    }

    async fn orphan_dependents(
        &self,
        graph: &Graph,
        target: Target<'_>,
        facts: &Facts,
    ) -> Result<Verdict, Error> {
        for node in graph.dependents(&facts.uid) {
            let Some(resource) = self.resource(node) else { continue };
            let found = self.api.cache.any().get(node.resource, node.namespace(), node.name());
            let Some(object) = found else { continue };
            let Some(dependent) = Facts::of(&object) else { continue };
            let target = Target { resource: &resource, namespace: node.namespace(), name: node.name() };
            self.remove_references(target, &object, &dependent, &[&facts.uid]).await?;
        }
        self.remove_finalizer(target, facts, ORPHAN).await?;
        Ok(Verdict::Done)
    }

    /// Takes owners out of an object, if it still is the version that was judged.
    async fn remove_references(
        &self,
        target: Target<'_>,
        object: &Object,
        facts: &Facts,
        uids: &[&str],
    ) -> Result<(), Error> {
        let map = object.to_map()?;
        let references = map.get("metadata").and_then(|metadata| metadata.get("ownerReferences"));
        let kept: Vec<&Value> = references
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter(|owner| owner.get("uid").and_then(Value::as_str).is_none_or(|uid| !uids.contains(&uid)))
            .collect();
        let kept = if kept.is_empty() { Value::Null } else { json!(kept) };
        let version = object.revision().to_string();
        let patch =
            json!({"metadata": {"uid": facts.uid, "resourceVersion": version, "ownerReferences": kept}});
        self.merge(target, &patch).await
    }

    async fn remove_finalizer(&self, target: Target<'_>, facts: &Facts, name: &str) -> Result<(), Error> {
        let kept: Vec<&String> = facts.finalizers.iter().filter(|finalizer| *finalizer != name).collect();
        let kept = if kept.is_empty() { Value::Null } else { json!(kept) };
        let found = self.api.cache.any().get(target.resource.id, target.namespace, target.name);
        let Some(found) = found else { return Ok(()) };
        let version = found.revision().to_string();
        let patch = json!({"metadata": {"uid": facts.uid, "resourceVersion": version, "finalizers": kept}});
        self.merge(target, &patch).await
    }

    async fn merge(&self, target: Target<'_>, patch: &Value) -> Result<(), Error> {
        let options = PatchOptions { write: WriteOptions::default(), conflicts: Conflicts::Refuse };
        let body = patch.to_string();
        let user = User::apiserver();
        let requester = Requester { user: &user, warnings: &Warnings::default() };
        match self.api.patch(target, Part::Main, PatchKind::Merge, body.as_bytes(), &options, requester).await
        {
            Ok(_) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn resource(&self, node: &Node) -> Option<Arc<Resource>> {
        self.api.resources.stored().find(|resource| resource.id == node.resource).cloned()
    }
}
