//! What a store holds, and in which encodings; and who writes to it.

use std::collections::BTreeMap;

use super::Format;
use crate::revision::Revision;
use crate::schema::names::GroupResource;

/// The schema of the database knows registered servers from this migration on.
pub(super) const REGISTRY: i64 = 2;

/// Of a store at one revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inventory {
    pub revision: Revision,
    pub resources: BTreeMap<GroupResource, Holdings>,
}

/// What is known of one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Objects by encoding.
    pub stored: Vec<Stored>,
    /// The encoding version of each registered server, by its id.
    pub encodings: BTreeMap<String, String>,
}

/// How many objects are stored in an encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub api_version: String,
    pub format: Format,
    pub objects: u64,
}

/// A row of `stored_versions.sql`.
pub(super) type StoredRow = (String, String, String, bool, i64);
/// A row of `registered_versions.sql`.
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

    /// The registered servers.
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

    /// What all servers encode in, if they agree.
    pub fn common_encoding(&self) -> Option<&str> {
        let mut encodings = self.encodings.values();
        let first = encodings.next()?;
        encodings.all(|encoding| encoding == first).then_some(first)
    }
}
