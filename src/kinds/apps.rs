pub mod controller_revision;
pub mod daemon_set;
pub mod deployment;
pub mod replica_set;
pub mod rollout;
pub mod shared;
pub mod stateful_set;
