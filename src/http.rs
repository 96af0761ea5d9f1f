//! HTTP: routes, media types, streaming bodies, discovery, health. This module knows nothing of SQL.

pub mod app;
mod body;
mod compress;
mod conditional;
pub mod discovery;
pub mod document;
mod documents;
pub mod door;
mod encode;
pub mod health;
pub mod in_process;
pub mod limits;
pub mod negotiate;
pub mod openapi;
pub mod publications;
mod request;
mod request_body;
mod request_info;
mod request_path;
mod resource;
mod response;
pub mod routes;
pub mod server;
pub mod status;
pub mod table;
pub mod tls;
mod warnings;
