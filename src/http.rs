//! HTTP: routes, media types, streaming bodies, discovery, health. Knows nothing of SQL.

pub mod discovery;
pub mod document;
pub mod health;
pub mod metrics;
pub mod negotiate;
pub mod openapi;
pub mod server;
pub mod status;
pub mod table;
pub mod tls;
