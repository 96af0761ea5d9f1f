//! HTTP: routes, media types, streaming bodies, discovery, health. Knows nothing of SQL.

pub mod negotiate;
pub mod status;
