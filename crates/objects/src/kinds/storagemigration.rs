//! The group `storagemigration.k8s.io`.

pub mod storage_version_migration;

use crate::kinds::prelude::*;

pub static GROUP: Group = Group {
    name: "storagemigration.k8s.io",
    priority: 15_800,
    versions: &[Version { name: "v1", kinds: &[&storage_version_migration::KIND] }],
};
