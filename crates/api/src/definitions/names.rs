//! Names of custom resources: a row for each name of a group, written in one transaction with the definition that has it.

use std::collections::{BTreeMap, BTreeSet};

use crate::cache::{Range, State};
use crate::codec::object::Object;
use crate::effects::Effects;
use crate::followers::definitions::Definitions;
use crate::kinds::apiextensions::custom_resource_definition::naming::{self, Name, Sort};
use crate::kinds::behavior::part::Part;
use crate::ownership::{self, Tracking};
use crate::storage::{Expect, Key, Mutation, Requirement};
use crate::{Cluster, ObjectMap, Target, fields};

/// The field manager of a definition's status, as with upstream's controllers.
const MANAGER: &str = "kube-apiserver";

impl Cluster {
    /// Brings the status of a definition up to date that is about to be written. Nothing of other kinds.
    pub(crate) fn settle_names(
        &self,
        target: Target<'_>,
        new: &mut ObjectMap,
        old: Option<&ObjectMap>,
    ) -> Effects {
        if !self.definitions.are(target.resource) {
            return Effects::default();
        }
        let state = self.cache.any();
        let group = fields::text(new, &["spec", "group"]).to_owned();
        let rows = Rows { definitions: &self.definitions, state: &state, group: &group, owner: target.name };
        let (before, now) = (new.clone(), self.now());
        naming::settle(new, &|name| rows.is_taken(name), &now);
        if before.get("status") != new.get("status") {
            let tracking = Tracking { manager: MANAGER, part: Part::Status, now: &now };
            ownership::track_update(target.resource, None, &before, new, tracking);
        }
        let asked = naming::requested(new);
        let mut accepted = naming::accepted(new);
        // Where the rows were lost, a status may tell of a name that somebody else has by now.
        accepted.retain(|name| !rows.is_taken(name));
        let mut had = naming::accepted(&before);
        had.extend(old.map(naming::accepted).unwrap_or_default());
        let mut effects = Effects::default();
        effects.require(asked.difference(&accepted).filter_map(|name| rows.others(name)));
        effects.join(rows.changes(&had, &accepted));
        effects
    }

    /// Whether the names that a definition's status tells are kept for it.
    pub fn has_its_names(&self, definition: &ObjectMap) -> bool {
        let state = self.cache.any();
        let (group, owner) =
            (fields::text(definition, &["spec", "group"]), fields::text(definition, &["metadata", "name"]));
        let rows = Rows { definitions: &self.definitions, state: &state, group, owner };
        naming::accepted(definition).iter().all(|name| rows.find(name).is_some_and(|row| rows.is_own(&row)))
    }

    /// Gives back the names of a definition that is about to go.
    pub(crate) fn release_names(&self, target: Target<'_>, old: &ObjectMap) -> Vec<Mutation> {
        if !self.definitions.are(target.resource) {
            return Vec::new();
        }
        let state = self.cache.any();
        let group = fields::text(old, &["spec", "group"]).to_owned();
        let rows = Rows { definitions: &self.definitions, state: &state, group: &group, owner: target.name };
        rows.changes(&naming::accepted(old), &BTreeSet::new())
    }

    /// The rows of names that are still kept for a definition which is gone, and what takes them away: servers of releases
    /// that kept no names delete definitions without them.
    pub fn leftover_names(&self, gone: &ObjectMap) -> Vec<Mutation> {
        let state = self.cache.any();
        let name = fields::text(gone, &["metadata", "name"]);
        let group = fields::text(gone, &["spec", "group"]);
        let rows = Rows { definitions: &self.definitions, state: &state, group, owner: name };
        let requirement = self.definitions.is_gone(name);
        let released = rows.changes(&naming::accepted(gone), &BTreeSet::new()).into_iter();
        released.map(|row| row.requiring(requirement.clone())).collect()
    }

    /// The variant of [`Cluster::leftover_names`] for all definitions that are gone, by their names.
    pub fn all_leftover_names(&self) -> BTreeMap<String, Vec<Mutation>> {
        let state = self.cache.any();
        let Some(definitions) = self.definitions.resource else { return BTreeMap::new() };
        let mut leftovers: BTreeMap<String, Vec<Mutation>> = BTreeMap::new();
        for row in state.objects(self.definitions.names.id()).range(&Range::of(None)) {
            let Ok(content) = row.to_map() else { continue };
            let owner = fields::text(&content, &["definition"]);
            if state.get(definitions, "", owner).is_some() {
                continue;
            }
            let expect = Expect::At(row.revision());
            let mutation = self.definitions.names.delete(row.namespace(), row.name(), expect);
            let mutation = mutation.requiring(self.definitions.is_gone(owner));
            leftovers.entry(owner.to_owned()).or_default().push(mutation);
        }
        leftovers
    }
}

/// The rows of a group as one of its definitions sees them.
struct Rows<'a> {
    definitions: &'a Definitions,
    state: &'a State,
    group: &'a str,
    owner: &'a str,
}

impl Rows<'_> {
    fn key(&self, name: &Name) -> Key {
        self.definitions.names.key(self.group, &row_name(name))
    }

    fn find(&self, name: &Name) -> Option<std::sync::Arc<Object>> {
        self.definitions.names.get(self.state, self.group, &row_name(name))
    }

    fn is_own(&self, row: &Object) -> bool {
        row.to_map().is_ok_and(|row| fields::text(&row, &["definition"]) == self.owner)
    }

    fn is_taken(&self, name: &Name) -> bool {
        self.find(name).is_some_and(|row| !self.is_own(&row))
    }

    /// A name that somebody else has, for as long as he has it.
    fn others(&self, name: &Name) -> Option<Requirement> {
        let row = self.find(name).filter(|row| !self.is_own(row))?;
        Some(Requirement { key: self.key(name), expect: Expect::At(row.revision()) })
    }

    /// The mutations by which the owner has these names and none of the former.
    fn changes(&self, had: &BTreeSet<Name>, has: &BTreeSet<Name>) -> Vec<Mutation> {
        let released = had.difference(has).filter_map(|name| {
            let row = self.find(name).filter(|row| self.is_own(row))?;
            let expect = Expect::At(row.revision());
            Some(self.definitions.names.delete(self.group, &row_name(name), expect))
        });
        let taken = has.iter().filter(|name| self.find(name).is_none()).map(|name| {
            let mut row = ObjectMap::new();
            row.insert("definition", self.owner.into());
            self.definitions.names.put(self.group, &row_name(name), Expect::Absent, row)
        });
        released.chain(taken).collect()
    }
}

fn row_name(name: &Name) -> String {
    match name.sort {
        Sort::Resource => name.text.clone(),
        Sort::Kind => format!("kind/{}", name.text),
    }
}
