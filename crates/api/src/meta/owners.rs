//! `metadata.ownerReferences` (apimachinery `ValidateOwnerReferences`).

use std::collections::HashSet;

use super::Metadata;
use crate::tree::Value;
use crate::warnings::Warnings;

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
