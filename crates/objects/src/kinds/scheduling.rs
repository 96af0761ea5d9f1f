//! The group `scheduling.k8s.io`.

pub mod priority_class;

use crate::kinds::prelude::*;

pub static GROUP: Group = Group {
    name: "scheduling.k8s.io",
    priority: 16_600,
    versions: &[Version { name: "v1", kinds: &[&priority_class::KIND] }],
};
