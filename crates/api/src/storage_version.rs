//! Encodings of all servers: `status` of StorageVersions, as `k8s.io/apiserver/pkg/storageversion`.

pub mod gate;
pub mod registration;
pub mod rewrite;
use crate::kinds::apiserverinternal::storage_version::common;
use crate::tree::{Map, Value, json};
use crate::{ObjectMap, fields};

const ENTRIES: &str = "storageVersions";
const COMMON: &str = "commonEncodingVersion";
const CONDITIONS: &str = "conditions";
/// The condition that follows from the entries.
const ALL_EQUAL: &str = "AllEncodingVersionsEqual";

/// One server's entry. Versions are apiVersions: `v1`, `apps/v1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub server: String,
    pub encoding: String,
    /// The versions that the server can decode, `encoding` among them.
    pub decodable: Vec<String>,
    pub served: Vec<String>,
}

/// Puts the entry in the place of the server's previous entry, or appends it.
pub fn with_entry(object: &ObjectMap, entry: &Entry, now: &str) -> Value {
    let mut entries = entries(object).to_vec();
    let value = json!({
        "apiServerID": entry.server,
        "encodingVersion": entry.encoding,
        "decodableVersions": entry.decodable,
        "servedVersions": entry.served,
    });
    match entries.iter_mut().find(|found| server(found) == Some(&entry.server)) {
        Some(found) => *found = value,
        None => entries.push(value),
    }
    status(object, entries, now)
}

/// The status without these servers' entries. The other entries keep their order.
pub fn without_entries(object: &ObjectMap, gone: impl Fn(&str) -> bool, now: &str) -> Value {
    let left = entries(object).iter().filter(|entry| !server(entry).is_some_and(&gone));
    status(object, left.cloned().collect(), now)
}

/// The servers that have an entry.
pub fn servers(object: &ObjectMap) -> impl Iterator<Item = &str> {
    entries(object).iter().filter_map(server)
}

/// The version in which all servers encode, according to the object.
pub fn common_encoding(object: &ObjectMap) -> Option<&str> {
    object.get("status")?.get(COMMON)?.as_str()
}

pub(super) fn entries(object: &ObjectMap) -> &[Value] {
    fields::items(object, &["status", ENTRIES])
}

fn server(entry: &Value) -> Option<&str> {
    entry.get("apiServerID")?.as_str()
}

fn status(object: &ObjectMap, entries: Vec<Value>, now: &str) -> Value {
    let before = common_encoding(object);
    let after = common(&entries).map(str::to_owned);
    let conditions = conditions(object, before, after.as_deref(), now);
    let mut status = Map::new();
    status.insert(ENTRIES, entries.into());
    if let Some(common) = after {
        status.insert(COMMON, common.into());
    }
    status.insert(CONDITIONS, conditions.into());
    Value::Object(status)
}

/// Updates the condition. Other conditions stay as they are.
fn conditions(object: &ObjectMap, before: Option<&str>, after: Option<&str>, now: &str) -> Vec<Value> {
    let mut conditions = fields::items(object, &["status", CONDITIONS]).to_vec();
    let at = conditions.iter().position(|condition| condition["type"] == ALL_EQUAL);
    let old = at.map(|at| &conditions[at]);
    let status = if after.is_some() { "True" } else { "False" };
    let moved = old.is_none_or(|old| old["status"] != status) || (before.is_some() && before != after);
    let since = old.and_then(|old| old.get("lastTransitionTime")).filter(|_| !moved).cloned();
    let new = condition(status, generation(object), since.unwrap_or_else(|| now.into()));
    match at {
        Some(at) => conditions[at] = new,
        None => conditions.push(new),
    }
    conditions
}

