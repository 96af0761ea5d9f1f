//! The body of an apply: YAML, of which JSON is a part.

use serde_json::Value;

use crate::api::ObjectMap;
use crate::api::error::Error;
use crate::codec::yaml;
use crate::gotext;

/// A configuration; 400 for what is none. Of a key that is there twice the last one counts.
pub fn parse(body: &[u8]) -> Result<ObjectMap, Error> {
    let bad = |why: &str| Error::BadRequest(format!("error decoding patch: {why}"));
    let text = String::from_utf8_lossy(body);
    let value = match serde_json::from_str(&text) {
        Ok(value) => value,
        Err(_) => yaml::parse(body).map_err(|why| bad(&format!("error converting YAML to JSON: {why}")))?,
    };
    match value {
        Value::Object(config) => Ok(config),
        other => {
            let found = gotext::json_kind(&other);
            Err(bad(&format!(
                "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            )))
        }
    }
}

/// A configuration has to be of the kind and version of the URL, and says nothing of managers.
pub fn check(config: &ObjectMap, expected_version: &str, expected_kind: &str) -> Result<(), Error> {
    let text = |field: &str| config.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if api_version != expected_version || kind != expected_kind {
        let api_version = if api_version.is_empty() { "/" } else { api_version };
        return Err(Error::BadRequest(format!("invalid object type: {api_version}, Kind={kind}")));
    }
    let managers = config.get("metadata").and_then(|metadata| metadata.get("managedFields"));
    if managers.is_some_and(|managers| !managers.is_null()) {
        return Err(Error::bad_request("metadata.managedFields must be nil"));
    }
    Ok(())
}
