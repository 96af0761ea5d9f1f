//! The objects of the extension server, all in the namespace `t`: they have owners and finalizers, and go as objects do.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde_json::{Value, json};

use super::Asked;

#[derive(Default)]
pub struct Things(Mutex<BTreeMap<String, Value>>);

/// A thing without anything special.
pub fn thing(name: &str) -> Value {
    json!({"kind": "Thing", "apiVersion": "ext.example.io/v1", "metadata":
        {"name": name, "namespace": "t", "uid": format!("uid-{name}"), "resourceVersion": "1"}})
}

impl Things {
    /// Puts a thing there whose metadata has these members, too.
    pub fn put(&self, name: &str, metadata: &Value) {
        let mut thing = thing(name);
        merge(&mut thing["metadata"], metadata);
        self.all().insert(name.to_owned(), thing);
    }

    pub fn keep_only(&self, names: &[&str]) {
        let names = names.iter().map(|name| ((*name).to_owned(), thing(name)));
        *self.all() = names.collect();
    }

    pub fn names(&self) -> Vec<String> {
        self.all().keys().cloned().collect()
    }

    pub fn get(&self, name: &str) -> Option<Value> {
        self.all().get(name).cloned()
    }

    /// A page of a list, of two things each.
    pub fn list(&self, query: &str) -> Value {
        let after = query.split('&').find_map(|part| part.strip_prefix("continue=")).unwrap_or_default();
        let all = self.all();
        let rest: Vec<(&String, &Value)> = all.iter().filter(|(name, _)| name.as_str() > after).collect();
        let page = if query.contains("limit=") { 2 } else { rest.len() };
        let items: Vec<&Value> = rest.iter().take(page).map(|(_, thing)| *thing).collect();
        let token = if rest.len() > page { rest[page - 1].0.as_str() } else { "" };
        json!({"kind": "ThingList", "apiVersion": "ext.example.io/v1", "metadata": {"continue": token}, "items": items})
    }

    /// The answer to a request for one thing; `None` if it was never there.
    pub fn answer(&self, name: &str, asked: &Asked) -> Option<(u16, Value)> {
        let mut all = self.all();
        let Some(thing) = all.get_mut(name) else {
            return name
                .starts_with("owner-")
                .then(|| (404, json!({"kind": "Status", "reason": "NotFound"})));
        };
        let body: Value = serde_json::from_str(&asked.body).unwrap_or_default();
        let has_changed = |wanted: &Value| {
            ["uid", "resourceVersion"]
                .iter()
                .any(|field| wanted.get(field).is_some_and(|wanted| *wanted != thing["metadata"][field]))
        };
        let required = if asked.method == "PATCH" { &body["metadata"] } else { &body["preconditions"] };
        if has_changed(required) {
            return Some((409, json!({"kind": "Status", "reason": "Conflict"})));
        }
        match &*asked.method {
            "PATCH" => merge(thing, &body),
            "DELETE" => {
                let finalizer = match body["propagationPolicy"].as_str() {
                    Some("Foreground") => json!(["foregroundDeletion"]),
                    Some("Orphan") => json!(["orphan"]),
                    _ => json!([]),
                };
                let mut finalizers = thing["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
                finalizers.extend(finalizer.as_array().cloned().unwrap_or_default());
                let metadata = json!({"deletionTimestamp": "2026-11-29T00:00:00Z", "finalizers": finalizers});
                merge(&mut thing["metadata"], &metadata);
            }
            _ => return Some((200, thing.clone())),
        }
        let version = thing["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse::<u64>().ok());
        thing["metadata"]["resourceVersion"] = json!((version.unwrap_or_default() + 1).to_string());
        let thing = thing.clone();
        let metadata = &thing["metadata"];
        let is_held = metadata["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
        if metadata["deletionTimestamp"].is_string() && !is_held {
            all.remove(name);
        }
        Some((200, thing))
    }

    pub fn remove_all(&self) {
        self.all().clear();
    }

    fn all(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Value>> {
        self.0.lock().expect("a lock")
    }
}

/// Applies a JSON merge patch.
fn merge(to: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *to = patch.clone();
        return;
    };
    if !to.is_object() {
        *to = json!({});
    }
    let Value::Object(to) = to else { return };
    for (name, value) in patch {
        match value {
            Value::Null => _ = to.remove(name),
            value => merge(to.entry(name.clone()).or_insert(Value::Null), value),
        }
    }
}
