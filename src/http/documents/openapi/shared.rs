//! Parameters of v2 that many operations have: they are written once, and referred to (kube-openapi
//! `deduplicateParameters`).

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;

use crate::tree::{Map, Value, json};

/// The shared parameters of a document.
pub(super) struct Shared {
    /// The names of shared parameters, by their JSON.
    names: HashMap<String, String>,
    pub definitions: Map,
}

impl Shared {
    /// The shared ones of all parameters of a document.
    pub fn of(parameters: impl Iterator<Item = Value>) -> Self {
        let mut shared = Self { names: HashMap::new(), definitions: Map::new() };
        for parameter in parameters.filter(is_shared) {
            if let Entry::Vacant(first) = shared.names.entry(parameter.to_string()) {
                let name = format!("{}-{}", member(&parameter, "name"), short_hash(first.key()));
                first.insert(name.clone());
                shared.definitions.insert(name, parameter);
            }
        }
        shared.definitions.sort_keys();
        shared
    }

    /// The parameter, or a reference to it.
    pub fn refer(&self, parameter: Value) -> Value {
        match self.names.get(&parameter.to_string()) {
            Some(name) => json!({"$ref": format!("#/parameters/{name}")}),
            None => parameter,
        }
    }
}

/// Whether a parameter is shared: not if it differs by kind, nor if older versions of kubectl look for it at the operation
/// itself.
fn is_shared(parameter: &Value) -> bool {
    match (member(parameter, "in"), member(parameter, "name")) {
        ("body", _) => member(&parameter["schema"], "$ref").starts_with("#/definitions/io.k8s.apimachinery"),
        (_, "name" | "fieldValidation" | "dryRun") => false,
        _ => true,
    }
}

fn member<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

/// Eight letters of the 64-bit FNV-1.
fn short_hash(text: &str) -> String {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let hash = text.bytes().fold(OFFSET, |hash, byte| hash.wrapping_mul(PRIME) ^ u64::from(byte));
    URL_SAFE.encode(&hash.to_be_bytes()[..6])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(kind: &str) -> Value {
        json!({"name": "body", "in": "body", "required": true, "schema": {"$ref": format!("#/definitions/{kind}")}})
    }

    /// The names are those in upstream's document.
    #[test]
    fn parameters_of_many_operations_are_written_once() {
        let patch = body("io.k8s.apimachinery.pkg.apis.meta.v1.Patch");
        let pod = body("io.k8s.api.core.v1.Pod");
        let log = json!({"uniqueItems": true, "type": "string", "description": "path to the log", "name": "logpath",
            "in": "path", "required": true});
        let dry_run = json!({"uniqueItems": true, "type": "string", "name": "dryRun", "in": "query"});
        let all = [&patch, &log, &pod, &patch, &dry_run];
        let shared = Shared::of(all.into_iter().cloned());
        let names: Vec<_> = shared.definitions.keys().collect();
        assert_eq!(names, ["body-78PwaGsr", "logpath-Noq7euwC"]);
        assert_eq!(shared.definitions["body-78PwaGsr"], patch);
        assert_eq!(shared.refer(log), json!({"$ref": "#/parameters/logpath-Noq7euwC"}));
        for parameter in [pod, dry_run] {
            assert_eq!(shared.refer(parameter.clone()), parameter);
        }
    }
}
