//! Rows that no client sees: notes of the servers to themselves, in resources of their own. They are in the cache, and a
//! write can require or join them like any object.

use std::sync::Arc;

use super::State;
use crate::codec::object::{Draft, Object};
use crate::revision::Revision;
use crate::schema::names::GroupResource;
use crate::storage::{Change, Expect, HIDDEN_GROUP, Key, Mutation, Requirement, ResourceId};
use crate::tree::{Map, Value, json};

/// The version that all hidden rows are stored in.
pub const VERSION: &str = "internal.rowplane.dev/v1";
/// The revision of no row: whoever expects it is refused.
const NEVER: Revision = Revision(0);

/// The rows of one hidden resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HiddenRows(ResourceId);

impl HiddenRows {
    pub const fn new(resource: ResourceId) -> Self {
        Self(resource)
    }

    /// The resource with this plural.
    pub fn resource(plural: &'static str) -> GroupResource {
        GroupResource::new(HIDDEN_GROUP, plural)
    }

    pub fn id(self) -> ResourceId {
        self.0
    }

    pub fn key(self, namespace: &str, name: &str) -> Key {
        Key::new(self.0, namespace, name)
    }

    pub fn get(self, state: &State, namespace: &str, name: &str) -> Option<Arc<Object>> {
        state.get(self.0, namespace, name)
    }

    /// The requirement that a row is still as it is in a state.
    pub fn as_seen(self, state: &State, namespace: &str, name: &str) -> Requirement {
        let row = self.get(state, namespace, name);
        let expect = row.map_or(Expect::Absent, |row| Expect::At(row.revision()));
        Requirement { key: self.key(namespace, name), expect }
    }

    /// The requirement of [`HiddenRows::as_seen`] for a row that stands for an object which is written after it in the same
    /// commit. A state that ends with the row lacks the object, so nobody may write by it: the requirement is never met.
    pub fn as_followed(self, state: &State, namespace: &str, name: &str) -> Requirement {
        let mut requirement = self.as_seen(state, namespace, name);
        if requirement.expect == Expect::At(state.revision) {
            requirement.expect = Expect::At(NEVER);
        }
        requirement
    }

    /// A write of a row with these fields beside its name.
    pub fn put(self, namespace: &str, name: &str, expect: Expect, fields: Map) -> Mutation {
        let metadata = match namespace {
            "" => json!({"name": name}),
            _ => json!({"namespace": namespace, "name": name}),
        };
        let mut row = fields;
        row.insert("metadata", metadata);
        let draft = Draft::of_json(namespace, name, Value::Object(row).to_string().into());
        let change = Change::Put { uid: "".into(), stored_version: VERSION.into(), value: draft.into() };
        Mutation::new(self.key(namespace, name), expect, change)
    }

    /// A write of a row without fields, whose revision is all that counts, as a requirement expects the row.
    pub fn touch(self, Requirement { key, expect }: Requirement) -> Mutation {
        self.put(&key.namespace, &key.name, expect, Map::new())
    }

    pub fn delete(self, namespace: &str, name: &str, expect: Expect) -> Mutation {
        Mutation::new(self.key(namespace, name), expect, Change::Delete)
    }
}
