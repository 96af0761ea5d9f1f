//! Quotas: what objects of a namespace may use together, counted in the transactions of writes.
//!
//! A write that changes what an object uses carries a [`Charge`] for each quota that counts the object, and requires the
//! namespace's set of quotas to be as the write has seen it: a row that nobody serves, which changes with every quota
//! that comes, goes or changes its limits. So the figures in `status.used` are exact at every revision, whoever writes
//! on whichever server; what fails is not counted, and what is deleted is given back in the same commit. Where a
//! namespace has no quota, writes only require that the row is absent.
//!
//! A quota is counted when it is written ([`Cluster::settle_quota`]). Writes that were on their way then have not charged
//! it; their sum is added before the quota's writer is answered ([`Cluster::recount`]). The controller of quotas counts
//! again now and then, for what earlier releases write.

pub mod amounts;
mod check;
mod devices;
pub mod evaluator;
mod ledger;
pub mod limited;
mod notes;
pub mod past_grace;
pub mod pod_amounts;
mod pods;
mod recount;
mod refusal;
mod scopes;
mod status;
#[cfg(test)]
mod tests;

use self::amounts::{Amounts, is_zero};
use self::evaluator::Evaluator;
use self::ledger::Quotas;
use self::scopes::Requirement as Scope;
use crate::cache::{Range, State};
use crate::effects::Effects;
use crate::error::Error;
use crate::kinds::behavior::part::Part;
use crate::revision::Revision;
use crate::schema::names::Gvr;
use crate::storage::counting::Charge;
use crate::storage::{Key, Mutation, Requirement, ResourceId};
use crate::{Cluster, ObjectMap, Target, fields};

pub use self::check::{Checked, check, is_handled};
pub use self::refusal::Refusal;

const QUOTAS: Gvr = Gvr::fixed("v1", "resourcequotas");

/// The quotas of a namespace as a write was judged by them, so that they are read once.
#[derive(Debug)]
pub struct SeenQuotas {
    /// The revision of the namespace's set of quotas.
    set: Option<Revision>,
    quotas: Vec<(String, ObjectMap)>,
}

/// The judgement of the plugin ResourceQuota about a write.
#[derive(Debug, Default)]
pub struct JudgedByQuotas {
    /// Whether the write may not exceed the quotas of its namespace.
    pub limited: bool,
    /// The quotas that the object was judged by; `None` if they are to be read again.
    pub quotas: Option<SeenQuotas>,
}

/// A write as quotas see it. Objects are in the request's version.
#[derive(Clone, Copy)]
pub struct Usage<'a> {
    pub target: Target<'a>,
    pub old: Option<&'a ObjectMap>,
    pub new: Option<&'a ObjectMap>,
    pub part: Part,
    /// Whether the write makes the namespace's set of quotas another one.
    pub changes_set: bool,
    /// Whether the write may not exceed what the quotas allow.
    pub limited: bool,
}

impl Usage<'_> {
    /// The amounts that the write adds to the resources which a quota counts.
    fn delta(
        &self,
        evaluator: Evaluator<'_>,
        scopes: &[Scope<'_>],
        counted: impl Fn(&str) -> bool,
    ) -> Amounts {
        let usage = |object: Option<&ObjectMap>| {
            let object = object.filter(|object| evaluator.matches(scopes, object));
            object.map(|object| evaluator.usage(object)).unwrap_or_default()
        };
        let mut delta = usage(self.new);
        delta.subtract(&usage(self.old));
        delta.retain(|name, amount| counted(name) && !is_zero(amount));
        delta
    }

    /// Whether the write may change what is used in a namespace without quotas.
    fn may_change(&self, evaluator: Evaluator<'_>) -> bool {
        match (self.old, self.new) {
            (Some(old), Some(new)) => evaluator.may_change(self.part, old, new),
            _ => true,
        }
    }
}

