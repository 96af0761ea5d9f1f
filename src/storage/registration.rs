//! Which servers may write, and what each has said of how it encodes.
//!
//! A server's row and those of its versions come and go in one transaction. While the row is there, the versions are
//! what the server encodes in; once it is gone, no batch of that server passes any more ([`Fence`]).

use std::sync::Arc;

use super::{Mutation, ResourceId};
use crate::codec::at_rest::ValueFormat;
use crate::revision::Revision;

/// What one server says of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedResource {
    pub resource: ResourceId,
    pub encoding: Box<str>,
    /// With `encoding` among them.
    pub decodable: Vec<Box<str>>,
    pub served: Vec<Box<str>>,
}

/// What one server says of all resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    pub server: Arc<str>,
    /// Another one after every start.
    pub incarnation: Arc<str>,
    /// The newest format of values that it reads. Nothing newer is written while it is registered.
    pub format: ValueFormat,
    pub resources: Vec<EncodedResource>,
}

/// A change of the registered servers, in the same transaction as the mutations that show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistryChange {
    /// Replaces what the server had registered.
    Put(Arc<Registration>),
    Remove(Vec<Box<str>>),
}

/// A server's right to write: it ends with its registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    pub server: Arc<str>,
    pub incarnation: Arc<str>,
    /// What has to be written by a server before it can register.
    pub exempt: Vec<ResourceId>,
}

impl Fence {
    /// Whether the mutation may pass without a registration.
    pub(super) fn exempts(&self, mutation: &Mutation) -> bool {
        self.exempt.contains(&mutation.key.resource)
    }
}

/// What holds for a batch beyond the preconditions of its mutations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms<'a> {
    /// A revision known to be committed; a clock below it has lost commits.
    pub floor: Revision,
    /// Under which registration the batch is written; `None` needs none.
    pub fence: Option<&'a Fence>,
    /// If there is one, it and all mutations pass together or not at all.
    pub registry: Option<&'a RegistryChange>,
}
