//! Bindings as the index holds them.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::sync::Arc;

use arc_swap::ArcSwapOption;

use super::super::authorizer::{Attributes, Explain};
use crate::codec::object::{Object, joined_key};
use crate::fields;
use crate::gotext::quote;
use crate::tree::{Map, Value};
use crate::user::User;

const ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// A ClusterRoleBinding or RoleBinding. Its content is in memory once, in the cache's object.
#[derive(Debug)]
pub struct Binding {
    pub object: Arc<Object>,
    /// The number of its role in the index; `None` if the reference can name no role.
    pub role: Option<u32>,
    pub subjects: Box<[Subject]>,
    /// The grant in words, once somebody has asked for it: to make it, the content of the binding has to be read.
    grant: ArcSwapOption<String>,
}

/// A user, a group or an account that a binding is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    pub sort: Sort,
    /// The name; for an account, the name of the user that it is.
    pub name: Box<str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    User,
    Group,
    Account,
}

/// A role that a binding refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleRef<'a> {
    pub kind: &'a str,
    pub name: &'a str,
}

impl<'a> RoleRef<'a> {
    pub fn of(binding: &'a Map) -> Self {
        let text = |name| fields::text(binding, &["roleRef", name]);
        Self { kind: text("kind"), name: text("name") }
    }

    /// The key of the role: that of a Role in the binding's namespace, or that of a ClusterRole.
    pub fn key(&self, namespace: &str) -> Option<Box<str>> {
        match self.kind {
            "ClusterRole" => Some(joined_key("", self.name)),
            "Role" if !namespace.is_empty() => Some(joined_key(namespace, self.name)),
            _ => None,
        }
    }

    /// The error of a role that does not exist, as Go's NotFound says it, or of a kind that no role has.
    pub fn not_found(&self) -> String {
        match self.kind {
            "ClusterRole" => format!("clusterrole.rbac.authorization.k8s.io {} not found", quote(self.name)),
            "Role" => format!("role.rbac.authorization.k8s.io {} not found", quote(self.name)),
            other => format!("unsupported role reference kind: {}", quote(other)),
        }
    }
}

impl Binding {
    pub fn new(object: Arc<Object>, content: &Map, role: Option<u32>) -> Self {
        let namespace = object.namespace();
        let subjects = fields::items(content, &["subjects"]).iter().filter_map(Value::as_object);
        let subjects = subjects.filter_map(|subject| Subject::of(subject, namespace)).collect();
        Self { role, subjects, object, grant: ArcSwapOption::default() }
    }

    /// Whether a group, or a user of this name, is among the subjects.
    pub fn names(&self, is_group: bool, name: &str) -> bool {
        self.subjects.iter().any(|one| (one.sort == Sort::Group) == is_group && *one.name == *name)
    }

    /// The first subject that is the user.
    fn subject_of(&self, user: &User) -> Option<&Subject> {
        self.subjects.iter().find(|subject| subject.is(user))
    }

    /// The text of [`RoleRef::not_found`].
    pub fn missing_role(&self) -> String {
        let content = self.object.to_closed_map().unwrap_or_default();
        RoleRef::of(&content).not_found()
    }
}

impl Binding {
    /// `RoleBinding "b/ns" of Role "r" to User "u"`.
    pub fn grant_to(&self, subject: &Subject) -> String {
        let grant = self.grant.load_full().unwrap_or_else(|| {
            let grant = Arc::new(self.grant());
            self.grant.store(Some(grant.clone()));
            grant
        });
        format!("{grant} to {}", subject.shown())
    }

    /// `RoleBinding "b/ns" of Role "r"`.
    fn grant(&self) -> String {
        let content = self.object.to_closed_map().unwrap_or_default();
        let role = RoleRef::of(&content);
        let (kind, name) = match (self.object.namespace(), self.object.name()) {
            ("", name) => ("ClusterRoleBinding", name.to_owned()),
            (namespace, name) => ("RoleBinding", format!("{name}/{namespace}")),
        };
        format!("{kind} {} of {} {}", quote(&name), role.kind, quote(role.name))
    }
}

impl Explain for Binding {
    fn explain(&self, attributes: &Attributes<'_>) -> String {
        let subject = self.subject_of(attributes.user);
        subject.map(|subject| format!("RBAC: allowed by {}", self.grant_to(subject))).unwrap_or_default()
    }
}

impl Subject {
    /// `None` if it can be nobody.
    fn of(subject: &Map, namespace: &str) -> Option<Self> {
        let text = |name| fields::text(subject, &[name]);
        let name = text("name");
        match text("kind") {
            "User" => Some(Self { sort: Sort::User, name: name.into() }),
            "Group" => Some(Self { sort: Sort::Group, name: name.into() }),
            "ServiceAccount" => {
                let namespace = Some(text("namespace")).filter(|own| !own.is_empty()).unwrap_or(namespace);
                let name = format!("{ACCOUNT_PREFIX}{namespace}:{name}").into();
                (!namespace.is_empty()).then_some(Self { sort: Sort::Account, name })
            }
            _ => None,
        }
    }

    pub fn is(&self, user: &User) -> bool {
        match self.sort {
            Sort::User | Sort::Account => *self.name == user.name,
            Sort::Group => user.is_in(&self.name),
        }
    }

    /// `ServiceAccount "name/namespace"`.
    pub fn shown(&self) -> String {
        match self.sort {
            Sort::User => format!("User {}", quote(&self.name)),
            Sort::Group => format!("Group {}", quote(&self.name)),
            Sort::Account => {
                let account = self.name.strip_prefix(ACCOUNT_PREFIX).and_then(|rest| rest.split_once(':'));
                let (namespace, name) = account.unwrap_or_default();
                format!("ServiceAccount {}", quote(&format!("{name}/{namespace}")))
            }
        }
    }
}

/// A binding in the order of keys.
#[derive(Debug)]
pub struct ByKey(pub Arc<Binding>);

impl Borrow<str> for ByKey {
    fn borrow(&self) -> &str {
        self.0.object.key()
    }
}

impl Ord for ByKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.object.key().cmp(other.0.object.key())
    }
}

impl PartialOrd for ByKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ByKey {}
