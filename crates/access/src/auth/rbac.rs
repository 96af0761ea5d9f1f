//! RBAC: roles, bindings, and who may do what by them.
//!
//! [`Rbac`] follows the roles and bindings of the cache. Before it decides it takes in what has changed, so that a binding
//! counts from the answer of its write on.

pub mod account;
mod binding;
pub mod bootstrap;
mod policy;
mod rule;

use std::sync::{Arc, OnceLock, RwLockReadGuard};

use self::binding::Binding;
use self::policy::{Policy, PolicyDecision};
use super::authorizer::{
    Answer, Attributes, Authorizer, Decision, Explain, Foresight, Grant, Reason, UserRules,
};
use crate::cache::Cache;
use crate::cache::follower::{Content, Follower};
use crate::codec::object::Object;
use crate::failpoints::{Bug, strikes};
use crate::schema::names::Gvr;
use crate::storage::{Expect, Key, Requirement, ResourceId};
use crate::user::User;

pub use self::binding::{RoleRef, Sort, Subject};
pub use self::rule::{PolicyRule, Rules, quoted_list};

pub const GROUP: &str = "rbac.authorization.k8s.io";
pub const ROLES: Gvr = Gvr::fixed("rbac.authorization.k8s.io/v1", "roles");
pub const CLUSTER_ROLES: Gvr = Gvr::fixed("rbac.authorization.k8s.io/v1", "clusterroles");
pub const ROLE_BINDINGS: Gvr = Gvr::fixed("rbac.authorization.k8s.io/v1", "rolebindings");
pub const CLUSTER_ROLE_BINDINGS: Gvr = Gvr::fixed("rbac.authorization.k8s.io/v1", "clusterrolebindings");

/// Called with a subject that a change may have taken rights away from, before anything is decided by that change; with
/// `None` if that may be anybody.
pub type Losses = Box<dyn Fn(Option<&Subject>) + Send + Sync>;

/// The authorizer. Clones share everything.
#[derive(Clone)]
pub struct Rbac {
    shared: Arc<Shared>,
}

struct Shared {
    cache: Cache,
    /// ClusterRoles, Roles, ClusterRoleBindings and RoleBindings.
    resources: [ResourceId; 4],
    policy: Follower<Policy>,
    losses: OnceLock<Losses>,
}

impl Rbac {
    /// Reads everything that there is. `id` is the store's number of a resource.
    pub fn new(cache: Cache, id: impl Fn(&Gvr) -> Option<ResourceId>) -> Option<Self> {
        let resources = [id(&CLUSTER_ROLES)?, id(&ROLES)?, id(&CLUSTER_ROLE_BINDINGS)?, id(&ROLE_BINDINGS)?];
        let policy = Follower::new(resources, Policy::default());
        let rbac = Self { shared: Arc::new(Shared { cache, resources, policy, losses: OnceLock::new() }) };
        rbac.take_in();
        Some(rbac)
    }

    /// The rules of all roles that a user is bound to in a namespace, each role's once, and what was wrong with others.
    pub fn held_by(&self, user: &User, namespace: &str) -> (Vec<Arc<Rules>>, Option<String>) {
        self.shared.newest().held(user, namespace)
    }

    /// The rules of the role that a binding in a namespace refers to; the text of a 404 if there is none.
    pub fn rules_of_role(&self, role: RoleRef<'_>, namespace: &str) -> Result<Arc<Rules>, String> {
        let rules = role.key(namespace).and_then(|key| self.shared.newest().rules_of_role(&key));
        rules.ok_or_else(|| role.not_found())
    }

    /// Tells who loses rights from now on. Only the first call has an effect.
    pub fn tell_losses(&self, losses: Losses) {
        let _ = self.shared.losses.set(losses);
    }

    /// Takes in every change that the cache has.
    pub fn take_in(&self) {
        drop(self.shared.newest());
    }

    /// The store's numbers of roles and bindings.
    pub fn resources(&self) -> [ResourceId; 4] {
        self.shared.resources
    }

    /// Takes in changes as they come, so that decisions find little to do.
    pub async fn follow(self) {
        let at = self.shared.cache.any().revision;
        let mut watchers = self.shared.resources.map(|id| self.shared.cache.watch(id, at));
        loop {
            let changes = watchers.iter_mut().map(|watcher| Box::pin(watcher.changed()));
            futures_util::future::select_all(changes).await;
            drop(self.shared.newest());
        }
    }
}

