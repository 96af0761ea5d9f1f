//! Sets of paths.

use std::collections::BTreeMap;

use super::path::PathElement;
use super::schema::{Schema, TypeId};

/// A set of paths, as a tree. What stands below a member need not be a member, nor what stands above.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    nodes: BTreeMap<PathElement, Node>,
}

/// Never a node that is no member and has nothing below.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Node {
    member: bool,
    below: FieldSet,
}

/// A node as readers see it.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    pub element: &'a PathElement,
    pub member: bool,
    pub below: &'a FieldSet,
}

impl Node {
    fn is_nothing(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

impl FieldSet {
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// In the order of FieldsV1.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.nodes.iter().map(|(element, node)| Entry { element, member: node.member, below: &node.below })
    }

    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((first, rest)) = path.split_first() else { return };
        let node = match self.nodes.get_mut(first) {
            Some(node) => node,
            None => self.nodes.entry(first.clone()).or_default(),
        };
        if rest.is_empty() {
            node.member = true;
        } else {
            node.below.insert(rest);
        }
    }

    /// Puts a whole subtree below `element`; nothing if it is empty.
    pub fn graft(&mut self, element: PathElement, member: bool, below: FieldSet) {
        let node = Node { member, below };
        if !node.is_nothing() {
            self.nodes.insert(element, node);
        }
    }

    pub fn has(&self, element: &PathElement) -> bool {
        self.nodes.get(element).is_some_and(|node| node.member)
    }

    pub fn has_path(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.has(last),
            [first, rest @ ..] => self.below(first).is_some_and(|below| below.has_path(rest)),
        }
    }

    /// What stands below `element`; `None` if nothing does.
    pub fn below(&self, element: &PathElement) -> Option<&FieldSet> {
        self.nodes.get(element).map(|node| &node.below).filter(|below| !below.is_empty())
    }

    pub fn union(mut self, other: &FieldSet) -> FieldSet {
        if self.is_empty() {
            return other.clone();
        }
        for (element, theirs) in &other.nodes {
            let node = self.nodes.entry(element.clone()).or_default();
            node.member |= theirs.member;
            node.below = std::mem::take(&mut node.below).union(&theirs.below);
        }
        self
    }

    pub fn intersection(&self, other: &FieldSet) -> FieldSet {
        let mut found = FieldSet::default();
        for (element, node) in &self.nodes {
            if let Some(theirs) = other.nodes.get(element) {
                let below = node.below.intersection(&theirs.below);
                found.graft(element.clone(), node.member && theirs.member, below);
            }
        }
        found
    }

    /// Without exactly the paths of `other`.
    pub fn difference(mut self, other: &FieldSet) -> FieldSet {
        self.remove(other, |_| false);
        self
    }

    /// Without the paths of `other` and everything below them.
    pub fn recursive_difference(mut self, other: &FieldSet) -> FieldSet {
        self.remove(other, |theirs| theirs.member);
        self
    }

    fn remove(&mut self, other: &FieldSet, whole: fn(&Node) -> bool) {
        for (element, theirs) in &other.nodes {
            let Some(node) = self.nodes.get_mut(element) else { continue };
            node.member &= !theirs.member;
            node.below.remove(&theirs.below, whole);
            if whole(theirs) || node.is_nothing() {
                self.nodes.remove(element);
            }
        }
    }

    /// With the declared fields on the way to a member as members, too.
    pub fn with_named_fields(&self, schema: &Schema, id: TypeId) -> FieldSet {
        let atom = schema.atom(id);
        let mut named = FieldSet::default();
        for (element, node) in &self.nodes {
            let (declared, below) = match (element, &atom.map, &atom.list) {
                (PathElement::Field(name), Some(map), _) => (map.declares(name), map.member(name)),
                (PathElement::Key(_), _, Some(list)) => (false, list.element),
                _ => (false, super::schema::DEDUCED),
            };
            let member = node.member || declared;
            named.graft(element.clone(), member, node.below.with_named_fields(schema, below));
        }
        named
    }

    /// All paths: members of a level first, then what is deeper.
    pub fn paths(&self) -> Vec<Vec<PathElement>> {
        let mut paths = Vec::new();
        self.collect_paths(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &mut Vec<PathElement>, paths: &mut Vec<Vec<PathElement>>) {
        for (element, _) in self.nodes.iter().filter(|(_, node)| node.member) {
            paths.push(prefix.iter().chain([element]).cloned().collect());
        }
        for (element, node) in &self.nodes {
            prefix.push(element.clone());
            node.below.collect_paths(prefix, paths);
            prefix.pop();
        }
    }
}

/// A set of field names paths: `field_paths(&[&["spec", "replicas"]])`.
pub fn field_paths(paths: &[&[&str]]) -> FieldSet {
    let mut set = FieldSet::default();
    for path in paths {
        let path: Vec<PathElement> = path.iter().map(|name| PathElement::Field((*name).into())).collect();
        set.insert(&path);
    }
    set
}
