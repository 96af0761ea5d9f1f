//! Pods past their grace period: deleted, and still there when they had to be gone long ago, since their node is lost. They
//! count as objects and hold nothing else (`QuotaV1Pod` of `pkg/quota/v1/evaluator/core/pods.go`).
//!
//! A Pod gets there by the clock, without a write. So a write is made for it, which gives back what the Pod was charged for
//! and notes so in a row that nobody serves. Who asks what the Pod uses looks at that row, not at the clock: in every
//! state it is the same for everybody. The note requires the Pod as it was seen, and a write that charges or deletes a Pod
//! which is being deleted requires the note as that write has seen it, so nothing is given back twice. The note goes with the Pod.

use futures_util::future::join_all;

use super::amounts::{Amounts, is_zero};
use super::ledger::Quotas;
use super::pods;
use super::scopes::Requirement as Scope;
use crate::cache::{Range, State};
use crate::codec::object::Object;
use crate::effects::Effects;
use crate::error::Error;
use crate::followers::grace_ends::end_of;
use crate::resource::Resource;
use crate::schema::names::Gvr;
use crate::storage::counting::Charge;
use crate::storage::{Change, Expect, Key, Mutation, Requirement, Written};
use crate::tree::Value;
use crate::{Cluster, ObjectMap, Target, fields, meta, metadata};

const PODS: Gvr = Gvr::fixed("v1", "pods");
/// The prefix of the names of notes about Pods; notes about claims have the claims' names.
const PREFIX: &str = "pods/";
/// How many Pods are looked after at the same time.
const AT_ONCE: usize = 64;
/// How often a note is tried while others change its Pod or the set of quotas.
const TRIES: usize = 16;

/// The Pods that have been found past their grace period, in one state.
pub struct PastGrace<'a> {
    cluster: &'a Cluster,
    state: &'a State,
}

impl<'a> PastGrace<'a> {
    pub fn new(cluster: &'a Cluster, state: &'a State) -> Self {
        Self { cluster, state }
    }

    /// Whether what the Pod was charged for has been given back.
    pub fn holds(&self, pod: &ObjectMap) -> bool {
        let Some(metadata) = metadata(pod).filter(|metadata| meta::is_terminating(metadata)) else {
            return false;
        };
        let name = note_name(meta::text(metadata, "name"));
        let note = self.cluster.hidden.quota_sets.get(self.state, meta::text(metadata, "namespace"), &name);
        note.is_some_and(|note| uid_of(&note).is_some_and(|uid| uid == meta::text(metadata, "uid")))
    }

    /// The requirement or the mutation of a Pod's note that a write of the Pod carries. Only Pods that are being deleted have
    /// a note, in namespaces that have had a quota.
    pub fn noted(&self, target: Target<'_>, old: Option<&ObjectMap>, new: Option<&ObjectMap>) -> Effects {
        let is_terminating = old.and_then(metadata).is_some_and(meta::is_terminating);
        if !is_terminating || self.cluster.set_revision(self.state, target.namespace).is_none() {
            return Effects::default();
        }
        let Requirement { key, expect } = self.seen_note(target);
        let mut effects = Effects::default();
        match (expect, new) {
            (Expect::At(_), None) => effects.join([Mutation::new(key, expect, Change::Delete)]),
            _ => effects.require([Requirement { key, expect }]),
        }
        effects
    }

    /// The requirement that a Pod's note is as it is in the state.
    fn seen_note(&self, target: Target<'_>) -> Requirement {
        self.cluster.hidden.quota_sets.as_seen(self.state, target.namespace, &note_name(target.name))
    }

