//! `metadata.managedFields`: decoding and encoding of the managers' sets.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::LazyLock;

use super::compare::Comparison;
use super::fields::{FieldSet, field_paths};
use super::fields_v1;
use crate::gotext;
use crate::tree::{Map, Value};

/// If there are more update managers than this, the oldest are merged into [`ANCIENT`].
const UPDATE_MANAGERS_MAX: usize = 10;
const ANCIENT: &str = "ancient-changes";
/// If there are more entries than this, they are decoded instead of searched as text: a search takes as long as the
/// text is, and in thousands of entries there is little to find.
const SEARCHED_MAX: usize = 64;

/// How a manager became the owner of its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    Apply,
    Update,
}

/// A manager and the fields that it owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manager {
    pub identity: Identity,
    /// RFC 3339, UTC, whole seconds.
    pub time: Option<String>,
    /// In the version of [`Identity::api_version`].
    pub fields: FieldSet,
}

/// The manager's name, the operation, the version, and the subresource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub name: String,
    pub operation: Operation,
    pub api_version: String,
    /// Empty for the main resource.
    pub subresource: String,
}

/// The manager that writes.
#[derive(Clone, Debug)]
pub struct Acting {
    pub identity: Identity,
    /// RFC 3339, UTC, whole seconds.
    pub now: String,
}

/// Why managers could not be decoded, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Undecodable(pub String);

/// All managers; their identities differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Managers(pub Vec<Manager>);

impl Operation {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

impl Identity {
    /// Whether both are the same manager. The version does not matter for appliers.
    pub fn same(&self, other: &Identity) -> bool {
        self.name == other.name
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    /// A key that is equal for managers that are the [same](Self::same).
    fn distinct(&self) -> (String, Operation, String, String) {
        let Identity { name, operation, api_version, subresource } = self.clone();
        let version = if operation == Operation::Apply { String::new() } else { api_version };
        (name, operation, version, subresource)
    }

    /// The key in upstream's map of managers, which determines the order in messages.
    pub fn key(&self) -> String {
        let mut key = Map::new();
        key.insert("manager", self.name.as_str().into());
        key.insert("operation", self.operation.as_str().into());
        if self.operation == Operation::Update {
            key.insert("apiVersion", self.api_version.as_str().into());
        }
        if !self.subresource.is_empty() {
            key.insert("subresource", self.subresource.as_str().into());
        }
        gotext::json(&Value::Object(key))
    }
}

impl Managers {
    /// Reads `metadata.managedFields` of an object, whether it is closed ([`crate::codec::managed`]) or open. An absent
    /// list is empty.
    pub fn decode(entries: &[Value]) -> Result<Self, Undecodable> {
        let mut managers = Self(Vec::with_capacity(entries.len()));
        let mut places = HashMap::with_capacity(entries.len());
        for (at, entry) in entries.iter().enumerate() {
            let manager = decode_entry(at, entry)?;
            match places.entry(manager.identity.distinct()) {
                Entry::Occupied(known) => managers.0[*known.get()] = manager,
                Entry::Vacant(new) => {
                    new.insert(managers.0.len());
                    managers.0.push(manager);
                }
            }
        }
        Ok(managers)
    }

    /// The canonical form, closed; `None` if there are no managers.
    pub fn encode(&self) -> Option<Value> {
        let mut sorted: Vec<&Manager> = self.0.iter().collect();
        sorted.sort_by(|one, other| order(one, other));
        let entries: Vec<Value> = sorted
            .into_iter()
            .map(|Manager { identity, time, fields }| {
                encode_entry(identity, time.as_deref(), fields_v1::encode(fields))
            })
            .collect();
        (!entries.is_empty()).then_some(Value::Array(entries))
    }

    pub fn find(&self, identity: &Identity) -> Option<&Manager> {
        self.0.iter().find(|manager| manager.identity.same(identity))
    }

    pub fn find_mut(&mut self, identity: &Identity) -> Option<&mut Manager> {
        self.0.iter_mut().find(|manager| manager.identity.same(identity))
    }

    /// Replaces the manager with the same identity, or adds one.
    pub fn put(&mut self, manager: Manager) {
        match self.find_mut(&manager.identity) {
            Some(known) => *known = manager,
            None => self.0.push(manager),
        }
    }

    pub fn drop_empty(&mut self) {
        self.0.retain(|manager| !manager.fields.is_empty());
    }

    /// While there are too many update managers, merges the oldest ones of a version.
    pub fn cap(&mut self) {
        let mut updates: Vec<Manager> =
            self.0.extract_if(.., |manager| manager.identity.operation == Operation::Update).collect();
        updates.sort_by(order);
        let mut excess = updates.len().saturating_sub(UPDATE_MANAGERS_MAX);
        // Each manager with the sets that are merged into it.
        let mut held: Vec<(Manager, Vec<FieldSet>)> = Vec::new();
        let mut buckets: HashMap<String, usize> = HashMap::new();
        for manager in updates {
            match buckets.get(&manager.identity.api_version) {
                Some(at) if excess > 0 => {
                    let (bucket, merged) = &mut held[*at];
                    bucket.identity.name = ANCIENT.to_owned();
                    bucket.identity.subresource = String::new();
                    bucket.time = manager.time;
                    merged.push(manager.fields);
                    excess -= 1;
                }
                found => {
                    if found.is_none() {
                        buckets.insert(manager.identity.api_version.clone(), held.len());
                    }
                    held.push((manager, Vec::new()));
                }
            }
        }
        self.0.extend(held.into_iter().map(|(mut manager, merged)| {
            if !merged.is_empty() {
                manager.fields = FieldSet::union_of(merged).union(&manager.fields);
            }
            manager
        }));
    }
}

/// Paths that nobody can own. Paths below them can be owned.
pub static NEVER_OWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    let metadata = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ];
    let mut set = field_paths(&[&["apiVersion"], &["kind"], &["metadata"]]);
    for name in metadata {
        set = set.union(&field_paths(&[&["metadata", name]]));
    }
    set
});

