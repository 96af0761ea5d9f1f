//! The verbs of the API, a file for each: one generic implementation for all resources.

pub mod apply;
pub mod component_statuses;
pub mod create;
pub mod delete;
pub mod deletecollection;
pub mod get;
pub mod list;
pub mod past;
pub mod patch;
pub mod restore;
pub mod snapshot;
pub mod update;
pub mod watch;
