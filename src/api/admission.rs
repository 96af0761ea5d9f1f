//! Admission: a chain of plugins that see every write between decoding and the store, and may change or refuse it.
//!
//! First all plugins complete the object ([`Admission::mutate`]), behind the tracking of ownership, so that nobody owns
//! what they add, and before the kind's own part. When the object is valid they look at it again ([`Admission::validate`]).
//! A plugin that fails stops the write as one does that refuses.
//!
//! The plugins here are those that kube-apiserver has on by default, as far as there is something for them to do.
//! ServiceAccount is not among them, as in envtest: no controller here makes the `default` ServiceAccounts without which
//! it refuses every Pod.

mod classes;
mod limits;
mod namespace;
mod priority;
mod protection;
mod runtime_class;
mod tolerations;
mod usage;
mod view;

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
use runtime_class::RuntimeClass;
use tolerations::{DefaultTolerationSeconds, TaintNodesByCondition};

/// What a write does to an object. A PATCH or PUT creates what is not there; an action such as a binding is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
}

/// A plugin. It is asked again, on a newer state, where somebody else was faster or where it relied on an old one.
pub trait Admission: Send + Sync {
    /// Whether it wants to see such a request; to be answered at once and without cost.
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool;

    /// Completes the object, or refuses it.
    fn mutate<'a>(&'a self, _: &'a mut Attempt<'_>) -> Verdict<'a> {
        Verdict::Now(Ok(()))
    }

    /// Refuses the object or lets it pass, complete and valid as it is.
    fn validate<'a>(&'a self, _: &'a Attempt<'_>) -> Verdict<'a> {
        Verdict::Now(Ok(()))
    }
}

/// What a plugin decides: at once, which costs nothing, or when it has asked somebody.
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

/// A write on its way, as plugins see it. Objects are in the version of the request, and their `managedFields` are
/// [closed](crate::codec::managed).
pub struct Attempt<'a> {
    /// For questions to the store.
    pub api: &'a Api,
    pub request: &'a Request<'a>,
    pub operation: Operation,
    /// As that of the request, but with the name of a new object that is sent without one.
    pub target: Target<'a>,
    /// What is to be written; `None` of a deletion. A Scale for the subresource `scale`; of an action, what describes it.
    pub object: Option<ObjectMap>,
    /// What it replaces, or what is deleted; `None` of a deletion if that cannot be read.
    pub old: Option<&'a ObjectMap>,
    pub(super) requires: Vec<Requirement>,
}

impl<'a> Attempt<'a> {
    pub(super) fn new(
        api: &'a Api,
        request: &'a Request<'a>,
        operation: Operation,
        old: Option<&'a ObjectMap>,
    ) -> Self {
        Self { api, request, operation, target: request.target, object: None, old, requires: Vec::new() }
    }

    pub(super) fn with(self, object: ObjectMap) -> Self {
        Self { object: Some(object), ..self }
    }

    /// Makes the write depend on another row: it is attempted again if that is not so any more at the commit.
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

/// Whether a request is about whole objects of a kind.
fn of_kind(request: &Request<'_>, group: &str, kind: &str) -> bool {
    let definition = &request.target.resource.definition;
    definition.kind_name() == kind && definition.group() == group && request.subresource.is_empty()
}

fn taken() -> Error {
    Error::Internal("an admission plugin has taken the object away".to_owned())
}

/// All plugins, in the order in which they are asked.
pub struct Chain(Vec<Box<dyn Admission>>);

impl Chain {
    /// In the order of upstream's `AllOrderedPlugins`.
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
        ])
    }

    /// The same, and behind it another one: where upstream has webhooks and policies.
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
