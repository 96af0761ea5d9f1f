//! Registrations of servers: the right to write, and the encodings in which each of them writes.
//!
//! A server's row and the rows of its versions are added and removed in one transaction. While the server's row exists,
//! the server encodes in the versions of its rows; once it is gone, no batch of that server passes any more
//! ([`Fence`]).

use std::sync::Arc;

use super::{Mutation, ResourceId};
use crate::codec::at_rest::ValueFormat;
use crate::revision::Revision;

/// How one server encodes one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedResource {
    pub resource: ResourceId,
    pub encoding: Box<str>,
    /// The apiVersions that the server can decode, `encoding` among them.
    pub decodable: Vec<Box<str>>,
    pub served: Vec<Box<str>>,
}

/// One server's registration: how it encodes all resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    pub server: Arc<str>,
    /// Differs after every start of the server.
    pub incarnation: Arc<str>,
    /// The newest format of values that the server can read. While it is registered, no server writes a newer format.
    pub format: ValueFormat,
    pub resources: Vec<EncodedResource>,
}

/// How a registered server encodes some resources from now on, and which resources it does not serve any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amendment {
    pub server: Arc<str>,
    pub encoded: Vec<EncodedResource>,
    pub dropped: Vec<ResourceId>,
}

/// A change of the registered servers. It is committed in one transaction with the mutations of the objects that show
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistryChange {
    /// Replaces the server's registration.
    Put(Arc<Registration>),
    /// Changes the registration of the server that makes the change, as far as it is about some resources.
    Amend(Arc<Amendment>),
    Remove(Vec<Box<str>>),
}

/// A server's right to write, which ends with its registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    pub server: Arc<str>,
    pub incarnation: Arc<str>,
    /// Resources that the server must be able to write before it can register.
    pub exempt: Vec<ResourceId>,
}

impl Fence {
    /// Whether the mutation may pass although the registration is gone.
    pub(super) fn exempts(&self, mutation: &Mutation) -> bool {
        self.exempt.contains(&mutation.key.resource)
    }
}

/// The conditions on a batch beyond the preconditions of its mutations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms<'a> {
    /// A revision known to be committed. A database whose clock is below it has lost commits.
    pub floor: Revision,
    /// The registration under which the batch is written; `None` if the batch needs none.
    pub fence: Option<&'a Fence>,
    /// A change of the registry to commit with the batch. If there is one, it and all mutations pass together or not at
    /// all.
    pub registry: Option<&'a RegistryChange>,
}
