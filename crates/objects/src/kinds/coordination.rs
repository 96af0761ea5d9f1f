//! The group `coordination.k8s.io`.

pub mod lease;

use crate::kinds::prelude::*;

pub static GROUP: Group = Group {
    name: "coordination.k8s.io",
    priority: 16_500,
    versions: &[Version { name: "v1", kinds: &[&lease::KIND] }],
};
