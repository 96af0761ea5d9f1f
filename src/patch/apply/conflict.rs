//! What an applier is told about fields of other managers.

use super::fields::FieldSet;
use super::managers::{Identity, Operation};
use super::path;
use crate::gotext;

/// The fields of one manager that an apply would change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    pub with: Identity,
    pub fields: FieldSet,
}

impl Conflict {
    /// The manager as messages call it.
    pub fn manager(&self) -> String {
        let Identity { name, operation, api_version, subresource } = &self.with;
        let mut text = gotext::quote(name);
        if !subresource.is_empty() {
            text.push_str(&format!(" with subresource {}", gotext::quote(subresource)));
        }
        if *operation == Operation::Update {
            text.push_str(&format!(" using {api_version}"));
        }
        text
    }

    /// The paths, one text each.
    pub fn paths(&self) -> Vec<String> {
        self.fields.paths().iter().map(|path| path::display(path)).collect()
    }
}

/// The message of a 409; conflicts are sorted by identity.
pub fn message(conflicts: &[Conflict]) -> String {
    let all: usize = conflicts.iter().map(|conflict| conflict.paths().len()).sum();
    if let ([one], 1) = (conflicts, all) {
        return format!(
            "Apply failed with 1 conflict: conflict with {}: {}",
            one.manager(),
            one.paths().concat()
        );
    }
    let mut text = format!("Apply failed with {all} conflicts: ");
    let groups: Vec<String> = conflicts
        .iter()
        .map(|conflict| {
            let paths: String = conflict.paths().iter().map(|path| format!("\n- {path}")).collect();
            format!("conflicts with {}:{paths}", conflict.manager())
        })
        .collect();
    text.push_str(&groups.join("\n"));
    text
}
