//! Plugins that look at Pods.

pub(in crate::api::admission) mod always_pull;
pub(in crate::api::admission) mod anti_affinity;
pub(in crate::api::admission) mod extended_resources;
pub(in crate::api::admission) mod image_policy;
pub(in crate::api::admission) mod node_selector;
pub(in crate::api::admission) mod priority;
pub(in crate::api::admission) mod resize;
pub(in crate::api::admission) mod runtime_class;
pub(in crate::api::admission) mod security;
pub(in crate::api::admission) mod service_account;
pub(in crate::api::admission) mod toleration_restriction;
pub(in crate::api::admission) mod tolerations;
pub(in crate::api::admission) mod topology_labels;
pub(in crate::api::admission) mod usage;
