//! The group `discovery.k8s.io`.

pub mod endpoint_slice;

use crate::kinds::prelude::*;

pub static GROUP: Group = Group {
    name: "discovery.k8s.io",
    priority: 16_200,
    versions: &[Version { name: "v1", kinds: &[&endpoint_slice::KIND] }],
};
