//! HTTP: routes, media types, streaming bodies, discovery, health. Knows nothing of SQL.

pub mod discovery;
pub mod document;
pub mod negotiate;
pub mod openapi;
pub mod status;
pub mod table;
