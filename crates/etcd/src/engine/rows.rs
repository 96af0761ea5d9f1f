//! The rows that the engine keeps in the store. They are hidden, and their values begin with a version, so that a
//! later release can have another form.
//!
//! A key's row has the numbers that etcd keeps of it, but for the revision of its last put; where the
//! put has also created it, the revision of that is 0. The store puts the revision of the put before the row.

use std::sync::Arc;

use bytes::Bytes;
use rowplane_store::storage::{
    self, Change, Counting, Decode, Decoded, Expect, HIDDEN_GROUP, Key, Mutation, Requirement, ResourceId,
    Value, split_stamp,
};

use super::lags::Sequence;
use super::names;
use crate::schema::names::GroupResource;

/// The first byte of a value. It begins no form in which objects are stored.
const FORM: u8 = 1;
/// The form of the rows as the column `stored_version` has it.
const STORED_VERSION: &str = "internal.rowplane.dev/v1";

/// The hidden resources of the engine.
#[derive(Clone, Copy, Debug)]
pub struct Tables {
    pub keys: ResourceId,
    pub leases: ResourceId,
    pub notes: ResourceId,
}

/// A row as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    Key(StoredKey),
    /// A lease, with its time to live in seconds.
    Lease(i64),
    Note(Bytes),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredKey {
    /// 0 if this put has created the key.
    pub create_revision: i64,
    /// The number of puts since then.
    pub version: i64,
    pub lease: i64,
    /// The place of the put among the events of its transaction.
    pub place: u32,
    pub value: Bytes,
}

impl Tables {
    pub fn resources() -> [GroupResource; 3] {
        ["etcd-keys", "etcd-leases", "etcd-notes"].map(|plural| GroupResource::new(HIDDEN_GROUP, plural))
    }

    /// Whether the engine has rows in a resource.
    pub fn has(&self, resource: ResourceId) -> bool {
        [self.keys, self.leases, self.notes].contains(&resource)
    }

    pub fn key(&self, key: &[u8]) -> Key {
        Key::new(self.keys, "", &names::name(key))
    }

    pub fn lease(&self, id: i64) -> Key {
        Key::new(self.leases, "", &id.to_string())
    }

    pub fn note(&self, name: &str) -> Key {
        Key::new(self.notes, "", name)
    }

    /// A row of one of the resources, with the revision of its write.
    pub fn decode(&self, resource: ResourceId, stored: &Bytes) -> Result<(i64, Stored), storage::Error> {
        let corrupt = || storage::Error::Corrupt("a row of etcd's API has an unknown form".into());
        let (revision, value) = split_stamp(stored).ok_or_else(corrupt)?;
        let value = &value;
        let mut rest = &value[..];
        let row = match (next(&mut rest), resource) {
            (Some(FORM), keys) if keys == self.keys => read_key(&mut rest, value).map(Stored::Key),
            (Some(FORM), leases) if leases == self.leases => {
                read_number(&mut rest).map(|ttl| Stored::Lease(ttl as i64))
            }
            (Some(FORM), notes) if notes == self.notes => Some(Stored::Note(value.slice(1..))),
            _ => None,
        };
        row.map(|row| (revision, row)).ok_or_else(corrupt)
    }
}

impl Stored {
    fn encode(&self) -> Bytes {
        let mut out = vec![FORM];
        match self {
            Self::Key(key) => {
                out.reserve(key.value.len() + 24);
                let numbers = [key.create_revision, key.version, key.lease, i64::from(key.place)];
                numbers.iter().for_each(|number| append_number(&mut out, *number as u64));
                out.extend_from_slice(&key.value);
            }
            Self::Lease(ttl) => append_number(&mut out, *ttl as u64),
            Self::Note(value) => out.extend_from_slice(value),
        }
        out.into()
    }

    /// The write of a row.
    pub fn put(self, key: Key, expect: Expect, counting: Counting) -> Mutation {
        // The limit of a value is that of a request, which whoever serves the API has looked at.
        let value = Value::new(self.encode(), 0, Arc::new(self)).stamped();
        let change = Change::Put { uid: "".into(), stored_version: STORED_VERSION.into(), value };
        Mutation { counting, ..Mutation::new(key, expect, change) }
    }
}

/// The feed takes the row as it was written.
impl Decode for Stored {
    fn decode(&self, _: Sequence) -> Arc<Decoded> {
        Arc::new(self.clone())
    }
}

pub fn delete(key: Key, at: Sequence, counting: Counting) -> Mutation {
    Mutation { counting, ..Mutation::new(key, Expect::At(at), Change::Delete) }
}

/// The requirement that a row is still as it was seen.
pub fn as_seen(key: Key, seen: Option<Sequence>) -> Requirement {
    Requirement { key, expect: expect(seen) }
}

pub fn expect(seen: Option<Sequence>) -> Expect {
    seen.map_or(Expect::Absent, Expect::At)
}

fn read_key(rest: &mut &[u8], value: &Bytes) -> Option<StoredKey> {
    let mut number = || read_number(rest).map(|number| number as i64);
    let (create_revision, version, lease, place) = (number()?, number()?, number()?, number()? as u32);
    let value = value.slice(value.len() - rest.len()..);
    Some(StoredKey { create_revision, version, lease, place, value })
}

/// Appends a number in the variable length of protobuf.
pub fn append_number(out: &mut Vec<u8>, number: u64) {
    prost::encoding::encode_varint(number, out);
}

pub fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    prost::encoding::decode_varint(bytes).ok()
}

fn next(bytes: &mut &[u8]) -> Option<u8> {
    let (first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*first)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: Tables = Tables { keys: ResourceId(1), leases: ResourceId(2), notes: ResourceId(3) };

    #[test]
    fn rows_are_read_back() {
        let key = StoredKey {
            create_revision: 7,
            version: i64::MAX,
            lease: -1,
            place: 127,
            value: Bytes::from_static(b"\0\xff"),
        };
        let rows = [
            (TABLES.keys, Stored::Key(key)),
            (TABLES.leases, Stored::Lease(9_000_000_000)),
            (TABLES.notes, Stored::Note(Bytes::new())),
        ];
        for (resource, row) in rows {
            let stored = [&7_i64.to_be_bytes()[..], &row.encode()].concat().into();
            assert_eq!(TABLES.decode(resource, &stored).expect("decoded"), (7, row));
        }
    }

    #[test]
    fn damaged_rows_are_told() {
        for bytes in [&b""[..], b"\x02\0\0\0\0", b"\x01\0\0\0", b"\x01\x80"] {
            let stored = [&[0; 8], bytes].concat().into();
            assert!(TABLES.decode(TABLES.keys, &stored).is_err(), "{bytes:?}");
        }
    }
}
