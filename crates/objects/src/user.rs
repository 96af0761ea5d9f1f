//! Users: who makes a request.

use std::collections::BTreeMap;

use crate::tree::{Map, Value, json};

/// The group whose members may do everything; they bypass every authorizer.
pub const MASTERS: &str = "system:masters";
/// The group of all authenticated users.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group of users who are not authenticated.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The user of requests without a credential.
pub const ANONYMOUS: &str = "system:anonymous";

/// The common name in the admin's certificate; the same as kubeadm's.
pub const ADMIN: &str = "kubernetes-admin";

/// The user of a request, like upstream's `user.Info`, and in the form of `SelfSubjectReview`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// The user of a request without credentials.
    pub fn anonymous() -> Self {
        Self { name: ANONYMOUS.to_owned(), groups: vec![UNAUTHENTICATED.to_owned()], ..Self::default() }
    }

    /// The server itself, as its controllers write.
    pub fn apiserver() -> Self {
        Self { name: "system:apiserver".to_owned(), groups: vec![MASTERS.to_owned()], ..Self::default() }
    }

    /// The admin of the admin's certificate, who may do everything.
    pub fn admin() -> Self {
        let admin = Self { name: ADMIN.to_owned(), groups: vec![MASTERS.to_owned()], ..Self::default() };
        admin.authenticated()
    }

    /// `authentication.k8s.io/v1 UserInfo`; empty parts are left out.
    pub fn info(&self) -> Value {
        let mut info = Map::new();
        for (name, text) in [("username", &self.name), ("uid", &self.uid)] {
            if !text.is_empty() {
                info.insert(name, text.as_str().into());
            }
        }
        if !self.groups.is_empty() {
            info.insert("groups", json!(self.groups));
        }
        if !self.extra.is_empty() {
            info.insert("extra", json!(self.extra));
        }
        Value::Object(info)
    }

    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }

    /// Adds `system:authenticated`, unless the user is in it already or counts as not authenticated.
    pub fn authenticated(mut self) -> Self {
        if self.name != ANONYMOUS && !self.is_in(AUTHENTICATED) && !self.is_in(UNAUTHENTICATED) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }
}
