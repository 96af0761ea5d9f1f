//! Roles and bindings as somebody read them from a store, and what follows from them in words.

use super::super::authorizer::{Attributes, Explain as _};
use super::policy::Policy;
use super::{CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES};
use super::{Object, ROLE_BINDINGS, ROLES};
use crate::cache::follower::Content as _;
use crate::schema::names::Gvr;
use std::sync::{Arc, OnceLock};

/// The policy of a store at one time.
#[derive(Default)]
pub struct Account(Policy);

impl Account {
    /// The resources of a policy, in the order of [`super::Rbac`]'s.
    pub const RESOURCES: [Gvr; 4] = [CLUSTER_ROLES, ROLES, CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS];

    /// Takes in an object of one of the [resources](Self::RESOURCES).
    pub fn add(&mut self, resource: &Gvr, object: &Arc<Object>) {
        if let Some(place) = Self::RESOURCES.iter().position(|known| known == resource) {
            self.0.take_in(&OnceLock::new(), place, object.key(), Some(object));
        }
    }

    /// Every reason for which a request is allowed.
    pub fn reasons(&self, attributes: &Attributes<'_>) -> Vec<String> {
        self.0.allowing(attributes).iter().map(|binding| binding.explain(attributes)).collect()
    }

    /// The roles that a user is bound to and that do not exist.
    pub fn missing_roles(&self, attributes: &Attributes<'_>) -> Option<String> {
        self.0.missing_roles(attributes.user, attributes.namespace)
    }

    /// Everybody who may do this, with the binding that says so.
    pub fn grants(&self, attributes: &Attributes<'_>) -> Vec<(String, String)> {
        let grant = |binding: &Arc<super::binding::Binding>| {
            let subjects = binding.subjects.iter();
            subjects.map(|subject| (subject.shown(), binding.grant_to(subject))).collect::<Vec<_>>()
        };
        self.0.granting(attributes).flat_map(grant).collect()
    }
}
