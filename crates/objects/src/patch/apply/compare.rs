//! The difference between two versions of an object.

use std::cell::Cell;

use super::fields::FieldSet;
use super::items::{self, Group, Step};
use super::path::{PathElement, same};
use super::schema::{Form, ListType, MapType, Relation, Schema, TypeId};
use crate::fields::identical;
use crate::tree::{Map, Text, Value};

/// The paths that were added, removed and modified. For a value that only one version has, the set contains its path
/// and the paths of its leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    pub added: FieldSet,
    pub removed: FieldSet,
    pub modified: FieldSet,
    /// Whether a keyed list has an element without a key. Upstream cannot read such an object by its schema, and then
    /// leaves its managers as they were.
    pub keyless: bool,
}

impl Comparison {
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.modified.is_empty()
    }

    /// The paths that the new version has set.
    pub fn written(&self) -> FieldSet {
        self.modified.clone().union(&self.added)
    }

    pub fn into_written(self) -> FieldSet {
        match self.modified.is_empty() {
            true => self.added,
            false => self.modified.union(&self.added),
        }
    }

    /// The same comparison with `change` applied to each set.
    pub fn mapped(self, change: impl Fn(FieldSet) -> FieldSet) -> Self {
        Self {
            added: change(self.added),
            removed: change(self.removed),
            modified: change(self.modified),
            keyless: self.keyless,
        }
    }
}

/// Compares two objects of the schema's kind.
pub fn compare(schema: &Schema, old: &Map, new: &Map) -> Comparison {
    match &schema.atom(schema.root()).map {
        Some(map) => {
            let keyless = Cell::new(false);
            let found = Walk { schema, keyless: &keyless }.members(map, Some(old), Some(new)).collect();
            Comparison { keyless: keyless.get(), ..found }
        }
        None => Comparison::default(),
    }
}

/// The result for one node: for each set, whether it contains the node itself, and its paths below the node.
#[derive(Default)]
struct NodeChanges {
    added: bool,
    removed: bool,
    modified: bool,
    below: Comparison,
}

impl NodeChanges {
    fn modified() -> Self {
        Self { modified: true, ..Self::default() }
    }

    fn is_nothing(&self) -> bool {
        !self.added && !self.removed && !self.modified && self.below.is_empty()
    }

    fn and(self, other: NodeChanges) -> Self {
        let below = Comparison {
            added: self.below.added.union(&other.below.added),
            removed: self.below.removed.union(&other.below.removed),
            modified: self.below.modified.union(&other.below.modified),
            keyless: false,
        };
        Self {
            added: self.added || other.added,
            removed: self.removed || other.removed,
            modified: self.modified || other.modified,
            below,
        }
    }
}

/// The children of a node for each set, without duplicates, in any order.
#[derive(Default)]
struct Level {
    added: Vec<(PathElement, bool, FieldSet)>,
    removed: Vec<(PathElement, bool, FieldSet)>,
    modified: Vec<(PathElement, bool, FieldSet)>,
}

impl Level {
    fn add(&mut self, element: PathElement, found: NodeChanges) {
        let NodeChanges { added, removed, modified, below } = found;
        let sets = [
            (&mut self.removed, removed, below.removed),
            (&mut self.modified, modified, below.modified),
            (&mut self.added, added, below.added),
        ];
        let mut element = Some(element);
        let mut wanted =
            sets.into_iter().filter(|(_, member, below)| *member || !below.is_empty()).peekable();
        while let Some((set, member, below)) = wanted.next() {
            let element = if wanted.peek().is_some() { element.clone() } else { element.take() };
            set.extend(element.map(|element| (element, member, below)));
        }
    }

    fn collect(self) -> Comparison {
        Comparison {
            added: self.added.into_iter().collect(),
            removed: self.removed.into_iter().collect(),
            modified: self.modified.into_iter().collect(),
            keyless: false,
        }
    }
}

#[derive(Clone, Copy)]
struct Walk<'a> {
    schema: &'a Schema,
    keyless: &'a Cell<bool>,
}

impl<'a> Walk<'a> {
    fn node(self, id: TypeId, old: Option<&Value>, new: Option<&Value>) -> NodeChanges {
        match (old, new) {
            (None, None) => NodeChanges::default(),
            (None, Some(new)) => {
                let below = Comparison { added: self.whole(id, new), ..Comparison::default() };
                NodeChanges { added: true, below, ..NodeChanges::default() }
            }
            (Some(old), None) => {
                let below = Comparison { removed: self.whole(id, old), ..Comparison::default() };
                NodeChanges { removed: true, below, ..NodeChanges::default() }
            }
            (Some(old), Some(new)) if identical(old, new) => NodeChanges::default(),
            (Some(old), Some(new)) => {
                let (before, after) = (self.schema.form(id, old), self.schema.form(id, new));
                let found = self.both(after, old, new);
                if before == after { found } else { self.both(before, old, new).and(found) }
            }
        }
    }