/// Whether a body asks to remove all managers.
pub fn is_reset(entries: &[Value]) -> bool {
    match entries {
        [] => true,
        [Value::Object(one)] => one.values().all(|value| value.is_null() || *value == ""),
        _ => false,
    }
}

fn order(one: &Manager, other: &Manager) -> Ordering {
    fn key(manager: &Manager) -> [&str; 5] {
        let Identity { name, operation, api_version, subresource } = &manager.identity;
        [operation.as_str(), manager.time.as_deref().unwrap_or_default(), name, api_version, subresource]
    }
    key(one).cmp(&key(other))
}

/// The encoded managers, closed, after `acting` wrote the changes `own`, if the write changes nothing but the time of
/// its own entry: the manager owns everything that it wrote, no other manager owns any of `touched`, and nobody owned
/// what was removed. Otherwise `None`.
pub fn retouched(
    entries: &[Value],
    acting: &Acting,
    own: &Comparison,
    touched: &FieldSet,
) -> Option<Vec<Value>> {
    if entries.len() > SEARCHED_MAX {
        return None;
    }
    let written = own.written();
    let Identity { name, operation, api_version, subresource } = &acting.identity;
    let identity = [operation.as_str(), name, api_version, subresource];
    let is_own = |entry: &Value| {
        ["operation", "manager", "apiVersion", "subresource"].map(|field| text(entry, field)) == identity
    };
    let at_own = entries.iter().position(is_own).filter(|_| !written.is_empty());
    let unchanged = entries.iter().enumerate().all(|(at, entry)| {
        let fields = entry.get("fieldsV1").and_then(Value::as_str).map(str::as_bytes);
        fields.is_some_and(|fields| {
            let keeps_all = match at_own == Some(at) {
                true => fields_v1::covers(fields, 0, &written),
                false => !fields_v1::touches(fields, 0, touched),
            };
            keeps_all && !fields_v1::touches(fields, 0, &own.removed)
        })
    });
    if !unchanged {
        return None;
    }
    let mut entries = entries.to_vec();
    let Some(own) = at_own else { return written.is_empty().then_some(entries) };
    *entries[own].get_mut("time")? = acting.now.as_str().into();
    let key = |entry: &Value| {
        ["operation", "time", "manager", "apiVersion", "subresource"]
            .map(|field| text(entry, field).to_owned())
    };
    entries.sort_by_cached_key(key);
    Some(entries)
}

fn text<'v>(entry: &'v Value, field: &str) -> &'v str {
    entry.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn decode_entry(at: usize, entry: &Value) -> Result<Manager, Undecodable> {
    let text = |field: &str| text(entry, field).to_owned();
    let operation = match &*text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err(Undecodable("operation must be `Apply` or `Update`".to_owned())),
    };
    let api_version = text("apiVersion");
    if api_version.is_empty() {
        return Err(Undecodable("apiVersion must not be empty".to_owned()));
    }
    match &*text("fieldsType") {
        "FieldsV1" => {}
        "" => return Err(Undecodable(format!("missing fieldsType in managed fields entry {at}"))),
        other => {
            let other = gotext::quote(other);
            return Err(Undecodable(format!("invalid fieldsType {other} in managed fields entry {at}")));
        }
    }
    let fields = match entry.get("fieldsV1") {
        None | Some(Value::Null) => FieldSet::default(),
        Some(Value::String(text)) => {
            fields_v1::parse_text(text).map_err(|why| Undecodable(why.to_string()))?
        }
        Some(Value::Object(fields)) => {
            fields_v1::parse(fields).map_err(|why| Undecodable(why.to_string()))?
        }
        Some(_) => return Err(Undecodable("fieldsV1 is no object".to_owned())),
    };
    let identity =
        Identity { name: text("manager"), operation, api_version, subresource: text("subresource") };
    Ok(Manager { identity, time: time(&text("time")), fields })
}

fn time(text: &str) -> Option<String> {
    text.parse().ok().map(gotext::time)
}

/// A closed entry with this set in JSON.
fn encode_entry(identity: &Identity, time: Option<&str>, fields: String) -> Value {
    let Identity { name, operation, api_version, subresource } = identity;
    let mut entry = Map::with_capacity(7);
    let mut put = |field: &'static str, value: Value| {
        entry.push(field.into(), value);
    };
    if !name.is_empty() {
        put("manager", name.as_str().into());
    }
    put("operation", operation.as_str().into());
    put("apiVersion", api_version.as_str().into());
    if let Some(time) = time {
        put("time", time.into());
    }
    put("fieldsType", "FieldsV1".into());
    put("fieldsV1", fields.into());
    if !subresource.is_empty() {
        put("subresource", subresource.as_str().into());
    }
    Value::Object(entry)
}
