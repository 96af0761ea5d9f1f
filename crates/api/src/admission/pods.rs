//! Plugins that look at Pods.

pub(in crate::admission) mod always_pull;
pub(in crate::admission) mod anti_affinity;
pub(in crate::admission) mod extended_resources;
pub(in crate::admission) mod image_policy;
pub(in crate::admission) mod node_selector;
pub(in crate::admission) mod priority;
pub(in crate::admission) mod resize;
pub(in crate::admission) mod runtime_class;
pub(in crate::admission) mod security;
pub(in crate::admission) mod service_account;
pub(in crate::admission) mod toleration_restriction;
pub(in crate::admission) mod tolerations;
pub(in crate::admission) mod topology_labels;
pub(in crate::admission) mod usage;
