//! The index of all roles and bindings: subject -> bindings -> compiled rules.
//!
//! A decision looks up the user and each of its groups, once for the cluster and once for the namespace, and what it
//! costs does not depend on the bindings of others. Nothing here waits or asks.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::BuildHasher as _;
use std::sync::Arc;

use foldhash::{fast, quality};

use super::super::authorizer::{Attributes, aggregate};
use super::binding::{Binding, ByKey, RoleRef, Sort};
use super::rule::{PolicyRule, Rules};
use crate::codec::object::Object;
use crate::revision::Revision;
use crate::user::User;

/// How many bytes of rules a user is told that he has. Many bindings to one role multiply them.
const MOST_TOLD: usize = 4 << 20;

thread_local! {
    /// Scratch of the thread, good for one decision: the numbers of decisions are the thread's, whatever policy decides.
    static LOOKED_AT: RefCell<LookedAt> = const { RefCell::new(LookedAt { decision: 0, roles: Vec::new() }) };
}

/// The large roles that a decision has looked at, since a user may be bound to one of them thousands of times.
struct LookedAt {
    decision: u64,
    /// The last decision that has looked at a role, by its number.
    roles: Vec<u64>,
}

impl LookedAt {
    fn is_new(&mut self, role: u32) -> bool {
        let at = role as usize;
        if self.roles.len() <= at {
            self.roles.resize(at + 1, 0);
        }
        std::mem::replace(&mut self.roles[at], self.decision) != self.decision
    }
}

#[derive(Debug, Default)]
pub struct Policy {
    roles: Roles,
    bindings: BTreeSet<ByKey>,
    /// By the key of a namespace and a subject. Other subjects may have the same key: a binding
    /// counts if it is of that namespace and has that subject.
    grants: HashMap<u64, Grants, fast::RandomState>,
    /// A decision makes a hash of each name twice, so it is a quick one.
    hasher: quality::RandomState,
}

/// The bindings of one subject in one namespace. Most have one.
#[derive(Debug)]
enum Grants {
    One(Arc<Binding>),
    #[expect(clippy::box_collection, reason = "the box keeps the usual case small")]
    Many(Box<Vec<Arc<Binding>>>),
}

/// All roles that exist or that a binding refers to, by number.
#[derive(Debug, Default)]
struct Roles {
    slots: Vec<Role>,
    numbers: HashMap<Box<str>, u32>,
    free: Vec<u32>,
}

#[derive(Debug, Default)]
struct Role {
    key: Box<str>,
    /// `None` if the role does not exist.
    rules: Option<Arc<Rules>>,
    /// The version of the row that says so.
    revision: Revision,
    bindings: u32,
}

/// The verdict of a user's bindings on a request.
pub enum PolicyDecision<'a> {
    Allowed(&'a Arc<Binding>),
    /// Nothing allows it. `missing` tells whether a role that the user is bound to does not exist.
    NotAllowed {
        missing: bool,
    },
}

