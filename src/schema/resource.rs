//! `ResourceDefinition`: everything the generic path needs to know to serve one version of one resource.

use std::sync::Arc;

use super::names::{GroupKind, GroupResource, api_version};

/// One served version of a resource. Two versions of a kind share their [`Storage`].
#[derive(Clone, Debug)]
pub struct ResourceDefinition {
    /// Empty for the core group.
    pub group: Arc<str>,
    pub version: Arc<str>,
    pub kind: Arc<str>,
    pub list_kind: Arc<str>,
    pub plural: Arc<str>,
    pub singular: Arc<str>,
    pub short_names: Vec<Arc<str>>,
    pub categories: Vec<Arc<str>>,
    pub scope: Scope,
    /// The verbs of the main resource, sorted as discovery prints them.
    pub verbs: Vec<Verb>,
    /// Sorted by name.
    pub subresources: Vec<Subresource>,
    pub storage: Storage,
    pub behavior: Behavior,
}

impl ResourceDefinition {
    pub fn group_resource(&self) -> GroupResource {
        GroupResource { group: self.group.clone(), plural: self.plural.clone() }
    }

    pub fn group_kind(&self) -> GroupKind {
        GroupKind { group: self.group.clone(), kind: self.kind.clone() }
    }

    /// `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    pub fn namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    pub fn allows(&self, verb: Verb) -> bool {
        self.verbs.contains(&verb)
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

/// A subresource; its kind is the parent's unless `kind` says otherwise.
#[derive(Clone, Debug)]
pub struct Subresource {
    pub name: Arc<str>,
    pub verbs: Vec<Verb>,
    /// Group, version and kind where they differ from the parent's (`autoscaling/v1 Scale`).
    pub kind: Option<ForeignKind>,
}

#[derive(Clone, Debug)]
pub struct ForeignKind {
    pub group: Arc<str>,
    pub version: Arc<str>,
    pub kind: Arc<str>,
}

/// Where the objects of a resource are kept, and in which version they are encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// Kept in the store under this name; `api_version` is what the rows are encoded in.
    Table { resource: GroupResource, api_version: Arc<str> },
    /// Never stored: reviews answer and forget.
    Virtual,
}

/// How upstream's strategy for the kind differs from the generic rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Behavior {
    /// `metadata.generation` is 1 at create and grows when anything but metadata and status changes.
    pub generation: bool,
    /// PUT without resourceVersion overwrites instead of being refused.
    pub unconditional_update: bool,
    /// PUT on a missing object creates it.
    pub create_on_update: bool,
    /// DELETE answers with the deleted object instead of a Status.
    pub returns_deleted: bool,
    /// Dependents are orphaned unless the request says otherwise.
    pub orphans_by_default: bool,
}
