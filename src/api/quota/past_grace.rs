//! Pods past their grace period: deleted, and still there when they had to be gone long ago, since their node is lost. They
//! count as objects and hold nothing else (`QuotaV1Pod` of `pkg/quota/v1/evaluator/core/pods.go`).
//!
//! A Pod gets there by the clock, without a write. So a write is made for it, which gives back what the Pod was charged for
//! and notes so in a row that nobody serves. Who asks what the Pod uses looks at that row, not at the clock: in every
//! state it is the same for everybody. The note requires the Pod as it was seen, and a write that charges or deletes a Pod
//! which is being deleted requires the note as that write has seen it, so nothing is given back twice. The note goes with the Pod.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};

use super::amounts::{Amounts, is_zero};
use super::evaluator::Evaluator;
use super::ledger::Quotas;
use super::notes::Noted;
use super::scopes::Requirement as Scope;
use super::{SET_VERSION, pods};
use crate::api::error::Error;
use crate::api::resource::Resource;
use crate::api::{Api, ObjectMap, Target, fields, meta, metadata};
use crate::cache::{Range, State};
use crate::codec::object::{Draft, Object, joined_key};
use crate::long_work;
use crate::revision::Revision;
use crate::schema::names::Gvr;
use crate::storage::counting::Charge;
use crate::storage::{Change, Expect, Key, Mutation, Requirement, ResourceId, Written};
use crate::tree::{Value, json};

const PODS: Gvr = Gvr::fixed("v1", "pods");
const GRACE: &str = "deletionGracePeriodSeconds";
/// What the names of notes about Pods begin with; those about claims have the claims' names.
const PREFIX: &str = "pods/";
/// How many Pods are looked after at the same time.
const AT_ONCE: usize = 64;
/// How often a note is tried while others change its Pod or the set of quotas.
const TRIES: usize = 16;

/// Which Pods have been found past their grace period, in one state.
pub struct PastGrace<'a> {
    api: &'a Api,
    state: &'a State,
}

impl<'a> PastGrace<'a> {
    pub fn new(api: &'a Api, state: &'a State) -> Self {
        Self { api, state }
    }

    /// Whether what the Pod was charged for has been given back.
    pub fn holds(&self, pod: &ObjectMap) -> bool {
        let Some(metadata) = metadata(pod).filter(|metadata| meta::is_terminating(metadata)) else {
            return false;
        };
        let key = self.key(meta::text(metadata, "namespace"), meta::text(metadata, "name"));
        let note = self.state.get(key.resource, &key.namespace, &key.name);
        note.is_some_and(|note| uid_of(&note).is_some_and(|uid| uid == meta::text(metadata, "uid")))
    }

    /// What a write of a Pod has to do with its note. Only Pods that are being deleted have one, in namespaces that have
    /// had a quota.
    pub fn noted(&self, target: Target<'_>, old: Option<&ObjectMap>, new: Option<&ObjectMap>) -> Noted {
        let is_terminating = old.and_then(metadata).is_some_and(meta::is_terminating);
        if !is_terminating || self.api.set_revision(self.state, target.namespace).is_none() {
            return Noted::default();
        }
        let (key, expect) = self.found(target);
        match (expect, new) {
            (Expect::At(_), None) => {
                Noted { joined: Some(Mutation::new(key, expect, Change::Delete)), requires: None }
            }
            _ => Noted { requires: Some(Requirement { key, expect }), joined: None },
        }
    }

    fn key(&self, namespace: &str, name: &str) -> Key {
        Key::new(self.api.quota_sets, namespace, &format!("{PREFIX}{name}"))
    }

    fn found(&self, target: Target<'_>) -> (Key, Expect) {
        let key = self.key(target.namespace, target.name);
        let found = self.state.get(key.resource, &key.namespace, &key.name);
        (key, found.map_or(Expect::Absent, |note| Expect::At(note.revision())))
    }

    /// The write that gives back what a Pod was charged for; `None` if it is not past its grace period, or if nothing is
    /// left to be given back.
    fn release(&self, target: Target<'_>) -> Option<Mutation> {
        let Self { api, state } = *self;
        let (resource, namespace, name) = (target.resource.id, target.namespace, target.name);
        api.set_revision(state, namespace)?;
        let found = state.get(resource, namespace, name)?;
        let pod =
            target.resource.decode(&found).inspect_err(|error| api.unreadable.tell("quotas", &found, error));
        let pod =
            pod.ok().filter(|pod| end_of(pod).is_some_and(|end| end < api.runtime.clock.timestamp()))?;
        if self.holds(&pod) {
            api.grace_ends.forget(found.key());
            return None;
        }
        let mut returned = pods::as_object();
        returned.subtract(&pods::usage(&pod));
        let mut charges = Vec::new();
        for (name, quota) in api.quotas(state, namespace).ok()? {
            if !Evaluator::Pods(None).matches(&Scope::all(&quota), &pod) {
                continue;
            }
            let used = fields::at(&quota, &["status", "used"]).and_then(Value::as_object);
            let mut amounts: Amounts = returned.clone();
            amounts
                .retain(|name, amount| used.is_some_and(|used| used.contains_key(name)) && !is_zero(amount));
            if !amounts.is_empty() {
                let key = Key::new(api.quota_resource(), namespace, &name);
                charges.push(Charge { key, ledger: &Quotas, amounts: amounts.into(), limited: false });
            }
        }
        // A quota that counts the Pod later begins without it, or finds it here.
        if charges.is_empty() {
            return None;
        }
        let (key, expect) = self.found(target);
        let uid = fields::text(&pod, &["metadata", "uid"]);
        let row = json!({"metadata": {"namespace": namespace, "name": &*key.name}, "uid": uid});
        let draft = Draft::of_json(namespace, &key.name, row.to_string().into());
        let change = Change::Put { uid: "".into(), stored_version: SET_VERSION.into(), draft };
        let as_seen = Requirement { key: target.key(), expect: Expect::At(found.revision()) };
        let requires = [as_seen, api.set_requirement(state, namespace)];
        Some(Mutation::new(key, expect, change).requiring(requires).charging(charges))
    }
}

