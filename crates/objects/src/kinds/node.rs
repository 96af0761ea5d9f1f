//! The group `node.k8s.io`.

pub mod runtime_class;

use crate::kinds::prelude::*;

pub static GROUP: Group = Group {
    name: "node.k8s.io",
    priority: 16_300,
    versions: &[Version { name: "v1", kinds: &[&runtime_class::KIND] }],
};
