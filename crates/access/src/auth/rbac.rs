//! RBAC: roles, bindings, and who may do what by them.
//!
//! [`Rbac`] follows the roles and bindings of the cache. Before it decides it takes in what has changed, so that a binding
//! counts from the answer of its write on.

pub mod account;
mod binding;
pub mod bootstrap;
mod policy;
mod rule;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, RwLock, RwLockReadGuard};

use self::binding::Binding;
use self::policy::{Policy, Verdict};
use super::authorizer::{
    Answer, Attributes, Authorizer, Decision, Explain, Foresight, Grant, Reason, UserRules,
};
use crate::cache::{Cache, Range, State};
use crate::codec::object::Object;
use crate::failpoints::{Bug, strikes};
use crate::revision::Revision;
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
    resources: [(ResourceId, Holds); 4],
    policy: RwLock<Policy>,
    /// Every change up to here is in the policy. Raised under the policy's lock.
    reached: AtomicU64,
    /// The policy holds every role and binding of the state with this serial, and of those before it.
    seen: AtomicU64,
    /// The [count of rereads](State::rereads) of a state that the policy was made of anew.
    rereads: AtomicU64,
    losses: OnceLock<Losses>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Roles,
    Bindings,
}

impl Rbac {
    /// Reads everything that there is. `id` is the store's number of a resource.
    pub fn new(cache: Cache, id: impl Fn(&Gvr) -> Option<ResourceId>) -> Option<Self> {
        let resources = [
            (id(&CLUSTER_ROLES)?, Holds::Roles),
            (id(&ROLES)?, Holds::Roles),
            (id(&CLUSTER_ROLE_BINDINGS)?, Holds::Bindings),
            (id(&ROLE_BINDINGS)?, Holds::Bindings),
        ];
        let [reached, seen, rereads] = [0; 3].map(AtomicU64::new);
        let (policy, losses) = Default::default();
        let shared = Shared { cache, resources, policy, reached, seen, rereads, losses };
        let rbac = Self { shared: Arc::new(shared) };
        rbac.shared.rebuild(&mut rbac.shared.policy.write().unwrap_or_else(|e| e.into_inner()));
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
        self.shared.resources.map(|(id, _)| id)
    }

    /// Takes in changes as they come, so that decisions find little to do.
    pub async fn follow(self) {
        let at = self.shared.cache.any().revision;
        let mut watchers = self.shared.resources.map(|(id, _)| self.shared.cache.watch(id, at));
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
        if self.seen.load(Ordering::Acquire) < self.cache.serial() {
            self.look();
        }
        self.policy.read().unwrap_or_else(|e| e.into_inner())
    }

    /// Takes in what the newest state has changed of roles and bindings. Most states have changed nothing of them.
    fn look(&self) {
        if strikes(Bug::OldRights) {
            return;
        }
        let state = self.cache.any();
        if self.rereads.load(Ordering::Acquire) < state.rereads {
            self.rebuild(&mut self.policy.write().unwrap_or_else(|e| e.into_inner()));
        } else if Revision(self.reached.load(Ordering::Acquire)) < self.changed(&state) {
            self.catch_up();
        }
        self.seen.fetch_max(state.serial, Ordering::AcqRel);
    }

    /// The newest change of a role or binding in a state.
    fn changed(&self, state: &State) -> Revision {
        self.resources.iter().filter_map(|(id, _)| state.changed(*id)).max().unwrap_or_default()
    }

    fn catch_up(&self) {
        let mut policy = self.policy.write().unwrap_or_else(|e| e.into_inner());
        let (state, reached) = (self.cache.any(), Revision(self.reached.load(Ordering::Acquire)));
        for (id, holds) in self.resources {
            if state.changed(id).is_none_or(|changed| changed <= reached) {
                continue;
            }
            let Some(keys) = self.cache.changed_keys(id, reached) else {
                return self.rebuild(&mut policy);
            };
            for key in keys {
                let (namespace, name) = key.split_once('\0').unwrap_or(("", &key));
                if let Some(losses) = self.losses.get() {
                    policy.losing(holds, &key, &mut |subject| losses(Some(subject)));
                }
                policy.take_in(holds, &key, state.get(id, namespace, name).as_ref());
            }
        }
        self.reached.fetch_max(state.revision.0, Ordering::AcqRel);
    }

    /// The rows by which a binding allows what it allows: itself and its role. Nothing denies in RBAC, so no other row matters.
    fn grant(&self, policy: &Policy, binding: &Binding) -> Option<[Requirement; 2]> {
        let [cluster_roles, roles, cluster_bindings, bindings] = self.resources.map(|(id, _)| id);
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

    fn rebuild(&self, policy: &mut Policy) {
        let state = self.cache.any();
        let mut new = Policy::default();
        for (id, holds) in self.resources {
            for object in state.objects(id).range(&Range::of(None)) {
                new.take_in(holds, object.key(), Some(object));
            }
        }
        *policy = new;
        if let Some(losses) = self.losses.get() {
            losses(None);
        }
        self.reached.fetch_max(state.revision.0, Ordering::AcqRel);
        self.rereads.fetch_max(state.rereads, Ordering::AcqRel);
    }
}

impl Policy {
    /// Replaces what was known of an object.
    fn take_in(&mut self, holds: Holds, key: &str, object: Option<&Arc<Object>>) {
        match (holds, object) {
            (Holds::Bindings, Some(object)) => self.put_binding(object),
            (Holds::Bindings, None) => self.remove_binding(key),
            (Holds::Roles, object) => {
                self.put_role(key, object.map(|role| (rules_of(role), role.revision())));
            }
        }
    }
}

impl Policy {
    /// Calls `tell` with the subjects that may lose rights when an object changes or goes: those of a binding as it was, and
    /// those of all bindings to a role that existed. A new object takes nothing away.
    fn losing(&self, holds: Holds, key: &str, tell: &mut dyn FnMut(&Subject)) {
        match holds {
            Holds::Bindings => self.binding(key).into_iter().flat_map(|one| &one.subjects).for_each(tell),
            Holds::Roles => self.bindings_to(key).flat_map(|one| &one.subjects).for_each(tell),
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
            Verdict::Allowed(binding) => Decision::Allow(Reason::Explained(binding.clone())),
            Verdict::NotAllowed { missing: false } => Decision::NoOpinion(Reason::None),
            Verdict::NotAllowed { missing: true } => {
                Decision::NoOpinion(Reason::Explained(self.shared.clone()))
            }
        })
    }

    fn foresee(&self, attributes: &Attributes<'_>) -> Foresight {
        let policy = self.shared.newest();
        let Verdict::Allowed(binding) = policy.decide(attributes) else { return Foresight::Unknown };
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

/// Which roles a user is bound to that do not exist.
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
