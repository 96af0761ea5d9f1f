//! The group `rbac.authorization.k8s.io`.

pub mod binding;
pub mod cluster_role;
pub mod cluster_role_binding;
pub mod role;
pub mod role_binding;
pub mod shared;

use crate::kinds::prelude::*;

pub static GROUP: Group = Group {
    name: "rbac.authorization.k8s.io",
    priority: 17_000,
    versions: &[Version {
        name: "v1",
        kinds: &[&cluster_role_binding::KIND, &cluster_role::KIND, &role_binding::KIND, &role::KIND],
    }],
};
