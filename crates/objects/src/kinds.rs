//! The server's knowledge of built-in kinds, in one place per kind. It is `kinds/<group>/<kind>.rs`, with a folder of the
//! same name if the file would be long. The value `KIND` at the top of a file is its table of contents.
//!
//! Only the kinds in their group's list exist, and each of them is served: discovery, OpenAPI, storage and all verbs
//! follow [`GROUPS`]. `behavior` contains the types with which kinds are described.

pub mod admissionregistration;
pub mod apiextensions;
pub mod apiregistration;
pub mod apiserverinternal;
pub mod apps;
pub mod authentication;
pub mod authorization;
pub mod autoscaling;
pub mod batch;
pub mod behavior;
pub mod built_in;
pub mod certificates;
pub mod conversion_review;
pub mod coordination;
pub mod core;
pub mod custom;
pub mod discovery;
pub mod events;
pub mod flowcontrol;
pub mod networking;
pub mod node;
pub mod policy;
pub mod prelude;
pub mod rbac;
pub mod resource;
pub mod scheduling;
pub mod storage;
pub mod storagemigration;

use behavior::Group;

/// All built-in groups, by name.
pub static GROUPS: &[&Group] = &[
    &admissionregistration::GROUP,
    &apiextensions::GROUP,
    &apiregistration::GROUP,
    &apiserverinternal::GROUP,
    &apps::GROUP,
    &authentication::GROUP,
    &authorization::GROUP,
    &autoscaling::GROUP,
    &batch::GROUP,
    &certificates::GROUP,
    &coordination::GROUP,
    &core::GROUP,
    &discovery::GROUP,
    &events::GROUP,
    &flowcontrol::GROUP,
    &networking::GROUP,
    &node::GROUP,
    &policy::GROUP,
    &rbac::GROUP,
    &resource::GROUP,
    &scheduling::GROUP,
    &storage::GROUP,
    &storagemigration::GROUP,
];
