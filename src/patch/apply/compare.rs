//! What changed between two versions of an object.

use serde_json::{Map, Value};

use super::fields::FieldSet;
use super::items;
use super::path::{PathElement, same};
use super::schema::{Form, ListType, MapType, Relation, Schema, TypeId};

/// Paths that came, went and changed. A node that is on one side only is there itself, with its leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    pub added: FieldSet,
    pub removed: FieldSet,
    pub modified: FieldSet,
}

impl Comparison {
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.modified.is_empty()
    }

    /// What the new version says that the old one did not.
    pub fn written(&self) -> FieldSet {
        self.modified.clone().union(&self.added)
    }

    pub fn into_written(self) -> FieldSet {
        match self.modified.is_empty() {
            true => self.added,
            false => self.modified.union(&self.added),
        }
    }

    /// Whether something was there before and is not any more.
    pub fn removes(&self) -> bool {
        !self.removed.is_empty()
    }

    /// Every set passed through `change`.
    pub fn mapped(self, change: impl Fn(FieldSet) -> FieldSet) -> Self {
        Self { added: change(self.added), removed: change(self.removed), modified: change(self.modified) }
    }
}

/// Compares two objects of the schema's kind.
pub fn compare(schema: &Schema, old: &Map<String, Value>, new: &Map<String, Value>) -> Comparison {
    let mut walk = Walk { schema, path: Vec::new(), elements: Vec::new(), found: Comparison::default() };
    if let Some(map) = &schema.atom(schema.root()).map {
        walk.members(map, Some(old), Some(new));
    }
    walk.found
}

struct Walk<'a> {
    schema: &'a Schema,
    path: Vec<Step<'a>>,
    /// The beginning of the path, as far as it has been asked for.
    elements: Vec<PathElement>,
    found: Comparison,
}

/// Names are borrowed: most paths are only walked.
enum Step<'a> {
    Name(&'a str),
    Item(PathElement),
}

impl<'a> Walk<'a> {
    fn node(&mut self, id: TypeId, old: Option<&'a Value>, new: Option<&'a Value>) {
        if old == new {
            return;
        }
        let form = |value: &'a Value| self.schema.form(id, value);
        let leaf = match (old.map(form), new.map(form)) {
            (Some(form), None) => self.visit(form, old, new),
            (None, Some(form)) => self.visit(form, old, new),
            (Some(before), Some(after)) => {
                if before != after {
                    self.visit(before, old, new);
                }
                self.visit(after, old, new)
            }
            (None, None) => return,
        };
        if leaf == Leaf::No {
            self.mark_presence(old, new);
        }
    }

    fn visit(&mut self, form: Form<'a>, old: Option<&'a Value>, new: Option<&'a Value>) -> Leaf {
        let leaf = match form {
            Form::Scalar(_) => Leaf::Yes,
            Form::Map(map) => {
                let (old, new) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
                let empty = |side: Option<&Map<String, Value>>| side.is_none_or(Map::is_empty);
                if map.atomic || (empty(old) && empty(new)) {
                    Leaf::Yes
                } else {
                    self.members(map, old, new);
                    Leaf::No
                }
            }
            Form::List(list) => {
                let (old, new) = (old.and_then(Value::as_array), new.and_then(Value::as_array));
                let empty = |side: Option<&Vec<Value>>| side.is_none_or(Vec::is_empty);
                if list.relation == Relation::Atomic || (empty(old) && empty(new)) {
                    Leaf::Yes
                } else {
                    self.items(list, old.map_or(&[], Vec::as_slice), new.map_or(&[], Vec::as_slice));
                    Leaf::No
                }
            }
        };
        if leaf == Leaf::Yes {
            match (old, new) {
                (Some(old), Some(new)) if !same(old, new) => {
                    here(&mut self.elements, &self.path);
                    self.found.modified.insert(&self.elements);
                }
                _ => self.mark_presence(old, new),
            }
        }
        leaf
    }

    /// A node of one side only came or went.
    fn mark_presence(&mut self, old: Option<&Value>, new: Option<&Value>) {
        let set = match (old, new) {
            (None, Some(_)) => &mut self.found.added,
            (Some(_), None) => &mut self.found.removed,
            _ => return,
        };
        here(&mut self.elements, &self.path);
        set.insert(&self.elements);
    }

    fn members(
        &mut self,
        map: &'a MapType,
        old: Option<&'a Map<String, Value>>,
        new: Option<&'a Map<String, Value>>,
    ) {
        for (name, value) in old.into_iter().flatten() {
            let other = new.and_then(|new| new.get(name));
            self.step(Step::Name(name), map.member(name), Some(value), other);
        }
        for (name, value) in new.into_iter().flatten() {
            if !old.is_some_and(|old| old.contains_key(name)) {
                self.step(Step::Name(name), map.member(name), None, Some(value));
            }
        }
    }

    fn items(&mut self, list: &'a ListType, old: &'a [Value], new: &'a [Value]) {
        let mut new = items::index(self.schema, list, new);
        for (element, before) in items::index(self.schema, list, old) {
            let after = new.remove(&element).unwrap_or_default();
            self.group(list, element, &before, &after);
        }
        for (element, after) in new {
            self.group(list, element, &[], &after);
        }
    }

    /// All elements of one key. Duplicates are compared as one value, which has nothing below it.
    fn group(&mut self, list: &ListType, element: PathElement, old: &[&'a Value], new: &[&'a Value]) {
        let marked = match (old, new) {
            ([] | [_], [] | [_]) => {
                let (old, new) = (old.first().copied(), new.first().copied());
                self.step(Step::Item(element), list.element, old, new);
                return;
            }
            ([_, _, ..], [_, _, ..]) => {
                let equal = old.len() == new.len() && old.iter().zip(new).all(|(old, new)| same(old, new));
                if equal {
                    return;
                }
                &mut self.found.modified
            }
            ([_, _, ..], after) => {
                if let Some(after) = after.first() {
                    self.step(Step::Item(element.clone()), list.element, None, Some(after));
                }
                &mut self.found.removed
            }
            (before, _) => {
                if let Some(before) = before.first() {
                    self.step(Step::Item(element.clone()), list.element, Some(before), None);
                }
                &mut self.found.added
            }
        };
        here(&mut self.elements, &self.path);
        self.elements.push(element);
        marked.insert(&self.elements);
        self.elements.pop();
    }

    fn step(&mut self, step: Step<'a>, id: TypeId, old: Option<&'a Value>, new: Option<&'a Value>) {
        self.path.push(step);
        self.node(id, old, new);
        self.path.pop();
        self.elements.truncate(self.path.len());
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaf {
    Yes,
    No,
}

/// Completes the elements of a path, of which siblings share the most.
fn here(elements: &mut Vec<PathElement>, path: &[Step<'_>]) {
    let element = |step: &Step<'_>| match step {
        Step::Name(name) => PathElement::Field((*name).into()),
        Step::Item(element) => element.clone(),
    };
    elements.extend(path[elements.len()..].iter().map(element));
}