impl Shared {
    /// The policy with every change that the cache has.
    fn newest(&self) -> RwLockReadGuard<'_, Policy> {
        match strikes(Bug::OldRights) {
            true => self.policy.known(),
            false => self.policy.newest(&self.cache, &self.losses),
        }
    }

    /// The rows by which a binding allows what it allows: itself and its role. Nothing denies in RBAC, so no other row matters.
    fn grant(&self, policy: &Policy, binding: &Binding) -> Option<[Requirement; 2]> {
        let [cluster_roles, roles, cluster_bindings, bindings] = self.resources;
        let row = |ids: [ResourceId; 2], namespace: &str, name: &str, revision| {
            let id = ids[usize::from(!namespace.is_empty())];
            Requirement { key: Key::new(id, namespace, name), expect: Expect::At(revision) }
        };
        let (role, revision) = policy.role_of(binding)?;
        let (namespace, name) = role.split_once('\0').unwrap_or(("", role));
        let object = &binding.object;
        Some([
            row([cluster_bindings, bindings], object.namespace(), object.name(), object.revision()),
            row([cluster_roles, roles], namespace, name, revision),
        ])
    }
}

impl Content for Policy {
    type Context = OnceLock<Losses>;

    fn clear(&mut self, losses: &OnceLock<Losses>) {
        *self = Self::default();
        if let Some(losses) = losses.get() {
            losses(None);
        }
    }

    fn take_in(&mut self, losses: &OnceLock<Losses>, place: usize, key: &str, object: Option<&Arc<Object>>) {
        let are_roles = place < 2;
        if let Some(losses) = losses.get() {
            self.losing(are_roles, key, &mut |subject| losses(Some(subject)));
        }
        match (are_roles, object) {
            (false, Some(object)) => self.put_binding(object),
            (false, None) => self.remove_binding(key),
            (true, object) => self.put_role(key, object.map(|role| (rules_of(role), role.revision()))),
        }
    }
}

impl Policy {
    /// Calls `tell` with the subjects that may lose rights when an object changes or goes: those of a binding as it was, and
    /// those of all bindings to a role that existed. A new object takes nothing away.
    fn losing(&self, are_roles: bool, key: &str, tell: &mut dyn FnMut(&Subject)) {
        match are_roles {
            true => self.bindings_to(key).flat_map(|one| &one.subjects).for_each(tell),
            false => self.binding(key).into_iter().flat_map(|one| &one.subjects).for_each(tell),
        }
    }
}

/// A role that cannot be read allows nothing.
fn rules_of(role: &Arc<Object>) -> Arc<Rules> {
    let rules = role.to_closed_map().map(|content| PolicyRule::of_role(&content));
    if rules.is_err() {
        tracing::error!(?role, "a role cannot be read, and allows nothing");
    }
    Arc::new(Rules::new(rules.unwrap_or_default()))
}

impl Authorizer for Rbac {
    fn decide<'a>(&'a self, attributes: &'a Attributes<'a>) -> Answer<'a> {
        Answer::Now(match self.shared.newest().decide(attributes) {
            PolicyDecision::Allowed(binding) => Decision::Allow(Reason::Explained(binding.clone())),
            PolicyDecision::NotAllowed { missing: false } => Decision::NoOpinion(Reason::None),
            PolicyDecision::NotAllowed { missing: true } => {
                Decision::NoOpinion(Reason::Explained(self.shared.clone()))
            }
        })
    }

    fn foresee(&self, attributes: &Attributes<'_>) -> Foresight {
        let policy = self.shared.newest();
        let PolicyDecision::Allowed(binding) = policy.decide(attributes) else { return Foresight::Unknown };
        match self.shared.grant(&policy, binding) {
            Some(rows) => {
                Foresight::Allowed(Grant { reason: Reason::Explained(binding.clone()), rows: rows.into() })
            }
            None => Foresight::Unknown,
        }
    }

    fn rules(&self, user: &User, namespace: &str) -> UserRules {
        let (rules, is_whole, error) = self.shared.newest().rules(user, namespace);
        UserRules { rules, errors: error.into_iter().collect(), incomplete: !is_whole }
    }
}

/// The reason of a refusal: the roles that the user is bound to and that do not exist.
impl Explain for Shared {
    fn explain(&self, attributes: &Attributes<'_>) -> String {
        let missing = self.newest().missing_roles(attributes.user, attributes.namespace);
        missing.map(|missing| format!("RBAC: {missing}")).unwrap_or_default()
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Rbac")
    }
}

#[cfg(test)]
pub mod tests;
