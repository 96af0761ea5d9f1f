//! `ResourceDefinition`: everything that the generic code needs to serve one version of one resource.

use std::fmt;
use std::sync::Arc;

use super::kind::Kind;
use super::names::{GroupKind, GroupResource, GroupVersion, Gvk, Gvr};
use crate::tree::{Map, Text};

/// One served version of a resource. Two versions of a kind share their [`Storage`].
#[derive(Clone, Debug)]
pub struct ResourceDefinition {
    /// The kind of a single object.
    pub kind: Kind,
    pub list_kind: Text,
    pub plural: Text,
    pub singular: Text,
    pub short_names: Vec<Text>,
    pub categories: Vec<Text>,
    pub scope: Scope,
    pub origin: Origin,
    /// The place of the group in discovery: groups with greater numbers come first. Taken from the first definition of
    /// a group.
    pub group_priority: u32,
    /// The verbs of the main resource, in the order of discovery.
    pub verbs: Vec<Verb>,
    /// Sorted by name.
    pub subresources: Vec<Subresource>,
    pub storage: Storage,
    pub behavior: Behavior,
    /// Whether documents tell of it. A built-in resource that none tells of is not served to clients, a custom one is.
    pub is_discoverable: bool,
    /// The CustomResourceDefinition of a custom resource.
    pub declaration: Option<Arc<dyn Declaration>>,
}

/// A stored CustomResourceDefinition, as documents about its resources read it: whole, and only when they are made.
pub trait Declaration: fmt::Debug + Send + Sync {
    /// Differs between two declarations that documents would show differently.
    fn digest(&self) -> String;

    /// Its `spec`; `None` if it cannot be read.
    fn spec(&self) -> Option<Map>;
}

/// Discovery and OpenAPI describe custom resources a little differently from built-in ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    BuiltIn,
    Custom,
}

impl ResourceDefinition {
    pub fn gvk(&self) -> &Gvk {
        &self.kind.gvk
    }

    pub fn group_version(&self) -> &GroupVersion {
        &self.gvk().group_version
    }

    /// Empty for the core group.
    pub fn group(&self) -> &Text {
        self.gvk().group()
    }

    pub fn version(&self) -> &str {
        self.gvk().version()
    }

    /// `v1`, `apps/v1`.
    pub fn api_version(&self) -> &Text {
        self.gvk().api_version()
    }

    /// `Deployment`.
    pub fn kind_name(&self) -> &Text {
        &self.gvk().kind
    }

    pub fn gvr(&self) -> Gvr {
        self.group_version().with_plural(self.plural.clone())
    }

    pub fn group_resource(&self) -> GroupResource {
        GroupResource { group: self.group().clone(), plural: self.plural.clone() }
    }

    pub fn group_kind(&self) -> GroupKind {
        self.gvk().group_kind()
    }

    pub fn namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// Also verbs that are served on a custom resource that is going away, though discovery does not list them.
    pub fn allows(&self, verb: Verb) -> bool {
        self.verbs.contains(&verb) || self.is_custom()
    }

    pub fn is_custom(&self) -> bool {
        self.origin == Origin::Custom
    }

    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| &*sub.name == name)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Cluster,
    Namespaced,
}

/// API verbs in the order in which discovery sorts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verb {
    Create,
    Delete,
    DeleteCollection,
    Get,
    List,
    Patch,
    Update,
    Watch,
}

impl Verb {
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Create => "create",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Patch => "patch",
            Verb::Update => "update",
            Verb::Watch => "watch",
        }
    }
}

/// A subresource. Its kind is its parent's unless `kind` is set.
#[derive(Clone, Debug)]
pub struct Subresource {
    pub name: Text,
    pub verbs: Vec<Verb>,
    /// The kind, if it differs from the parent's (`autoscaling/v1 Scale`).
    pub kind: Option<Kind>,
    pub nature: Nature,
}

/// The nature of a subresource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nature {
    /// An object, or something to be done to one.
    #[default]
    Object,
    /// The output of a container: a text without an end of its own.
    Log,
    /// A way to a process or a port of a Pod, over an upgraded connection. Its kind is that of its options.
    Stream,
    /// A way to an HTTP server, for all methods and for what is below. Its kind is that of its options.
    Proxy,
}

impl Nature {
    /// Whether a request has the operation CONNECT.
    pub fn connects(self) -> bool {
        matches!(self, Self::Stream | Self::Proxy)
    }
}

/// The place where the objects of a resource are stored, and in which version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// In the store, under this resource; rows are encoded in `version`.
    Table { resource: GroupResource, version: GroupVersion },
    /// Nowhere: reviews are answered and forgotten.
    Virtual,
}

/// How upstream's strategy for the kind differs from the generic rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Behavior {
    /// `metadata.generation` is 1 after the create, and grows when anything except metadata and status changes.
    pub generation: bool,
    /// A PUT without a resourceVersion overwrites the object instead of being refused.
    pub unconditional_update: bool,
    /// A PUT of a missing object creates it.
    pub create_on_update: bool,
    /// DELETE answers with the deleted object instead of a Status.
    pub returns_deleted: bool,
    /// Dependents are orphaned by default.
    pub orphans_by_default: bool,
}
