//! Contents of a store: its objects in their encodings, and the servers that write to it.

use std::collections::BTreeMap;

use super::transfer::full_name;
use super::{Format, HIDDEN_GROUP, Moment};
use crate::codec::at_rest::{self, packed};
use crate::revision::Revision;
use crate::schema::names::GroupResource;

/// The migration that added the tables of registered servers.
pub(super) const REGISTRY: i64 = 2;

/// Counts live objects by resource and encoding.
pub(super) const STORED_VERSIONS: &str = include_str!("sql/stored_versions.sql");
/// Counts versions of objects in segments.
pub(super) const SEGMENTED_VERSIONS: &str = include_str!("sql/segmented_versions.sql");
/// Selects the first bytes of encrypted values.
pub(super) const SEALED_HEADS: &str = include_str!("sql/sealed_heads.sql");
/// Selects the versions that registered servers encode.
pub(super) const REGISTERED_VERSIONS: &str = include_str!("sql/registered_versions.sql");
/// Selects the objects whose values are long.
pub(super) const LONG_OBJECTS: &str = include_str!("sql/long_objects.sql");

/// The contents of a store at one revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inventory {
    pub revision: Revision,
    pub extent: Extent,
    /// The history of resources that have changes; empty for a store of an earlier release.
    pub history: Vec<ResourceHistory>,
    pub resources: BTreeMap<GroupResource, Holdings>,
}

/// How much of the past of a resource is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceHistory {
    pub resource: GroupResource,
    /// The oldest state that can be read.
    pub floor: Moment,
    pub changes: u64,
    /// An estimate.
    pub bytes: u64,
}

/// The size of a database, and its host's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The bytes of a file without its log, or of rowplane's tables with their indexes; 0 if they are not known.
    pub bytes: u64,
    /// The time of the database's host in microseconds since 1970; `None` for a file, or if it is not known.
    pub clock: Option<i64>,
}

/// The objects of one resource in a store, and their encodings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// The number of objects, by encoding.
    pub stored: Vec<Stored>,
    /// The number of older versions that are kept, by encoding.
    pub older: Vec<Stored>,
    /// By the id of a registered server: the apiVersion in which it encodes objects of this resource.
    pub encodings: BTreeMap<String, String>,
}

/// How many objects, or versions, are stored in one encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub api_version: String,
    pub format: Format,
    pub objects: u64,
}

/// An object that is longer than a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongObject {
    pub resource: GroupResource,
    /// The namespace, if there is one, and the name.
    pub name: String,
    /// The number of bytes of the encoded object, unpacked. Of an encrypted one only those that are stored are known.
    pub bytes: usize,
}

/// The columns of a row that `long_objects.sql` returns.
pub(super) type LongRow = (String, String, String, String, i64, Vec<u8>, Vec<u8>);
/// How many of a value's first and last bytes are read to find its length.
pub(super) const ENDS: (i32, i32) = (1024, 32);

/// The length above which stored values are looked at: packed, they may be that much shorter than their objects.
pub(super) fn shortest_of(limit: usize) -> i32 {
    i32::try_from(limit / packed::MOST_OF_A_BYTE).unwrap_or(i32::MAX)
}

/// The objects of these rows that are longer than the limit.
pub(super) fn long_objects(rows: Vec<LongRow>, limit: usize) -> Vec<LongObject> {
    let objects = rows.into_iter().map(|(group, plural, namespace, name, stored, head, tail)| {
        let stored = usize::try_from(stored).unwrap_or_default();
        let bytes = at_rest::packed_length(&head, &tail).map_or(stored, |unpacked| unpacked.max(stored));
        LongObject {
            resource: GroupResource::new(&group, &plural),
            name: full_name(&namespace, &name),
            bytes,
        }
    });
    objects.filter(|object| object.bytes > limit).collect()
}

impl ResourceHistory {
    /// Nobody reads the history of hidden rows.
    pub(super) fn is_shown(&self) -> bool {
        *self.resource.group != *HIDDEN_GROUP
    }
}

/// The columns of a row that `stored_versions.sql` returns.
pub(super) type StoredRow = (String, String, String, i64, i64, i64);
/// The columns of a row that `sealed_heads.sql` returns.
pub(super) type SealedRow = (String, String, String, Vec<u8>, i64);
/// How many bytes of an encrypted value are read to find its key's name.
pub(super) const SEALED_HEAD: i32 = 4096;
/// The columns of a row that `registered_versions.sql` returns.
pub(super) type RegisteredRow = (String, String, String, String);

impl Inventory {
    pub(super) fn new(
        revision: Revision,
        extent: Extent,
        history: Vec<ResourceHistory>,
        stored: Vec<StoredRow>,
        sealed: Vec<SealedRow>,
        registered: Vec<RegisteredRow>,
    ) -> Self {
        let mut resources: BTreeMap<GroupResource, Holdings> = BTreeMap::new();
        for (group, plural, api_version, format, older, objects) in stored {
            let format = match format {
                0 => Format::Json,
                1 => Format::Protobuf,
                // Counted below, key by key.
                _ => continue,
            };
            let holdings = resources.entry(GroupResource::new(&group, &plural)).or_default();
            let list = holdings.list(older);
            // Older versions are partly in segments.
            match list.iter_mut().find(|stored| stored.api_version == api_version && stored.format == format)
            {
                Some(stored) => stored.objects += objects as u64,
                None => list.push(Stored { api_version, format, objects: objects as u64 }),
            }
        }
        let mut keys: BTreeMap<(GroupResource, i64, String, Format), u64> = BTreeMap::new();
        for (group, plural, api_version, head, older) in sealed {
            let resource = GroupResource::new(&group, &plural);
            *keys.entry((resource, older, api_version, Format::of(&head))).or_default() += 1;
        }
        for ((resource, older, api_version, format), objects) in keys {
            let holdings = resources.entry(resource).or_default();
            holdings.list(older).push(Stored { api_version, format, objects });
        }
        for (group, plural, server, encoding) in registered {
            let holdings = resources.entry(GroupResource::new(&group, &plural)).or_default();
            holdings.encodings.insert(server, encoding);
        }
        Self { revision, extent, history, resources }
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
    /// The list of live objects (0), or that of older versions (1).
    fn list(&mut self, older: i64) -> &mut Vec<Stored> {
        if older == 0 { &mut self.stored } else { &mut self.older }
    }

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