impl Policy {
    pub fn decide(&self, attributes: &Attributes<'_>) -> PolicyDecision<'_> {
        let mut missing = false;
        let mut allowing = None;
        let mut has_large = false;
        let mut is_new = |role| {
            LOOKED_AT.with_borrow_mut(|looked_at| {
                looked_at.decision += u64::from(!std::mem::replace(&mut has_large, true));
                looked_at.is_new(role)
            })
        };
        self.visit(attributes.user, attributes.namespace, &mut |binding, rules| match rules {
            None => {
                missing = true;
                true
            }
            Some(rules) if rules.is_large() && !binding.role.is_some_and(&mut is_new) => true,
            Some(rules) if rules.allow(attributes) => {
                allowing = Some(binding);
                false
            }
            Some(_) => true,
        });
        allowing.map_or(PolicyDecision::NotAllowed { missing }, PolicyDecision::Allowed)
    }

    /// The rules of all bindings of a user in a namespace, as far as they fit, whether these are all, and what was wrong with
    /// others.
    pub fn rules(&self, user: &User, namespace: &str) -> (Vec<PolicyRule>, bool, Option<String>) {
        let (mut found, mut errors) = (Vec::new(), Vec::new());
        let (mut room, mut is_whole) = (MOST_TOLD, true);
        for binding in self.bindings_of(user, namespace) {
            let Some(rules) = self.roles.rules(binding) else {
                errors.push(binding.missing_role());
                continue;
            };
            // Nothing more is looked at then: many bindings to a large role are many times its rules.
            for rule in rules.rules() {
                is_whole = is_whole && rule.size() <= room;
                if !is_whole {
                    break;
                }
                room -= rule.size();
                found.push(rule.clone());
            }
        }
        if !is_whole {
            errors.push(format!("there are more rules than {MOST_TOLD} bytes, and the others are not told"));
        }
        (found, is_whole, aggregate(errors))
    }

    /// The rules of all roles that a user is bound to in a namespace, each role's once, and what was wrong with others.
    pub fn held(&self, user: &User, namespace: &str) -> (Vec<Arc<Rules>>, Option<String>) {
        let (mut found, mut errors, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
        for binding in self.bindings_of(user, namespace) {
            match self.roles.shared_rules(binding) {
                Some(rules) if seen.insert(binding.role) => found.push(rules.clone()),
                Some(_) => {}
                None => errors.push(binding.missing_role()),
            }
        }
        (found, aggregate(errors))
    }

    /// The key of a binding's role, and the version of it that the policy has; `None` if the role does not exist.
    pub fn role_of(&self, binding: &Binding) -> Option<(&str, Revision)> {
        let role = self.roles.slots.get(binding.role? as usize)?;
        role.rules.is_some().then_some((&*role.key, role.revision))
    }

    /// The rules of a role; `None` if it does not exist.
    pub fn rules_of_role(&self, key: &str) -> Option<Arc<Rules>> {
        let number = self.roles.numbers.get(key)?;
        self.roles.slots.get(*number as usize)?.rules.clone()
    }

    /// The roles that a user is bound to and that do not exist, as upstream's error tells it.
    pub fn missing_roles(&self, user: &User, namespace: &str) -> Option<String> {
        let bindings = self.bindings_of(user, namespace).into_iter();
        aggregate(bindings.filter(|one| self.roles.rules(one).is_none()).map(|one| one.missing_role()))
    }

    /// Whether nothing is known.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.bindings.is_empty() && self.grants.is_empty() && self.roles.numbers.is_empty()
    }

    /// Each binding of a user once, those of the cluster first, in the order of their names.
    fn bindings_of(&self, user: &User, namespace: &str) -> Vec<&Arc<Binding>> {
        let mut found = Vec::new();
        self.visit(user, namespace, &mut |binding, _| {
            found.push(binding);
            true
        });
        found.sort_by(|one, other| one.object.key().cmp(other.object.key()));
        found.dedup_by(|one, other| Arc::ptr_eq(one, other));
        found
    }

    /// Every binding by which a request is allowed, in the order of their names.
    pub fn allowing(&self, attributes: &Attributes<'_>) -> Vec<&Arc<Binding>> {
        let bindings = self.bindings_of(attributes.user, attributes.namespace).into_iter();
        let allows = |one: &&Arc<Binding>| self.roles.rules(one).is_some_and(|rules| rules.allow(attributes));
        bindings.filter(allows).collect()
    }

    /// Every binding by which somebody may do this, whoever that is; the user of the attributes does not matter.
    pub fn granting(&self, attributes: &Attributes<'_>) -> impl Iterator<Item = &Arc<Binding>> {
        let scopes = ["", attributes.namespace];
        self.bindings.iter().map(|ByKey(binding)| binding).filter(move |binding| {
            let rules = self.roles.rules(binding);
            scopes.contains(&binding.object.namespace()) && rules.is_some_and(|rules| rules.allow(attributes))
        })
    }

    /// Calls `see` with the bindings of a user, and the rules of their roles, until it returns false. A binding that has
    /// several subjects who are the user may come several times.
    fn visit<'a>(
        &'a self,
        user: &User,
        namespace: &str,
        see: &mut dyn FnMut(&'a Arc<Binding>, Option<&'a Rules>) -> bool,
    ) {
        let scopes = ["", namespace];
        for scope in &scopes[..if namespace.is_empty() { 1 } else { 2 }] {
            let scope_key = self.hasher.hash_one(scope);
            let groups = user.groups.iter().map(|group| (true, group.as_str()));
            for (is_group, name) in std::iter::once((false, user.name.as_str())).chain(groups) {
                let key = scope_key ^ self.hasher.hash_one((is_group, name));
                for binding in self.grants.get(&key).map_or(&[][..], Grants::bindings) {
                    if binding.object.namespace() == *scope
                        && binding.names(is_group, name)
                        && !see(binding, self.roles.rules(binding))
                    {
                        return;
                    }
                }
            }
        }
    }

    pub fn binding(&self, key: &str) -> Option<&Arc<Binding>> {
        self.bindings.get(key).map(|ByKey(binding)| binding)
    }

    /// The bindings to a role, if it exists. Looks at all bindings.
    pub fn bindings_to(&self, role: &str) -> impl Iterator<Item = &Arc<Binding>> {
        let number = self.roles.numbers.get(role).copied();
        let number = number.filter(|number| {
            let slot = self.roles.slots.get(*number as usize);
            slot.is_some_and(|role| role.rules.is_some() && role.bindings > 0)
        });
        let all = number.is_some().then_some(&self.bindings).into_iter().flatten();
        all.map(|ByKey(binding)| binding).filter(move |binding| binding.role == number)
    }