fn condition(status: &str, generation: i64, since: Value) -> Value {
    let set = if status == "True" { ("Set", "set") } else { ("Unset", "unset") };
    let mut condition = Map::new();
    condition.insert("type", ALL_EQUAL.into());
    condition.insert("status", status.into());
    if generation != 0 {
        condition.insert("observedGeneration", generation.into());
    }
    condition.insert("lastTransitionTime", since);
    condition.insert("reason", format!("CommonEncodingVersion{}", set.0).into());
    condition.insert("message", format!("Common encoding version {}", set.1).into());
    Value::Object(condition)
}

fn generation(object: &ObjectMap) -> i64 {
    fields::at(object, &["metadata", "generation"]).and_then(Value::as_i64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(server: &str, encoding: &str) -> Entry {
        Entry {
            server: server.to_owned(),
            encoding: encoding.to_owned(),
            decodable: vec![encoding.to_owned()],
            served: Vec::new(),
        }
    }

    fn object(status: Value) -> ObjectMap {
        ObjectMap::from_iter([("status".to_owned(), status)])
    }

    /// Common version, condition status and transition time after each of these entries is added.
    fn run(entries: &[(&str, &str)]) -> Vec<(Option<String>, String, String)> {
        let mut object = ObjectMap::new();
        let step = |(n, (server, encoding)): (usize, &(&str, &str))| {
            object = self::object(with_entry(&object, &entry(server, encoding), &format!("t{n}")));
            let condition = &object["status"][CONDITIONS][0];
            let text = |name: &str| condition[name].as_str().unwrap_or_default().to_owned();
            let common = common_encoding(&object).map(str::to_owned);
            (common, text("reason"), text("lastTransitionTime"))
        };
        entries.iter().enumerate().map(step).collect()
    }

    #[test]
    fn storage_version_5_to_8_the_common_version_and_its_condition() {
        let common = |version: &str, time: &str| {
            (Some(version.to_owned()), "CommonEncodingVersionSet".to_owned(), time.to_owned())
        };
        let unset = |time: &str| (None, "CommonEncodingVersionUnset".to_owned(), time.to_owned());
        let agree = run(&[("a", "v1"), ("b", "v1"), ("b", "v2"), ("a", "v2")]);
        assert_eq!(agree, [common("v1", "t0"), common("v1", "t0"), unset("t2"), common("v2", "t3")]);
        assert_eq!(run(&[("a", "v1"), ("a", "v2")]), [common("v1", "t0"), common("v2", "t1")]);
    }

    #[test]
    fn storage_version_9_the_same_entry_changes_nothing() {
        let once = object(with_entry(&ObjectMap::new(), &entry("a", "v1"), "t0"));
        assert_eq!(with_entry(&once, &entry("a", "v1"), "t1"), once["status"]);
    }

    #[test]
    fn storage_version_29_entries_go_and_the_rest_decides() {
        let one = object(with_entry(&ObjectMap::new(), &entry("a", "v1"), "t0"));
        let two = object(with_entry(&one, &entry("b", "v2"), "t1"));
        let left = object(without_entries(&two, |id| id == "a", "t2"));
        assert_eq!(servers(&left).collect::<Vec<_>>(), ["b"]);
        assert_eq!(common_encoding(&left), Some("v2"));
        let nothing = object(without_entries(&left, |id| id == "b", "t3"));
        assert_eq!((servers(&nothing).next(), common_encoding(&nothing)), (None, None));
    }

    #[test]
    fn other_conditions_and_the_order_of_entries_stay() {
        let mut first = object(with_entry(&ObjectMap::new(), &entry("a", "v1"), "t0"));
        first = object(with_entry(&first, &entry("b", "v1"), "t0"));
        first["status"][CONDITIONS].as_array_mut().expect("a list").insert(0, json!({"type": "Mine"}));
        let second = object(with_entry(&first, &entry("a", "v2"), "t1"));
        assert_eq!(servers(&second).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(second["status"][CONDITIONS][0], json!({"type": "Mine"}));
        assert_eq!(second["status"][CONDITIONS][1]["status"], "False");
    }
}
