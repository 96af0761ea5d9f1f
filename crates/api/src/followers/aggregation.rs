//! ClusterRoles as aggregation sees them: those that consist of others, and the rules that they should have.

mod roles;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use self::roles::{Role, Roles};
use crate::ObjectMap;
use crate::auth::rbac::{CLUSTER_ROLES, PolicyRule};
use crate::cache::State;
use crate::cache::hidden_rows::HiddenRows;
use crate::catalog::Served;
use crate::resource::Resource;
use crate::revision::Revision;
use crate::storage::{Mutation, ResourceId};

const ROW: &str = "clusterroles";
/// The revision of no row.
const NEVER: Revision = Revision(0);

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
    pub fn stale_after(
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

    /// The mutation of [`Aggregation::row`] for writes that come before it.
    pub fn row_behind(&self, state: &State) -> Mutation {
        self.rows.touch(self.rows.as_seen(state, "", ROW))
    }
}