    /// Puts in a binding, in place of the one with its key.
    pub fn put_binding(&mut self, object: &Arc<Object>) {
        self.remove_binding(object.key());
        let Ok(content) = object.to_closed_map() else {
            tracing::error!(?object, "a binding cannot be read, and grants nothing");
            return;
        };
        let role = RoleRef::of(&content).key(object.namespace()).map(|key| self.roles.refer(key));
        let binding = Arc::new(Binding::new(object.clone(), &content, role));
        for key in self.grants_keys(&binding) {
            let binding = binding.clone();
            self.grants.entry(key).and_modify(|grants| grants.add(&binding)).or_insert(Grants::One(binding));
        }
        self.bindings.insert(ByKey(binding));
    }

    pub fn remove_binding(&mut self, key: &str) {
        let Some(ByKey(binding)) = self.bindings.take(key) else { return };
        for key in self.grants_keys(&binding) {
            if self.grants.get_mut(&key).is_some_and(|grants| grants.remove(&binding)) {
                self.grants.remove(&key);
            }
        }
        if let Some(role) = binding.role {
            self.roles.release(role);
        }
    }

    /// `role` has the rules, and the version that has them; `None` if the role does not exist.
    pub fn put_role(&mut self, key: &str, role: Option<(Arc<Rules>, Revision)>) {
        self.roles.put(key, role);
    }

    /// The keys of a binding's subjects, each once.
    fn grants_keys(&self, binding: &Binding) -> BTreeSet<u64> {
        let scope = self.hasher.hash_one(binding.object.namespace());
        let subjects = binding.subjects.iter();
        subjects.map(|one| scope ^ self.hasher.hash_one((one.sort == Sort::Group, &*one.name))).collect()
    }
}

impl Grants {
    fn bindings(&self) -> &[Arc<Binding>] {
        match self {
            Self::One(binding) => std::slice::from_ref(binding),
            Self::Many(bindings) => bindings,
        }
    }

    fn add(&mut self, binding: &Arc<Binding>) {
        match self {
            Self::One(first) => *self = Self::Many(Box::new(vec![first.clone(), binding.clone()])),
            Self::Many(bindings) => bindings.push(binding.clone()),
        }
    }

    /// Whether nothing is left.
    fn remove(&mut self, binding: &Arc<Binding>) -> bool {
        match self {
            Self::One(one) => Arc::ptr_eq(one, binding),
            Self::Many(bindings) => {
                bindings.retain(|one| !Arc::ptr_eq(one, binding));
                bindings.is_empty()
            }
        }
    }
}

impl Roles {
    fn rules(&self, binding: &Binding) -> Option<&Rules> {
        self.shared_rules(binding).map(|rules| &**rules)
    }

    fn shared_rules(&self, binding: &Binding) -> Option<&Arc<Rules>> {
        self.slots.get(binding.role? as usize)?.rules.as_ref()
    }

    /// The number of a role that one more binding refers to.
    fn refer(&mut self, key: Box<str>) -> u32 {
        let number = self.number(&key);
        if let Some(role) = self.slots.get_mut(number as usize) {
            role.bindings += 1;
        }
        number
    }

    fn release(&mut self, number: u32) {
        if let Some(role) = self.slots.get_mut(number as usize) {
            role.bindings -= 1;
        }
        self.forget_unused(number);
    }

    fn put(&mut self, key: &str, found: Option<(Arc<Rules>, Revision)>) {
        if found.is_none() && !self.numbers.contains_key(key) {
            return;
        }
        let number = self.number(key);
        if let Some(role) = self.slots.get_mut(number as usize) {
            let (rules, revision) = found.unzip();
            (role.rules, role.revision) = (rules, revision.unwrap_or_default());
        }
        self.forget_unused(number);
    }

    fn number(&mut self, key: &str) -> u32 {
        if let Some(number) = self.numbers.get(key) {
            return *number;
        }
        let role = Role { key: key.into(), ..Role::default() };
        let number = match self.free.pop() {
            Some(number) => {
                self.slots[number as usize] = role;
                number
            }
            None => {
                self.slots.push(role);
                (self.slots.len() - 1) as u32
            }
        };
        self.numbers.insert(key.into(), number);
        number
    }

    /// Frees the number of a role that neither exists nor is referred to.
    fn forget_unused(&mut self, number: u32) {
        let Some(role) = self.slots.get_mut(number as usize) else { return };
        if role.rules.is_none() && role.bindings == 0 {
            self.numbers.remove(&std::mem::take(&mut role.key));
            self.free.push(number);
        }
    }
}
