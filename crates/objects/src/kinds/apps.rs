//! The group `apps`.

pub mod controller_revision;
pub mod daemon_set;
pub mod deployment;
pub mod replica_set;
pub mod rollout;
pub mod shared;
pub mod stateful_set;

use crate::kinds::prelude::*;

pub static GROUP: Group = Group {
    name: "apps",
    priority: 17_800,
    versions: &[Version {
        name: "v1",
        kinds: &[
            &controller_revision::KIND,
            &daemon_set::KIND,
            &deployment::KIND,
            &replica_set::KIND,
            &stateful_set::KIND,
        ],
    }],
};
