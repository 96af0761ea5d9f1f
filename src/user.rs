//! Who makes a change.

use std::collections::BTreeMap;

/// The group whose members may do everything; it stands above every authorizer.
pub const MASTERS: &str = "system:masters";
/// The group of everybody who proved an identity.
pub const AUTHENTICATED: &str = "system:authenticated";

/// The common name in the admin's certificate, as kubeadm's.
pub const ADMIN: &str = "kubernetes-admin";

/// Who makes a request, as upstream's `user.Info` and as `SelfSubjectReview` shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// The user of a request to an open path that showed no credentials.
    pub fn anonymous() -> Self {
        Self {
            name: "system:anonymous".to_owned(),
            groups: vec!["system:unauthenticated".to_owned()],
            ..Self::default()
        }
    }

    /// The server itself, as its controllers write.
    pub fn apiserver() -> Self {
        Self { name: "system:apiserver".to_owned(), groups: vec![MASTERS.to_owned()], ..Self::default() }
    }

    /// Who may do everything, as the admin's certificate names him.
    pub fn admin() -> Self {
        let admin = Self { name: ADMIN.to_owned(), groups: vec![MASTERS.to_owned()], ..Self::default() };
        admin.authenticated()
    }

    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }

    /// Joins `system:authenticated`, once.
    pub(crate) fn authenticated(mut self) -> Self {
        if !self.is_in(AUTHENTICATED) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }
}
