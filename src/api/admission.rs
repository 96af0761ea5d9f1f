//! Admission: a chain of plugins that see every write between decoding and the store, and may change or refuse it.
//!
//! First all plugins complete the object ([`Admission::mutate`]). This happens after its field managers were
//! determined, so that no manager owns what plugins add, and before the kind's own changes. When the object has been
//! validated, the plugins see it again ([`Admission::validate`]). If a plugin fails with an error, the write fails like
//! a refused one.
//!
//! The plugins here are those of kube-apiserver's default set that have something to do. ServiceAccount is not among
//! them, as in envtest: it refuses every Pod unless a controller has created the `default` ServiceAccounts, and no
//! controller here does.

mod classes;
mod limits;
mod namespace;
mod priority;
mod protection;
mod resource_quota;
mod runtime_class;
mod service_account;
mod tolerations;
mod usage;
mod view;

use std::sync::atomic::AtomicBool;

use futures_util::future::BoxFuture;

use super::error::Error;
use super::request::Request;
use super::{Api, ObjectMap, Target};
use crate::storage::Requirement;

use classes::{DefaultIngressClass, DefaultStorageClass};
use limits::LimitRanger;
use namespace::NamespaceLifecycle;
use priority::Priority;
use protection::StorageObjectInUseProtection;
use resource_quota::ResourceQuota;
use runtime_class::RuntimeClass;
use tolerations::{DefaultTolerationSeconds, TaintNodesByCondition};

/// What a write does to an object. A PATCH or PUT counts as a create if the object does not exist; an action such as a
/// binding is a create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
}

/// An admission plugin. A write that loses a race is tried again, and its plugins are called again with the newer
/// state.
pub trait Admission: Send + Sync {
    /// Whether the plugin wants to see such a request. Called for every write, so it must be cheap.
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool;

    /// Completes the object, or refuses it.
    fn mutate<'a>(&'a self, _: &'a mut Attempt<'_>) -> Verdict<'a> {
        Verdict::Now(Ok(()))
    }

    /// Accepts or refuses the object, which is complete and valid now.
    fn validate<'a>(&'a self, _: &'a Attempt<'_>) -> Verdict<'a> {
        Verdict::Now(Ok(()))
    }
}

/// A plugin's decision: available at once, or after the plugin has queried something.
pub enum Verdict<'a> {
    Now(Result<(), Error>),
    Later(BoxFuture<'a, Result<(), Error>>),
}

impl Verdict<'_> {
    async fn decided(self) -> Result<(), Error> {
        match self {
            Verdict::Now(verdict) => verdict,
            Verdict::Later(verdict) => verdict.await,
        }
    }
}

/// A write in progress, as plugins see it. Objects are in the request's version, and their `managedFields` are
/// [closed](crate::codec::managed).
pub struct Attempt<'a> {
    /// For queries of the store.
    pub api: &'a Api,
    pub request: &'a Request<'a>,
    pub operation: Operation,
    /// The request's target; if a new object was sent without a name, with the generated one.
    pub target: Target<'a>,
    /// The object to write; `None` for a deletion. For the subresource `scale` it is the Scale; for an action, the body
    /// that describes the action.
    pub object: Option<ObjectMap>,
    /// The object that is replaced or deleted; `None` for a deletion of an object that cannot be read.
    pub old: Option<&'a ObjectMap>,
    pub(super) requires: Vec<Requirement>,
    /// Whether the write may not exceed the quotas of its namespace.
    pub(super) limited: AtomicBool,
}

impl<'a> Attempt<'a> {
    pub(super) fn new(
        api: &'a Api,
        request: &'a Request<'a>,
        operation: Operation,
        old: Option<&'a ObjectMap>,
    ) -> Self {
        Self { api, request, operation, target: request.target, object: None, old, requires: Vec::new(), limited: AtomicBool::new(false) }
    }

    pub(super) fn with(self, object: ObjectMap) -> Self {
        Self { object: Some(object), ..self }
    }

    /// Makes the write depend on another row. If the requirement fails at the commit, the write is tried again.
    pub fn require(&mut self, requirement: Requirement) {
        self.requires.push(requirement);
    }

    pub(super) fn object_mut(&mut self) -> Result<&mut ObjectMap, Error> {
        self.object.as_mut().ok_or_else(taken)
    }

    pub(super) fn take_object(&mut self) -> Result<ObjectMap, Error> {
        self.object.take().ok_or_else(taken)
    }
}

/// Whether a request is for whole objects of this kind, not for a subresource.
fn of_kind(request: &Request<'_>, group: &str, kind: &str) -> bool {
    let definition = &request.target.resource.definition;
    definition.kind_name() == kind && definition.group() == group && request.subresource.is_empty()
}

fn taken() -> Error {
    Error::Internal("an admission plugin has taken the object away".to_owned())
}

/// All plugins, in the order in which they are called.
pub struct Chain(Vec<Box<dyn Admission>>);

impl Chain {
    /// The built-in plugins, in the order of upstream's `AllOrderedPlugins`.
    pub fn built_in() -> Self {
        Self(vec![
            Box::new(NamespaceLifecycle),
            Box::new(LimitRanger),
            Box::new(TaintNodesByCondition),
            Box::new(Priority),
            Box::new(DefaultTolerationSeconds),
            Box::new(DefaultStorageClass),
            Box::new(StorageObjectInUseProtection),
            Box::new(RuntimeClass),
            Box::new(DefaultIngressClass),
            Box::new(ResourceQuota),
        ])
    }

    /// Appends a plugin, at the place where upstream has webhooks and policies.
    pub fn with(mut self, plugin: impl Admission + 'static) -> Self {
        self.0.push(Box::new(plugin));
        self
    }

    pub(super) async fn mutate(&self, attempt: &mut Attempt<'_>) -> Result<(), Error> {
        for plugin in &self.0 {
            if plugin.handles(attempt.operation, attempt.request) {
                plugin.mutate(attempt).decided().await?;
            }
        }
        Ok(())
    }

    pub(super) async fn validate(&self, attempt: &Attempt<'_>) -> Result<(), Error> {
        for plugin in &self.0 {
            if plugin.handles(attempt.operation, attempt.request) {
                plugin.validate(attempt).decided().await?;
            }
        }
        Ok(())
    }
}
