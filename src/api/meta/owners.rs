//! `metadata.ownerReferences` (apimachinery `ValidateOwnerReferences`).

use std::collections::HashSet;

use super::{Metadata, text};
use crate::causes::Cause;
use crate::causes::Causes;
use crate::gotext;
use crate::tree::Value;
use crate::warnings::Warnings;

const FIELD: &str = "metadata.ownerReferences";

/// When repeated owners are found: in a body, or only in the result of a patch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Found {
    InBody,
    AfterAdmission,
}

/// Drops repeated references, and sends the client a warning.
pub fn drop_repeated(metadata: &mut Metadata, found: Found, warnings: &Warnings) {
    let Some(Value::Array(references)) = metadata.get_mut("ownerReferences").filter(|list| list.is_array())
    else {
        return;
    };
    if references.len() < 2 {
        return;
    }
    let mut seen = HashSet::with_capacity(references.len());
    let mut repeated = Vec::new();
    // The references conform to their type, so equal ones have the same text.
    references.retain(|reference| {
        let is_new = seen.insert(reference.to_string());
        if !is_new {
            repeated.push(reference.get("uid").and_then(Value::as_str).unwrap_or_default().to_owned());
        }
        is_new
    });
    if repeated.is_empty() {
        return;
    }
    let when = if found == Found::InBody { "" } else { " after mutating admission happens" };
    let uids = repeated.join(", ");
    warnings.add(format!(
        ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may \
         reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {uids}"
    ));
}

pub(super) fn validate(metadata: &Metadata, causes: &mut Causes) {
    let Some(list) = metadata.get("ownerReferences").filter(|value| value.is_array()) else { return };
    let references = list.as_array().into_iter().flatten().filter_map(Value::as_object);
    let mut controller: Option<String> = None;
    for (i, reference) in references.enumerate() {
        validate_one(reference, &format!("{FIELD}[{i}]"), causes);
        if reference.get("controller").and_then(Value::as_bool) != Some(true) {
            continue;
        }
        let name = format!("{}/{}", text(reference, "kind"), text(reference, "name"));
        match &controller {
            None => controller = Some(name),
            Some(first) => {
                let why = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
                );
                causes.add(|| Cause::invalid(FIELD, gotext::json(list), &why));
            }
        }
    }
}

fn validate_one(reference: &Metadata, field: &str, causes: &mut Causes) {
    let version = text(reference, "apiVersion");
    let bare = version.split_once('/').map_or(version, |(_, version)| version);
    if version.is_empty() {
        causes.push(Cause::required(format!("{field}.apiVersion"), "must not be empty"));
    } else if bare.is_empty() || bare.contains('/') {
        let why = "must be <group>/<version> or <version>";
        causes.push(Cause::invalid(format!("{field}.apiVersion"), gotext::quote(version), why));
    }
    for key in ["kind", "name", "uid"] {
        if text(reference, key).is_empty() {
            causes.push(Cause::required(format!("{field}.{key}"), "must not be empty"));
        }
    }
    if version == "v1" && text(reference, "kind") == "Event" {
        let value = gotext::json(&Value::Object(reference.clone()));
        causes.push(Cause::invalid(field, value, "/v1, Kind=Event is disallowed from being an owner"));
    }
}
