//! The group `flowcontrol.apiserver.k8s.io`.

pub mod bootstrap;
pub mod flow_schema;
pub mod priority_level_configuration;
pub mod shared;

use crate::kinds::prelude::*;

pub static GROUP: Group = Group {
    name: "flowcontrol.apiserver.k8s.io",
    priority: 16_100,
    versions: &[Version { name: "v1", kinds: &[&flow_schema::KIND, &priority_level_configuration::KIND] }],
};
