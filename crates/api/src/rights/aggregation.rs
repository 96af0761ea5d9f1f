//! ClusterRoles that consist of others: their `rules` are those of the roles that their selectors match
//! (`pkg/controller/clusterroleaggregation`), and are written in one transaction with the write that changes them.
//!
//! A write of a ClusterRole that may change what others consist of also writes a row that nobody serves, and requires it
//! to be as this server has seen it. So the roles that a write has looked at are all there are when it is committed.

use std::collections::BTreeMap;

use crate::auth::rbac::{GROUP, PolicyRule};
use crate::cache::State;
use crate::ownership::apply::apply_by_force;
use crate::storage::{Expect, Mutation};
use crate::tree::{Map, Value, json};
use crate::{Cluster, ObjectMap, Target};

pub const MANAGER: &str = "clusterrole-aggregation-controller";
/// The fields of a role that others depend on.
const FIELDS: [&str; 2] = ["rules", "aggregationRule"];

impl Cluster {
    /// Whether these are ClusterRoles, and nobody else aggregates them.
    fn aggregates(&self, target: Target<'_>) -> bool {
        self.config.cluster_controllers && self.aggregation.concerns(target.resource)
    }

    /// Gives a ClusterRole that is about to be written the rules that it consists of. Returns what is written with it:
    /// the roles that consist of it. Nothing of other kinds.
    pub(crate) fn settle_aggregation(
        &self,
        target: Target<'_>,
        new: &mut ObjectMap,
        old: Option<&ObjectMap>,
    ) -> Vec<Mutation> {
        if !self.aggregates(target) || old.is_some_and(|old| is_same(old, new)) {
            return Vec::new();
        }
        let state = self.cache.any();
        let mut stale = self.aggregation.stale_after(&state, target.name, Some(new));
        if let Some(rules) = stale.remove(target.name) {
            match apply_by_force(target, new, &configuration(target.name, &rules), MANAGER, &self.now()) {
                Ok(settled) => *new = settled,
                Err(error) => tell(target.name, &error),
            }
            if old.is_some_and(|old| is_same(old, new)) {
                return Vec::new();
            }
        }
        self.aggregated(&state, target, stale)
    }

    /// The writes that go with the removal of a ClusterRole. Nothing of other kinds.
    pub(crate) fn release_aggregation(&self, target: Target<'_>) -> Vec<Mutation> {
        if !self.aggregates(target) {
            return Vec::new();
        }
        let state = self.cache.any();
        let stale = self.aggregation.stale_after(&state, target.name, None);
        self.aggregated(&state, target, stale)
    }

    /// A role that cannot be written is left to the controller, which tries again: nobody else's write fails by it.
    fn aggregated(
        &self,
        state: &State,
        target: Target<'_>,
        stale: BTreeMap<Box<str>, Vec<PolicyRule>>,
    ) -> Vec<Mutation> {
        let now = self.now();
        let mut mutations = Vec::new();
        for (name, rules) in stale {
            let target = Target { name: &name, ..target };
            match self.with_rules(state, target, &rules, &now) {
                Ok(mutation) => mutations.extend(mutation),
                Err(error) => tell(&name, &error),
            }
        }
        mutations.push(self.aggregation.row(state));
        mutations
    }

    /// The write that gives a stored role these rules; `None` if it would not change them.
    fn with_rules(
        &self,
        state: &State,
        target: Target<'_>,
        rules: &[PolicyRule],
        now: &str,
    ) -> Result<Option<Mutation>, crate::error::Error> {
        let Some(stored) = state.get(target.resource.id, "", target.name) else { return Ok(None) };
        let object = target.resource.decode_closed(&stored)?;
        let new = apply_by_force(target, &object, &configuration(target.name, rules), MANAGER, now)?;
        if is_same(&object, &new) {
            return Ok(None);
        }
        let mutation = self.put_mutation(target, Expect::At(stored.revision()), new)?;
        self.store.check_length([&mutation])?;
        Ok(Some(mutation))
    }
}

/// The configuration that the manager of aggregation applies to a role.
pub fn configuration(name: &str, rules: &[PolicyRule]) -> ObjectMap {
    let mut configuration = Map::new();
    configuration.insert("kind", "ClusterRole".into());
    configuration.insert("apiVersion", format!("{GROUP}/v1").into());
    configuration.insert("metadata", json!({"name": name}));
    if !rules.is_empty() {
        configuration.insert("rules", Value::Array(rules.iter().map(PolicyRule::to_value).collect()));
    }
    configuration
}

/// Whether a write changes nothing that another role depends on.
fn is_same(old: &ObjectMap, new: &ObjectMap) -> bool {
    let labels = |role| crate::fields::at(role, &["metadata", "labels"]);
    labels(old) == labels(new) && FIELDS.iter().all(|field| old.get(field) == new.get(field))
}

fn tell(name: &str, error: &crate::error::Error) {
    tracing::warn!(clusterrole = name, %error, "cannot write the rules of an aggregated role");
}
