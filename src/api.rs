//! The verbs of the API: one generic implementation for all resources.
//!
//! [`Api`] holds what verbs need; each verb has a file of its own. Objects come in and go out as JSON maps in the
//! version of the request, and are stored in the resource's storage version.

pub mod admission;
pub mod apply;
pub mod catalog;
pub mod component_statuses;
pub mod concerns;
pub mod create;
pub mod definitions;
pub mod delete;
pub mod deletecollection;
pub mod deletion;
pub mod effects;
pub mod error;
pub mod get;
pub mod hidden;
pub mod input;
pub mod list;
pub mod meta;
pub mod namespace_contents;
pub mod ownership;
pub mod patch;
pub mod protobuf_messages;
pub mod quota;
pub mod request;
pub mod resource;
pub mod rights;
pub mod service_routes;
pub mod services;
pub mod storage_version;
pub mod subresource;
pub mod unreadable;
pub mod update;
pub mod watch;
pub mod write;

#[cfg(test)]
mod compared;
#[cfg(test)]
mod verdicts;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;

use self::admission::Chain;
use self::catalog::{Catalog, Served};
use self::definitions::Definitions;
use self::definitions::conversion::Converter;
use self::hidden::HiddenResources;
use self::input::continue_token::TokenKeys;
use self::namespace_contents::NamespaceContents;
use self::resource::Resource;
use self::rights::aggregation::Aggregation;
use self::service_routes::ServiceRoutes;
use self::subresource::connect::kubelets::Kubelets;
use self::subresource::token_request::TokenIssuing;
use self::unreadable::Unreadable;
use crate::auth::rbac::Rbac;
use crate::cache::Cache;
use crate::codec::object::Object;
use crate::encryption::Encryption;
pub use crate::fields::{self, ObjectMap};
use crate::gotext;
use crate::long_work::Lanes;
use crate::runtime::Runtime;
use crate::storage::{Key, Store};
use crate::tree::{Map, Value};

/// Everything that verbs need. Share it behind an `Arc`.
pub struct Api {
    pub store: Store,
    pub cache: Cache,
    /// The built-in resources, which every generation contains. For all resources ask the catalog.
    pub resources: Arc<Served>,
    pub catalog: Catalog,
    pub definitions: Definitions,
    pub converter: Arc<Converter>,
    /// The addresses of Services, for webhooks that name a Service.
    pub service_routes: Arc<ServiceRoutes>,
    /// How kubelets are reached.
    pub kubelets: Kubelets,
    pub token_keys: ArcSwap<TokenKeys>,
    pub hidden: HiddenResources,
    /// When Pods that are being deleted are past their grace period.
    pub grace_ends: quota::past_grace::GraceEnds,
    /// The row that stands for what configures admission.
    pub configured: admission::dynamic::configured::Configured,
    /// The ClusterRoles that consist of others.
    pub aggregation: Aggregation,
    pub unreadable: Unreadable,
    pub runtime: Runtime,
    pub config: Config,
    pub admission: Chain,
    pub tokens: TokenIssuing,
    /// The limit on concurrent work on large stored objects, which all requests share.
    pub lanes: Lanes,
    pub encryption: Encryption,
    /// Managers of reviews, bindings and the like.
    pub actions: ownership::action::Actions,
    /// Roles and bindings, by which nobody may grant what he does not have. `None` if they are not served.
    pub rbac: Option<Rbac>,
}

impl Api {
    /// The time of day in the form of `creationTimestamp`.
    pub fn now(&self) -> String {
        gotext::time(self.runtime.clock.timestamp())
    }

    /// The time of day in the form of a Lease's `renewTime`.
    pub fn now_micro(&self) -> String {
        gotext::micro_time(self.runtime.clock.timestamp())
    }
}

/// Settings of the verbs.
#[derive(Clone)]
pub struct Config {
    /// The shortest duration of a watch without a timeout of its own. The server chooses one between this and twice
    /// this.
    pub min_request_timeout: Duration,
    pub services: services::Config,
    /// The objects that the server puts into each namespace; `None` if that is left to kube-controller-manager.
    pub namespace_contents: Option<NamespaceContents>,
    /// Whether writes also do what kube-controller-manager does elsewhere: aggregate ClusterRoles, set the limits in the
    /// status of quotas.
    pub cluster_controllers: bool,
    /// Whether foreground and orphan deletion set the finalizers that a garbage collector takes off.
    pub garbage_collection: bool,
    /// Makes a name from a `generateName`, with a new random suffix at each call.
    pub generate_name: Arc<dyn Fn(&str) -> String + Send + Sync>,
}

/// One object of a resource. Cluster-scoped objects have an empty namespace.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    pub resource: &'a Resource,
    pub namespace: &'a str,
    pub name: &'a str,
}

/// The object with which a write is answered.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The stored object, in the version it is stored in.
    Stored(Arc<Object>),
    /// An object that is not stored, in the request's version: the result of a dry run, or a deleted object's last
    /// state.
    Unstored(ObjectMap),
}

impl Target<'_> {
    fn key(&self) -> Key {
        Key::new(self.resource.id, self.namespace, self.name)
    }

    fn not_found(&self) -> error::Error {
        error::Error::NotFound { resource: self.resource.group_resource(), name: self.name.to_owned() }
    }
}

/// The `metadata` of an object. Inserted if it is missing, so that callers can write to it.
pub fn metadata_mut(object: &mut ObjectMap) -> &mut meta::Metadata {
    let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    match metadata {
        Value::Object(metadata) => metadata,
        _ => unreachable!("made an object above"),
    }
}

/// The `metadata` of an object, if there is one.
pub fn metadata(object: &ObjectMap) -> Option<&meta::Metadata> {
    object.get("metadata").and_then(Value::as_object)
}
