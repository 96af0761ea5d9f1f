//! The core group.

pub mod component_status;
pub mod config_map;
pub mod endpoints;
pub mod event;
pub mod limit_range;
pub mod namespace;
pub mod node;
pub mod persistent_volume;
pub mod persistent_volume_claim;
pub mod pod;
pub mod pod_spec;
pub mod pod_template;
pub mod replication_controller;
pub mod resource_quota;
pub mod secret;
pub mod service;
pub mod service_account;
pub mod volume_source;

use crate::kinds::prelude::*;

pub static GROUP: Group = Group {
    name: "",
    priority: 18_000,
    versions: &[Version {
        name: "v1",
        kinds: &[
            &BINDING,
            &component_status::KIND,
            &config_map::KIND,
            &endpoints::KIND,
            &event::KIND,
            &limit_range::KIND,
            &namespace::KIND,
            &node::KIND,
            &persistent_volume_claim::KIND,
            &persistent_volume::KIND,
            &pod::KIND,
            &pod_template::KIND,
            &replication_controller::KIND,
            &resource_quota::KIND,
            &secret::KIND,
            &service_account::KIND,
            &service::KIND,
        ],
    }],
};

/// An action, not an object: a pod is bound to a node (`api/src/subresource/binding.rs`).
pub static BINDING: BuiltIn = BuiltIn::not_stored(namespaced("bindings", "Binding"));
