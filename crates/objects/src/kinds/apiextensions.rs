//! The group `apiextensions.k8s.io`.

pub mod custom_resource_definition;

use crate::kinds::prelude::*;

pub static GROUP: Group = Group {
    name: "apiextensions.k8s.io",
    priority: 16_700,
    versions: &[Version { name: "v1", kinds: &[&custom_resource_definition::KIND] }],
};
