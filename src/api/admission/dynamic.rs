//! Admission that objects or files configure: webhooks and policies, what they match, and how they are followed.

pub(in crate::api::admission) mod authorize;
mod by_resource;
pub(in crate::api::admission) mod conditions;
pub mod configured;
pub(in crate::api::admission) mod evaluation;
pub(in crate::api::admission) mod follow;
pub(in crate::api::admission) mod hooks;
pub(in crate::api::admission) mod manifests;
pub(in crate::api::admission) mod matching;
pub mod policies;
