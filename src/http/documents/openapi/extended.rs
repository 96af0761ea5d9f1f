//! The parts of OpenAPI v2 that extension servers add: paths of theirs, and definitions, which get other names if this server
//! or another one has the same name for something else (kube-openapi's `MergeSpecsIgnorePathConflictRenamingDefinitions`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::api::followers::api_services::openapi::{V2Part, rename};
use crate::tree::{Map, Value};

/// The paths and definitions that are added to this server's document.
#[derive(Debug, Default)]
pub(super) struct Added {
    pub paths: Map,
    pub definitions: Map,
}

impl Added {
    /// The paths and definitions of this server are those that stay as they are.
    pub fn of<'a>(
        parts: &[Arc<V2Part>],
        own_paths: impl Iterator<Item = &'a str>,
        own_definitions: impl Iterator<Item = (&'a str, Value)>,
    ) -> Self {
        let own_paths: BTreeSet<&str> = own_paths.collect();
        let names = parts.iter().flat_map(|part| part.definitions.keys());
        let names: BTreeSet<&str> = names.map(|name| name.as_str()).collect();
        let conflicting =
            own_definitions.filter(|(name, _)| names.contains(name) || names.contains(base(name)));
        let own: BTreeMap<String, Value> =
            conflicting.map(|(name, definition)| (name.to_owned(), definition)).collect();
        let mut added = Self::default();
        for part in parts {
            added.add(part, &own_paths, &own);
        }
        added
    }

    fn add(&mut self, part: &V2Part, own_paths: &BTreeSet<&str>, own: &BTreeMap<String, Value>) {
        let mut names = BTreeMap::new();
        for (name, definition) in part.definitions.iter() {
            let candidates = (1..).map(|number| match number {
                1 => name.to_string(),
                number => format!("{name}_v{number}"),
            });
            let is_free = |candidate: &String| {
                let other = own.get(candidate).or_else(|| self.definitions.get(candidate));
                other.is_none_or(|other| other == definition)
            };
            names.extend(candidates.into_iter().find(is_free).map(|chosen| (name.to_string(), chosen)));
        }
        for (name, definition) in part.definitions.iter() {
            let chosen = names.get(name.as_str()).filter(|chosen| !own.contains_key(*chosen));
            if let Some(chosen) = chosen {
                let mut definition = definition.clone();
                rename(&mut definition, &names);
                self.definitions.insert(chosen.clone(), definition);
            }
        }
        for (path, item) in part.paths.iter().filter(|(path, _)| !own_paths.contains(path.as_str())) {
            if !self.paths.contains_key(path) {
                let mut item = item.clone();
                rename(&mut item, &names);
                self.paths.insert(path.clone(), item);
            }
        }
    }
}

/// The name before `_v2`.
fn base(name: &str) -> &str {
    name.rsplit_once("_v").map_or(name, |(base, _)| base)
}