/// The Pod that a note is about.
fn uid_of(note: &Object) -> Option<String> {
    let note = note.to_map().ok()?;
    note.get("uid").and_then(Value::as_str).map(str::to_owned)
}

/// When a Pod is past its grace period, as upstream has it: the period counts once more from the time by which the Pod
/// should have been gone.
fn end_of(pod: &ObjectMap) -> Option<Timestamp> {
    let metadata = metadata(pod)?;
    let grace = SignedDuration::from_secs(metadata.get(GRACE)?.as_i64()?);
    let gone: Timestamp = meta::text(metadata, "deletionTimestamp").parse().ok()?;
    gone.checked_add(grace).ok()
}

/// When which Pods are past their grace period. It follows the cache when somebody asks: nothing is done at the writes
/// of Pods.
#[derive(Default)]
pub struct GraceEnds(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// Every change of a Pod up to here is known.
    reached: Revision,
    /// The [count of rereads](State::rereads) of the state that was looked at last.
    rereads: u64,
    /// By the keys of the Pods.
    ends: BTreeMap<Box<str>, Timestamp>,
}

impl GraceEnds {
    /// The keys of the Pods, of one namespace or of all, that are past their grace period and perhaps not noted yet.
    fn due(&self, api: &Api, pods: ResourceId, namespace: Option<&str>) -> Vec<Box<str>> {
        let (mut known, now) = (self.known(), api.runtime.clock.timestamp());
        known.catch_up(api, pods);
        let prefix = namespace.map_or(Box::default(), |namespace| joined_key(namespace, ""));
        let from = known.ends.range::<str, _>((Bound::Included(&*prefix), Bound::Unbounded));
        let due = from.take_while(|(key, _)| key.starts_with(&*prefix)).filter(|(_, end)| **end < now);
        due.map(|(key, _)| key.clone()).collect()
    }

    /// A Pod that has been noted is not looked at again, unless it changes.
    fn forget(&self, key: &str) {
        self.known().ends.remove(key);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn catch_up(&mut self, api: &Api, pods: ResourceId) {
        let state = api.cache.any();
        let begun = self.reached.0 > 0 && self.rereads == state.rereads;
        if begun && state.changed(pods).is_none_or(|changed| changed <= self.reached) {
            return;
        }
        match api.cache.changed_keys(pods, self.reached).filter(|_| begun) {
            Some(keys) => {
                for key in keys {
                    let (namespace, name) = key.split_once('\0').unwrap_or(("", &key));
                    let end = state.get(pods, namespace, name).and_then(|pod| end_of_stored(&pod));
                    match end {
                        Some(end) => drop(self.ends.insert(key, end)),
                        None => drop(self.ends.remove(&key)),
                    }
                }
            }
            None => {
                let end = |pod: &Arc<Object>| Some((pod.key().into(), end_of_stored(pod)?));
                let all = || state.objects(pods).range(&Range::of(None)).filter_map(end).collect();
                self.ends = long_work::run(all);
            }
        }
        (self.reached, self.rereads) = (state.revision, state.rereads);
    }
}

fn end_of_stored(pod: &Object) -> Option<Timestamp> {
    if !pod.mentions(GRACE) {
        return None;
    }
    end_of(&pod.to_closed_map().ok()?)
}

impl Api {
    /// Whether some Pods of a namespace are past their grace period, and what they hold may not be given back yet.
    pub(in crate::api) fn has_past_grace(&self, namespace: &str) -> bool {
        let pods = self.resources.get(&PODS);
        pods.is_some_and(|pods| !self.grace_ends.due(self, pods.id, Some(namespace)).is_empty())
    }

    /// Gives back what Pods hold that are past their grace period, in one namespace or in all. Returns whether there
    /// was something.
    pub async fn release_past_grace(&self, namespace: Option<&str>) -> Result<bool, Error> {
        let Some(pods) = self.resources.get(&PODS) else { return Ok(false) };
        let mut released = false;
        for keys in self.grace_ends.due(self, pods.id, namespace).chunks(AT_ONCE) {
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
    pub(super) async fn drop_old_notes(&self) -> Result<(), Error> {
        let Some(pods) = self.resources.get(&PODS) else { return Ok(()) };
        let state = self.cache.any();
        for note in state.objects(self.quota_sets).range(&Range::of(None)) {
            let Some(name) = note.name().strip_prefix(PREFIX) else { continue };
            if state.get(pods.id, note.namespace(), name).is_none() {
                let key = Key::new(self.quota_sets, note.namespace(), note.name());
                self.store.write(Mutation::new(key, Expect::At(note.revision()), Change::Delete)).await?;
            }
        }
        Ok(())
    }
}
