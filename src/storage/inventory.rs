//! What a store contains, in which encodings, and which servers write to it.

use std::collections::BTreeMap;

use super::Format;
use crate::revision::Revision;
use crate::schema::names::GroupResource;

/// The migration that added the tables of registered servers.
pub(super) const REGISTRY: i64 = 2;

/// The contents of a store at one revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inventory {
    pub revision: Revision,
    pub resources: BTreeMap<GroupResource, Holdings>,
}

/// What a store contains of one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// The number of objects, by encoding.
    pub stored: Vec<Stored>,
    /// By the id of a registered server: the apiVersion in which it encodes objects of this resource.
    pub encodings: BTreeMap<String, String>,
}

/// How many objects are stored in one encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub api_version: String,
    pub format: Format,
    pub objects: u64,
}

/// The columns of a row that `stored_versions.sql` returns.
pub(super) type StoredRow = (String, String, String, bool, i64);
/// The columns of a row that `registered_versions.sql` returns.
pub(super) type RegisteredRow = (String, String, String, String);

impl Inventory {
    pub(super) fn new(revision: Revision, stored: Vec<StoredRow>, registered: Vec<RegisteredRow>) -> Self {
        let mut resources: BTreeMap<GroupResource, Holdings> = BTreeMap::new();
        for (group, plural, api_version, in_protobuf, objects) in stored {
            let format = if in_protobuf { Format::Protobuf } else { Format::Json };
            let stored = Stored { api_version, format, objects: objects as u64 };
            resources.entry(GroupResource::new(&group, &plural)).or_default().stored.push(stored);
        }
        for (group, plural, server, encoding) in registered {
            let holdings = resources.entry(GroupResource::new(&group, &plural)).or_default();
            holdings.encodings.insert(server, encoding);
        }
        Self { revision, resources }
    }

    /// The ids of the registered servers.
    pub fn servers(&self) -> Vec<&str> {
        let mut servers: Vec<&str> = self
            .resources
            .values()
            .flat_map(|holdings| holdings.encodings.keys())
            .map(String::as_str)
            .collect();
        servers.sort_unstable();
        servers.dedup();
        servers
    }
}

impl Holdings {
    pub fn objects(&self) -> u64 {
        self.stored.iter().map(|stored| stored.objects).sum()
    }

    /// The apiVersion in which all servers encode, if they agree on one.
    pub fn common_encoding(&self) -> Option<&str> {
        let mut encodings = self.encodings.values();
        let first = encodings.next()?;
        encodings.all(|encoding| encoding == first).then_some(first)
    }
}
