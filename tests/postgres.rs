//! The link to PostgreSQL: its security, the settings of sessions, what remains after a stall, what becomes of a batch whose
//! answer is lost, and the check that it is the right database.

mod support;

#[path = "postgres/batches.rs"]
mod batches;
#[path = "postgres/engines.rs"]
mod engines;
#[path = "postgres/hosts.rs"]
mod hosts;
#[path = "postgres/lineage.rs"]
mod lineage;
#[path = "postgres/patroni.rs"]
mod patroni;
#[path = "postgres/poolers.rs"]
mod poolers;
#[path = "postgres/sessions.rs"]
mod sessions;
#[path = "postgres/tls.rs"]
mod tls;
