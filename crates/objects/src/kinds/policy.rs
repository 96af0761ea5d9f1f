//! The group `policy`.

pub mod pod_disruption_budget;

use crate::kinds::prelude::*;

pub static GROUP: Group = Group {
    name: "policy",
    priority: 17_100,
    versions: &[Version { name: "v1", kinds: &[&pod_disruption_budget::KIND] }],
};
