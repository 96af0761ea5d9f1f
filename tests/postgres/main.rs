//! The link to PostgreSQL: its security, the settings of sessions, what remains after a stall, what becomes of a batch whose
//! answer is lost, and the check that it is the right database.

#[path = "../support/mod.rs"]
mod support;

mod batches;
mod engines;
mod hosts;
mod lineage;
mod patroni;
mod poolers;
mod sessions;
mod shared;
mod tls;