    /// The paths below a node that only one version has: the leaves, and everything on the way to them.
    fn whole(self, id: TypeId, value: &Value) -> FieldSet {
        match (self.schema.form(id, value), value) {
            (Form::Map(map), Value::Object(object)) if !map.atomic => {
                let member = |(name, value): (&Text, &Value)| {
                    let (step, id) = map.step(name);
                    (step, true, self.whole(id, value))
                };
                object.iter().map(member).collect()
            }
            (Form::List(list), Value::Array(items)) if list.relation != Relation::Atomic => {
                let element = |(step, group): (Step<'_>, Group<'_>)| {
                    let below = match group {
                        Group::One(item) => self.whole(list.element, item),
                        Group::Many(_) => FieldSet::default(),
                    };
                    (step.element(), true, below)
                };
                self.index(list, items).into_iter().map(element).collect()
            }
            _ => FieldSet::default(),
        }
    }

    /// Compares two values as values of one form, even if one of them has another form.
    fn both(self, form: Form<'_>, old: &Value, new: &Value) -> NodeChanges {
        let level = match form {
            Form::Scalar(_) => None,
            Form::Map(map) => {
                let (old, new) = (old.as_object(), new.as_object());
                let empty = |side: Option<&Map>| side.is_none_or(Map::is_empty);
                let leaf = map.atomic || (empty(old) && empty(new));
                (!leaf).then(|| self.members(map, old, new))
            }
            Form::List(list) => {
                let (old, new) = (old.as_array(), new.as_array());
                let (old, new) = (old.map_or(&[][..], Vec::as_slice), new.map_or(&[][..], Vec::as_slice));
                let leaf = list.relation == Relation::Atomic || (old.is_empty() && new.is_empty());
                (!leaf).then(|| self.items(list, old, new))
            }
        };
        match level {
            Some(level) => NodeChanges { below: level.collect(), ..NodeChanges::default() },
            None if same(old, new) => NodeChanges::default(),
            None => NodeChanges::modified(),
        }
    }

    fn members(self, map: &MapType, old: Option<&Map>, new: Option<&Map>) -> Level {
        let mut level = Level::default();
        let mut add = |name: &str, old, new| {
            let found = self.node(map.member(name), old, new);
            if !found.is_nothing() {
                level.add(map.step(name).0, found);
            }
        };
        for (name, value) in old.into_iter().flatten() {
            add(name, Some(value), new.and_then(|new| new.get(name)));
        }
        for (name, value) in new.into_iter().flatten() {
            if !old.is_some_and(|old| old.contains_key(name)) {
                add(name, None, Some(value));
            }
        }
        level
    }

    fn items(self, list: &ListType, old: &[Value], new: &[Value]) -> Level {
        let mut level = Level::default();
        let mut add = |step: Step<'_>, old: &[&Value], new: &[&Value]| {
            let found = self.group(list, old, new);
            if !found.is_nothing() {
                level.add(step.element(), found);
            }
        };
        let mut after = self.index(list, new).into_iter().peekable();
        for (step, before) in self.index(list, old) {
            while let Some((step, after)) = after.next_if(|(next, _)| *next < step) {
                add(step, &[], after.as_slice());
            }
            let twin = after.next_if(|(next, _)| *next == step);
            add(step, before.as_slice(), twin.as_ref().map_or(&[], |(_, after)| after.as_slice()));
        }
        for (step, after) in after {
            add(step, &[], after.as_slice());
        }
        level
    }

    fn index<'v>(self, list: &'v ListType, items: &'v [Value]) -> Vec<(Step<'v>, Group<'v>)>
    where
        'a: 'v,
    {
        let index = items::index(self.schema, list, items);
        if items::leaves_out(&index, items) {
            self.keyless.set(true);
        }
        index
    }

    /// Compares all elements with the same key. If a key occurs more than once, its elements are compared as one atomic
    /// value.
    fn group(self, list: &ListType, old: &[&Value], new: &[&Value]) -> NodeChanges {
        match (old, new) {
            ([] | [_], [] | [_]) => self.node(list.element, old.first().copied(), new.first().copied()),
            ([_, _, ..], [_, _, ..]) => {
                let equal = old.len() == new.len() && old.iter().zip(new).all(|(old, new)| same(old, new));
                if equal { NodeChanges::default() } else { NodeChanges::modified() }
            }
            ([_, _, ..], after) => {
                NodeChanges { removed: true, ..self.node(list.element, None, after.first().copied()) }
            }
            (before, _) => {
                NodeChanges { added: true, ..self.node(list.element, before.first().copied(), None) }
            }
        }
    }
}
