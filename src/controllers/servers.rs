//! The servers of a store: their leases, their registrations, who leads, and at which addresses they are reached.

pub mod identity_lease;
pub mod identity_lease_gc;
pub mod kubernetes_service;
pub mod leader;
pub(in crate::controllers) mod registration;
pub(in crate::controllers) mod storage_version_gc;
