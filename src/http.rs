//! HTTP: routes, media types, streaming bodies, discovery, health. This module knows nothing of the
//! SQL of the store.

pub mod app;
mod ask;
pub mod branches;
mod changes;
pub mod console;
pub mod documents;
pub mod door;
mod extension;
pub mod health;
pub mod in_process;
pub mod limits;
pub mod past;
mod request;
mod resource;
mod response;
pub mod router;
pub mod routes;
pub mod server;
pub mod sql;
pub mod test_endpoints;
pub mod tls;
mod visible;
mod websocket;
pub mod zpages;
