//! The next step for one object: as a dependent, and as an owner that waits for its dependents.

pub mod decision;
pub mod owners;
pub mod remote;

use std::sync::Arc;

use tokio::sync::oneshot;

use self::decision::{OwnDependents, Step, decide};
use self::owners::Elsewhere;
use super::NAME;
use super::graph::{FOREGROUND, Facts, Graph, Node, ORPHAN, OwnerReference};
use super::remote_objects::Since;
use crate::api::error::Error;
use crate::api::options::delete::{DeleteOptions, Preconditions};
use crate::api::request::Request;
use crate::api::resource::Resource;
use crate::api::write::touch::Touch;
use crate::api::{Api, Target};
use crate::codec::object::Object;
use crate::failpoints::{Bug, strikes};
use crate::fields;
use crate::kinds::behavior::deletion::Dependents;
use crate::patch::PatchKind;
use crate::revision::Revision;
use crate::schema::resource::Verb;
use crate::tree::{Value, json};

pub struct Collector<'a> {
    pub api: &'a Api,
    pub elsewhere: &'a Elsewhere,
    /// The state in which owners and dependents were looked for, or an earlier one.
    pub decided_at: Revision,
}

/// A question about the dependents that an object of an extension server has in this cluster.
pub struct Question {
    pub uid: String,
    pub namespace: String,
    /// The state that has to be looked at.
    pub at: Revision,
    /// `None` if the dependents are not known.
    pub answer: oneshot::Sender<Option<LocalDependents>>,
}

/// The dependents in this cluster of an object of an extension server.
#[derive(Clone, Copy, Debug)]
pub struct LocalDependents {
    pub own: OwnDependents,
    /// At least one of them blocks a foreground deletion.
    pub block: bool,
    /// Whether an object that cannot be read may be one of them.
    pub may_be_hidden: bool,
}

pub enum CollectResult {
    Done,
    /// An owner is undecided: it may be known when something else is served.
    Undecided,
    /// The object waits for others.
    Later,
}

