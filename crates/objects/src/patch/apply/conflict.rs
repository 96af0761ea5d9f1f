//! The error of an apply that would change fields of other managers.

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
    /// How messages name the manager.
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
}

/// How many fields an answer names at most.
const NAMED_MAX: usize = 256;

/// The message of a 409, and the paths that it names, by manager. `conflicts` are sorted by identity. The message
/// counts all conflicts, even those that it does not name.
pub fn message(conflicts: &[Conflict]) -> (String, Vec<(String, Vec<String>)>) {
    let mut all = 0;
    let mut named: Vec<(String, Vec<String>)> = Vec::new();
    let mut room = NAMED_MAX;
    for conflict in conflicts {
        let paths = conflict.fields.paths();
        all += paths.len();
        if room == 0 {
            continue;
        }
        let shown: Vec<String> = paths.iter().take(room).map(|path| path::display(path)).collect();
        room -= shown.len();
        named.push((conflict.manager(), shown));
    }
    if let ([(manager, paths)], 1) = (&named[..], all) {
        let text = format!("Apply failed with 1 conflict: conflict with {manager}: {}", paths.concat());
        return (text, named);
    }
    let groups: Vec<String> = named
        .iter()
        .map(|(manager, paths)| {
            let paths: String = paths.iter().map(|path| format!("\n- {path}")).collect();
            format!("conflicts with {manager}:{paths}")
        })
        .collect();
    let mut text = format!("Apply failed with {all} conflicts: {}", groups.join("\n"));
    if all > NAMED_MAX {
        text.push_str(&format!("\n- and {} more", all - NAMED_MAX));
    }
    (text, named)
}
