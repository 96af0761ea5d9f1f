//! The methods of each service, beside the engine.

mod access;
mod auth;
mod cluster;
mod election;
mod kv;
mod lease;
mod lock;
mod maintenance;
mod queue;
mod watch;