impl Collector<'_> {
    pub async fn collect(&self, graph: &Graph, node: &Node) -> Result<CollectResult, Error> {
        let Some(resource) = self.resource(node) else { return Ok(CollectResult::Done) };
        let found = self.api.cache.any().get(node.resource, node.namespace(), node.name());
        let Some(object) = found else { return Ok(CollectResult::Done) };
        let Some(facts) = self.facts(&object) else { return Ok(CollectResult::Done) };
        let target = Target { resource: &resource, namespace: node.namespace(), name: node.name() };
        if facts.is_deleting() {
            if facts.has_finalizer(ORPHAN) {
                return self.orphan_dependents(graph, target, &object, &facts).await;
            }
            if facts.has_finalizer(FOREGROUND) {
                return self.wait_for_dependents(graph, target, &object, &facts).await;
            }
            return Ok(CollectResult::Done);
        }
        self.collect_dependent(graph, target, &object, &facts).await
    }

    async fn collect_dependent(
        &self,
        graph: &Graph,
        target: Target<'_>,
        object: &Object,
        facts: &Facts,
    ) -> Result<CollectResult, Error> {
        let owners = self.owners(target, facts);
        self.tell_of_other_namespaces(target, facts).await;
        let policy = match decide(&owners, facts, || self.dependents_of(graph, facts)) {
            Step::Keep => return Ok(CollectResult::Done),
            Step::Undecided => return Ok(CollectResult::Undecided),
            _ if strikes(Bug::DependentForgotten) => return Ok(CollectResult::Done),
            Step::Release(uids) => {
                self.remove_references(target, object, facts, &uids).await?;
                return Ok(CollectResult::Done);
            }
            Step::Unblock => {
                self.unblock_owners(target, object, facts).await?;
                return Ok(CollectResult::Later);
            }
            Step::Delete(policy) => policy,
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
        let request = self.request(Verb::Delete, target).with(&options);
        match self.api.delete(&request).await {
            Ok(_) | Err(Error::NotFound { .. }) => Ok(CollectResult::Done),
            // The object has changed meanwhile; a report of its new version will arrive.
            Err(Error::Conflict { .. }) => Ok(CollectResult::Later),
            Err(error) => Err(error),
        }
    }

    /// The object's facts; `None` if it cannot be read, which is logged.
    fn facts(&self, object: &Object) -> Option<Facts> {
        Facts::of(object).inspect_err(|error| self.api.unreadable.tell(NAME, object, error)).ok()
    }

    /// Deletes the owner once no dependent blocks it. Meanwhile its dependents are collected.
    async fn wait_for_dependents(
        &self,
        graph: &Graph,
        target: Target<'_>,
        owner: &Object,
        facts: &Facts,
    ) -> Result<CollectResult, Error> {
        // As of orphans: a dependent that was made before the owner was marked may not have been reported yet.
        let mut waits = !self.knows_all(graph)
            || !graph.covers(owner.revision(), &self.api.cache.any())
            || !self.covers_extensions(owner)
            || self.elsewhere.objects.has_blocking_dependents(&facts.uid);
        for node in graph.dependents(&facts.uid) {
            let Some(resource) = self.resource(node) else { continue };
            let found = self.api.cache.any().get(node.resource, node.namespace(), node.name());
            let Some(object) = found else { continue };
            let Some(dependent) = self.facts(&object) else {
                // It was a dependent when it could last be read.
                waits = true;
                continue;
            };
            let mut references = dependent.owner_references.iter();
            if !references.any(|owner| owner.uid == facts.uid && owner.blocks()) {
                continue;
            }
            waits = true;
            if dependent.is_deleting() {
                continue;
            }
            // Collected here, since the queue would handle the owner first, again and again.
            let target = Target { resource: &resource, namespace: node.namespace(), name: node.name() };
            if let Err(error) = self.collect_dependent(graph, target, &object, &dependent).await {
                tracing::debug!(%error, name = node.name(), "dependent not collected yet");
            }
        }
        if waits && !strikes(Bug::OwnerGoesFirst) {
            if self.elsewhere.objects.has_dependents(&facts.uid) {
                self.elsewhere.objects.want();
            }
            return Ok(CollectResult::Later);
        }
        self.remove_finalizer(target, owner, facts, FOREGROUND).await?;
        Ok(CollectResult::Done)
    }

    async fn orphan_dependents(
        &self,
        graph: &Graph,
        target: Target<'_>,
        owner: &Object,
        facts: &Facts,
    ) -> Result<CollectResult, Error> {
        // A dependent missed here would be collected after its owner is gone. So the graph must contain everything that
        // existed when the owner was deleted, and no object with unknown owners.
        if !self.knows_all(graph)
            || !graph.covers(owner.revision(), &self.api.cache.any())
            || graph.may_hide_dependents(target.namespace)
            || !self.covers_extensions(owner)
        {
            return Ok(CollectResult::Later);
        }
        for node in graph.dependents(&facts.uid).filter(|_| !strikes(Bug::ReferencesKept)) {
            let Some(resource) = self.resource(node) else { continue };
            let found = self.api.cache.any().get(node.resource, node.namespace(), node.name());
            let Some(object) = found else { continue };
            let Some(dependent) = self.facts(&object) else { return Ok(CollectResult::Later) };
            let target = Target { resource: &resource, namespace: node.namespace(), name: node.name() };
            self.remove_references(target, &object, &dependent, &[&facts.uid]).await?;
        }
        // Those at extension servers are released by a sweep.
        if self.elsewhere.objects.has_dependents(&facts.uid) {
            self.elsewhere.objects.want();
            return Ok(CollectResult::Later);
        }
        self.remove_finalizer(target, owner, facts, ORPHAN).await?;
        Ok(CollectResult::Done)
    }

    /// The dependents of an object, here and at extension servers.
    pub fn dependents_of(&self, graph: &Graph, facts: &Facts) -> OwnDependents {
        let state = self.api.cache.any();
        let found = |node: &Node| state.get(node.resource, node.namespace(), node.name());
        let waits = |object: Arc<Object>| Facts::of(&object).is_ok_and(|facts| facts.waits_for_dependents());
        let remote = self.elsewhere.objects.dependents(&facts.uid);
        OwnDependents {
            exist: !remote.is_empty() || graph.dependents(&facts.uid).next().is_some(),
            one_waits: remote.iter().any(|object| object.facts.waits_for_dependents())
                || graph.dependents(&facts.uid).filter_map(found).any(waits),
        }
    }

    /// Answers a question; `None` if the graph does not have the state.
    pub fn local_dependents(&self, graph: &Graph, question: &Question) -> Option<LocalDependents> {
        let state = self.api.cache.any();
        if !self.knows_all(graph) || !graph.covers(question.at, &state) {
            return None;
        }
        let uid = &question.uid;
        let found = |node: &Node| state.get(node.resource, node.namespace(), node.name());
        let facts = |node: &Node| found(node).map(|object| Facts::of(&object));
        let (mut one_waits, mut block) = (false, false);
        for dependent in graph.dependents(uid).filter_map(facts) {
            let blocks = |owner: &OwnerReference| owner.uid == *uid && owner.blocks();
            // It was a dependent when it could last be read.
            block |= dependent.as_ref().map_or(true, |facts| facts.owner_references.iter().any(blocks));
            one_waits |= dependent.is_ok_and(|facts| facts.waits_for_dependents());
        }
        let own = OwnDependents { exist: graph.dependents(uid).next().is_some(), one_waits };
        Some(LocalDependents { own, block, may_be_hidden: graph.may_hide_dependents(&question.namespace) })
    }

    /// Whether the extension servers have been listed since the owner was marked.
    fn covers_extensions(&self, owner: &Object) -> bool {
        let services = self.api.extensions.newest(&self.api.cache);
        self.elsewhere.objects.covers(&services, Since::Revision(owner.revision()))
    }

    /// Makes the object's owners stop waiting for it.
    async fn unblock_owners(&self, target: Target<'_>, object: &Object, facts: &Facts) -> Result<(), Error> {
        let mut map = object.to_map()?;
        let references = map.get_mut("metadata").and_then(|metadata| metadata.get_mut("ownerReferences"));
        let mut references = references.map(Value::take).unwrap_or_default();
        for owner in references.as_array_mut().into_iter().flatten() {
            if let Some(blocks) = owner.get_mut("blockOwnerDeletion") {
                *blocks = false.into();
            }
        }
        self.put(target, object, facts, "ownerReferences", references).await
    }

    /// Removes owners from an object.
    async fn remove_references(
        &self,
        target: Target<'_>,
        object: &Object,
        facts: &Facts,
        uids: &[&str],
    ) -> Result<(), Error> {
        let map = object.to_map()?;
        let references = fields::items(&map, &["metadata", "ownerReferences"]).iter();
        let stays =
            |owner: &&Value| owner.get("uid").and_then(Value::as_str).is_none_or(|uid| !uids.contains(&uid));
        let kept: Vec<&Value> = references.filter(stays).collect();
        let kept = if kept.is_empty() { Value::Null } else { json!(kept) };
        self.put(target, object, facts, "ownerReferences", kept).await
    }

    async fn remove_finalizer(
        &self,
        target: Target<'_>,
        object: &Object,
        facts: &Facts,
        name: &str,
    ) -> Result<(), Error> {
        let kept: Vec<&String> = facts.finalizers.iter().filter(|finalizer| *finalizer != name).collect();
        let kept = if kept.is_empty() { Value::Null } else { json!(kept) };
        self.put(target, object, facts, "finalizers", kept).await
    }

    /// Writes a member of the metadata, provided that the object has not changed since it was read.
    async fn put(
        &self,
        target: Target<'_>,
        object: &Object,
        facts: &Facts,
        member: &str,
        value: Value,
    ) -> Result<(), Error> {
        if target.resource.hooked().is_some() {
            let (uid, revision, decided_at) = (&facts.uid, object.revision(), Some(self.decided_at));
            let touch = Touch { uid, revision, decided_at, member, value };
            return match self.api.touch(target, &touch).await {
                Ok(_) | Err(Error::NotFound { .. }) => Ok(()),
                Err(error) => Err(error),
            };
        }
        let version = object.revision().to_string();
        let patch = json!({"metadata": {"uid": facts.uid, "resourceVersion": version, member: value}});
        self.merge(target, &patch).await
    }

    async fn merge(&self, target: Target<'_>, patch: &Value) -> Result<(), Error> {
        let request = self.request(Verb::Patch, target);
        let body = patch.to_string();
        match self.api.patch(&request, PatchKind::Merge, body.as_bytes()).await {
            Ok(_) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Owners or dependents that are not there have decided upon the request.
    fn request<'a>(&self, verb: Verb, target: Target<'a>) -> Request<'a> {
        Request::own(verb, target).seen_by_hooks().decided_at(self.decided_at)
    }

    /// Whether the graph has all served resources: otherwise it may lack dependents of a resource that was just added.
    fn knows_all(&self, graph: &Graph) -> bool {
        self.api.catalog.served().stored().all(|resource| graph.holds(resource.id))
    }

    fn resource(&self, node: &Node) -> Option<Arc<Resource>> {
        self.api.catalog.served().by_id(node.resource).cloned()
    }
}
