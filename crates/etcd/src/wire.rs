//! etcd's API on the wire: gRPC and JSON, one method each time, over what the engine makes of the store.
//!
//! `methods` has one line a method, whatever the protocol (`exchange`, with `grpc` and `gateway`); `services` has what each
//! does before and after the engine.

mod answer;
mod auth;
mod exchange;
mod gateway;
mod grpc;
mod json;
pub mod messages;
mod methods;
mod passwords;
mod server;
mod services;
mod snapshot;

pub use answer::is_call;
pub use exchange::Peer;
pub use server::{Open, Options, Server};
