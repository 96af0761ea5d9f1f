//! The group `apiregistration.k8s.io`.

pub mod api_service;

use crate::kinds::prelude::*;

pub static GROUP: Group = Group {
    name: "apiregistration.k8s.io",
    priority: u32::MAX,
    versions: &[Version { name: "v1", kinds: &[&api_service::KIND] }],
};
