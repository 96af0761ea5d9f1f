//! Definitions of further kinds (apiextensions-apiserver `customresourcedefinition/strategy.go`, kube-aggregator
//! `apiservice/strategy.go`).

use crate::api::{ObjectMap, fields};
use crate::tree::{Value, json};

/// The status lists every version in which objects may have been stored.
pub(super) fn remember_stored_version(object: &mut ObjectMap) {
    let storage = |version: &&Value| version.get("storage") == Some(&Value::Bool(true));
    let version = fields::items(object, &["spec", "versions"]).iter().find(storage);
    let Some(name) = version.and_then(|version| version.get("name")).filter(|name| name.is_string()) else {
        return;
    };
    let mut stored = fields::items(object, &["status", "storedVersions"]).to_vec();
    if !stored.contains(name) {
        stored.push(name.clone());
        fields::object_mut(object, "status").insert("storedVersions", stored.into());
    }
}

/// Without a service the group is served by this very server.
pub(super) fn prepare_service(object: &mut ObjectMap, now: &str) {
    if fields::at(object, &["spec", "service"]).is_some_and(|service| !service.is_null()) {
        return;
    }
    let condition = json!({
        "type": "Available",
        "status": "True",
        "lastTransitionTime": now,
        "reason": "Local",
        "message": "Local APIServices are always available",
    });
    fields::object_mut(object, "status").insert("conditions", vec![condition].into());
}
