//! ClusterRoles that consist of others: their `rules` are those of the roles that their selectors match
//! (`pkg/controller/clusterroleaggregation`), and are written in one transaction with the write that changes them.
//!
//! A write of a ClusterRole that may change what others consist of also writes a row that nobody serves, and requires it
//! to be as this server has seen it. So the roles that a write has looked at are all there are when it is committed.

mod roles;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use self::roles::{Role, Roles};
use crate::api::apply::apply_by_force;
use crate::api::catalog::Served;
use crate::api::resource::Resource;
use crate::api::{Api, ObjectMap, Target};
use crate::auth::rbac::{CLUSTER_ROLES, GROUP, PolicyRule};
use crate::cache::State;
use crate::cache::hidden_rows::HiddenRows;
use crate::revision::Revision;
use crate::storage::{Expect, Mutation, ResourceId};
use crate::tree::{Map, Value, json};

pub const MANAGER: &str = "clusterrole-aggregation-controller";
const ROW: &str = "clusterroles";
/// The revision of no row.
const NEVER: Revision = Revision(0);
/// The fields of a role that others depend on.
const FIELDS: [&str; 2] = ["rules", "aggregationRule"];

/// The ClusterRoles as aggregation sees them.
pub struct Aggregation {
    /// `None` if ClusterRoles are not served.
    resource: Option<ResourceId>,
    rows: HiddenRows,
    /// The roles as they were read last. The lock is not held while anybody waits.
    roles: Mutex<Roles>,
}

impl Aggregation {
    pub fn new(resources: &Served, rows: HiddenRows) -> Self {
        let resource = resources.get(&CLUSTER_ROLES).map(|resource| resource.id);
        Self { resource, rows, roles: Mutex::default() }
    }

    /// Whether these are ClusterRoles.
    pub fn concerns(&self, resource: &Resource) -> bool {
        self.resource == Some(resource.id)
    }

    /// The rules of each aggregated role that has others than it should have, in a state.
    pub fn stale(&self, state: &State) -> Vec<(Box<str>, Vec<PolicyRule>)> {
        let Some(resource) = self.resource else { return Vec::new() };
        let mut roles = self.roles.lock().unwrap_or_else(PoisonError::into_inner);
        roles.read(state, resource);
        roles.stale()
    }

    /// The roles that are [stale](Aggregation::stale) once a write has put or removed this one, and those that become
    /// stale by them in turn.
    fn stale_after(
        &self,
        state: &State,
        name: &str,
        new: Option<&ObjectMap>,
    ) -> BTreeMap<Box<str>, Vec<PolicyRule>> {
        let Some(resource) = self.resource else { return BTreeMap::new() };
        let mut roles = self.roles.lock().unwrap_or_else(PoisonError::into_inner);
        roles.read(state, resource);
        roles.stale_after(name, new.map(|new| Role::of(NEVER, new)))
    }

    /// The mutation that makes other writes of ClusterRoles try again if they have not seen this one. It comes just
    /// before the write: a state that ends with it lacks the write.
    pub fn row(&self, state: &State) -> Mutation {
        self.rows.touch(self.rows.as_followed(state, "", ROW))
    }
}

impl Api {
    /// Whether these are ClusterRoles, and nobody else aggregates them.
    fn aggregates(&self, target: Target<'_>) -> bool {
        self.config.cluster_controllers && self.aggregation.concerns(target.resource)
    }

    /// Gives a ClusterRole that is about to be written the rules that it consists of. Returns what is written with it:
    /// the roles that consist of it. Nothing of other kinds.
    pub(in crate::api) fn settle_aggregation(
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
    pub(in crate::api) fn release_aggregation(&self, target: Target<'_>) -> Vec<Mutation> {
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
    ) -> Result<Option<Mutation>, crate::api::error::Error> {
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
    let labels = |role| crate::api::fields::at(role, &["metadata", "labels"]);
    labels(old) == labels(new) && FIELDS.iter().all(|field| old.get(field) == new.get(field))
}

fn tell(name: &str, error: &crate::api::error::Error) {
    tracing::warn!(clusterrole = name, %error, "cannot write the rules of an aggregated role");
}