impl Cluster {
    /// The charges and requirements of a write, by the state that this server has; whether that is the newest one is judged
    /// at the commit. `seen` are the quotas that the write was judged by. While the set of quotas is the same they are as
    /// good as the newest, since a charge depends only on which quotas there are and on what they count.
    pub(super) fn metered(&self, usage: Usage<'_>, seen: Option<SeenQuotas>) -> Result<Effects, Error> {
        let Some(evaluator) = Evaluator::of(&usage.target.resource.definition) else {
            return Ok(Effects::default());
        };
        let is_update = usage.old.is_some() && usage.new.is_some();
        if is_update && matches!(evaluator, Evaluator::Objects(_)) {
            return Ok(Effects::default());
        }
        let (state, namespace) = (self.cache.any(), usage.target.namespace);
        let notes = self.notes(&usage.target.resource.definition, &state);
        let evaluator = evaluator.knowing(notes.as_ref());
        let mut effects = Effects::default();
        let seen = seen.filter(|seen| seen.set == self.set_revision(&state, namespace));
        let quotas = match seen.map_or_else(|| self.quotas(&state, namespace), |seen| Ok(seen.quotas)) {
            // What an unreadable quota counts cannot be given back, but everything can be deleted.
            Err(_) if usage.new.is_none() => Vec::new(),
            quotas => quotas?,
        };
        if quotas.is_empty() && !usage.may_change(evaluator) {
            return Ok(Effects::default());
        }
        if is_update && !quotas.is_empty() && usage.delta(evaluator, &[], |_| true).is_empty() {
            // The object may have another scope now.
            let (old, new) = (usage.old, usage.new);
            let is_same = |quota: &(String, ObjectMap)| {
                let scopes = Scope::all(&quota.1);
                let matches =
                    |object: Option<&ObjectMap>| object.is_some_and(|own| evaluator.matches(&scopes, own));
                matches(old) == matches(new)
            };
            if quotas.iter().all(is_same) {
                return Ok(Effects::default());
            }
        }
        for (name, quota) in quotas {
            let key = Key::new(self.quota_resource(), namespace, &name);
            // What a quota counts of itself comes and goes with it.
            if key == usage.target.key() {
                continue;
            }
            let scopes = Scope::all(&quota);
            let counted = |name: &str| fields::at(&quota, &["status", "used", name]).is_some();
            let delta = usage.delta(evaluator, &scopes, counted);
            if !delta.is_empty() {
                let amounts = delta.into();
                effects.charge([Charge { key, ledger: &Quotas, amounts, limited: usage.limited }]);
            }
        }
        // What changes the set comes just before, and finds it as it was seen.
        if !usage.changes_set {
            effects.require([self.set_requirement(&state, namespace)]);
        }
        if let Some(notes) = notes {
            effects.add(notes.written(usage.target, usage.old, usage.new));
        }
        Ok(effects)
    }

    /// The quotas of a namespace with their names, in the order of these. Fails if one cannot be read.
    pub(crate) fn quotas(&self, state: &State, namespace: &str) -> Result<Vec<(String, ObjectMap)>, Error> {
        let Some(resource) = self.resources.get(&QUOTAS) else { return Ok(Vec::new()) };
        let (objects, range) = (state.objects(resource.id), Range::of(Some(namespace)));
        let mut quotas = Vec::new();
        if objects.is_empty() {
            return Ok(quotas);
        }
        for object in objects.range(&range) {
            match resource.decode(object) {
                Ok(quota) => quotas.push((object.name().to_owned(), quota)),
                Err(error) => {
                    self.unreadable.tell("quotas", object, &error);
                    return Err(error);
                }
            }
        }
        Ok(quotas)
    }

    /// The quotas that a write was judged by; `None` if the set has just changed in the state, which may lack the quota that
    /// changed it: in their commit the set comes first.
    pub(crate) fn seen_quotas(
        &self,
        state: &State,
        namespace: &str,
        quotas: Vec<(String, ObjectMap)>,
    ) -> Option<SeenQuotas> {
        let set = self.set_revision(state, namespace);
        (set != Some(state.revision)).then_some(SeenQuotas { set, quotas })
    }

    fn set_revision(&self, state: &State, namespace: &str) -> Option<Revision> {
        self.hidden.quota_sets.get(state, "", namespace).map(|set| set.revision())
    }

    fn quota_resource(&self) -> ResourceId {
        self.resources.get(&QUOTAS).map_or(self.hidden.quota_sets.id(), |resource| resource.id)
    }

    /// The requirement that a namespace's set of quotas is as it is in a state.
    fn set_requirement(&self, state: &State, namespace: &str) -> Requirement {
        self.hidden.quota_sets.as_followed(state, "", namespace)
    }

    /// A write that makes a namespace's set of quotas another one, so that writes which know the present set are tried again.
    fn changed_set(&self, state: &State, namespace: &str) -> Mutation {
        self.hidden.quota_sets.touch(self.set_requirement(state, namespace))
    }
}