    /// The write that gives back what a Pod was charged for; `None` if it is not past its grace period, or if nothing is
    /// left to be given back.
    fn release(&self, target: Target<'_>) -> Option<Mutation> {
        let Self { cluster, state } = *self;
        let (resource, namespace, name) = (target.resource.id, target.namespace, target.name);
        cluster.set_revision(state, namespace)?;
        let found = state.get(resource, namespace, name)?;
        let pod = target
            .resource
            .decode(&found)
            .inspect_err(|error| cluster.unreadable.tell("quotas", &found, error));
        let pod =
            pod.ok().filter(|pod| end_of(pod).is_some_and(|end| end < cluster.runtime.clock.timestamp()))?;
        if self.holds(&pod) {
            cluster.grace_ends.forget(found.key());
            return None;
        }
        let mut returned = pods::as_object();
        returned.subtract(&pods::usage(&pod));
        let mut charges = Vec::new();
        for (name, quota) in cluster.quotas(state, namespace).ok()? {
            if !Scope::all(&quota).iter().all(|scope| pods::matches(scope, &pod)) {
                continue;
            }
            let used = fields::at(&quota, &["status", "used"]).and_then(Value::as_object);
            let mut amounts: Amounts = returned.clone();
            amounts
                .retain(|name, amount| used.is_some_and(|used| used.contains_key(name)) && !is_zero(amount));
            if !amounts.is_empty() {
                let key = Key::new(cluster.quota_resource(), namespace, &name);
                charges.push(Charge { key, ledger: &Quotas, amounts: amounts.into(), limited: false });
            }
        }
        // A quota that counts the Pod later begins without it, or finds it here.
        if charges.is_empty() {
            return None;
        }
        let Requirement { key, expect } = self.seen_note(target);
        let mut row = ObjectMap::new();
        row.insert("uid", fields::text(&pod, &["metadata", "uid"]).into());
        let note = cluster.hidden.quota_sets.put(namespace, &key.name, expect, row);
        let as_seen = Requirement { key: target.key(), expect: Expect::At(found.revision()) };
        let requires = [as_seen, cluster.set_requirement(state, namespace)];
        Some(note.requiring(requires).charging(charges))
    }
}

fn note_name(pod: &str) -> String {
    format!("{PREFIX}{pod}")
}

/// The Pod that a note is about.
fn uid_of(note: &Object) -> Option<String> {
    let note = note.to_map().ok()?;
    note.get("uid").and_then(Value::as_str).map(str::to_owned)
}

impl Cluster {
    /// Whether some Pods of a namespace are past their grace period, and what they hold may not be given back yet.
    pub(crate) fn has_past_grace(&self, namespace: &str) -> bool {
        !self.past_grace(Some(namespace)).is_empty()
    }

    /// The keys of the Pods, of one namespace or of all, that are past their grace period and perhaps not noted yet.
    fn past_grace(&self, namespace: Option<&str>) -> Vec<Box<str>> {
        self.grace_ends.due(&self.cache, namespace, self.runtime.clock.timestamp())
    }

    /// Gives back what Pods hold that are past their grace period, in one namespace or in all. Returns whether there
    /// was something.
    pub async fn release_past_grace(&self, namespace: Option<&str>) -> Result<bool, Error> {
        let Some(pods) = self.resources.get(&PODS) else { return Ok(false) };
        let mut released = false;
        for keys in self.past_grace(namespace).chunks(AT_ONCE) {
            for one in join_all(keys.iter().map(|key| self.release_pod(pods, key))).await {
                released |= one?;
            }
        }
        Ok(released)
    }

    async fn release_pod(&self, pods: &Resource, key: &str) -> Result<bool, Error> {
        let (namespace, name) = key.split_once('\0').unwrap_or(("", key));
        let target = Target { resource: pods, namespace, name };
        let mut state = self.cache.any();
        for _ in 0..TRIES {
            let Some(mutation) = PastGrace::new(self, &state).release(target) else { return Ok(false) };
            state = match self.store.write(mutation).await? {
                Written::Committed { revision, .. } => {
                    self.cache.at_least(revision).await?;
                    self.grace_ends.forget(key);
                    return Ok(true);
                }
                Written::Conflict { judged_at, .. } | Written::Unmet { judged_at } => {
                    self.cache.at_least(judged_at).await?
                }
            };
        }
        Ok(false)
    }

    /// Removes notes about Pods that are gone without them: those of Pods that could not be read.
    pub async fn drop_old_notes(&self) -> Result<(), Error> {
        let Some(pods) = self.resources.get(&PODS) else { return Ok(()) };
        let state = self.cache.any();
        for note in state.objects(self.hidden.quota_sets.id()).range(&Range::of(None)) {
            let Some(name) = note.name().strip_prefix(PREFIX) else { continue };
            if state.get(pods.id, note.namespace(), name).is_none() {
                let (rows, expect) = (self.hidden.quota_sets, Expect::At(note.revision()));
                self.store.write(rows.delete(note.namespace(), note.name(), expect)).await?;
            }
        }
        Ok(())
    }
}
