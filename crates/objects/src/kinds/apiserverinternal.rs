//! The group `internal.apiserver.k8s.io`.

pub mod storage_version;

use crate::kinds::prelude::*;

pub static GROUP: Group = Group {
    name: "internal.apiserver.k8s.io",
    priority: 16_000,
    versions: &[Version { name: "v1alpha1", kinds: &[&storage_version::KIND] }],
};
