//! HTTP: routes, media types, streaming bodies, discovery, health. Knows nothing of SQL.

pub mod health;
pub mod metrics;
pub mod server;
pub mod status;
pub mod tls;
