//! Admission that objects or files configure: webhooks and policies, what they match, and how they are followed.

pub(in crate::admission) mod authorize;
mod by_resource;
pub(in crate::admission) mod conditions;
pub mod configured;
pub(in crate::admission) mod evaluation;
pub(in crate::admission) mod follow;
pub(in crate::admission) mod hooks;
pub(in crate::admission) mod manifests;
pub(in crate::admission) mod matching;
pub mod policies;
pub(in crate::admission) mod reinvocation;
