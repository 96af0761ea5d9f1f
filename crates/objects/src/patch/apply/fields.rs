//! Sets of paths.

use super::path::PathElement;
use super::schema::{Schema, TypeId};
use crate::tree::work;

/// A set of paths, stored as a tree. A path may be a member of the set whether or not its ancestors or descendants are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// Sorted by element, without duplicates.
    nodes: Vec<Node>,
}

/// One step of the tree. It is a member itself or has members below it; other nodes are not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    element: PathElement,
    member: bool,
    below: FieldSet,
}

/// A node in the form in which callers read it.
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

/// Makes a set from elements, each with whether it is a member, and the set below it. If an element occurs twice, the
/// last one counts.
impl FromIterator<(PathElement, bool, FieldSet)> for FieldSet {
    fn from_iter<I: IntoIterator<Item = (PathElement, bool, FieldSet)>>(nodes: I) -> Self {
        let node = |(element, member, below)| Node { element, member, below };
        let mut nodes: Vec<Node> = nodes.into_iter().map(node).filter(|node| !node.is_nothing()).collect();
        if !nodes.is_sorted_by(|one, other| one.element < other.element) {
            nodes.sort_by(|one, other| one.element.cmp(&other.element));
            nodes.dedup_by(|later, earlier| {
                let same = later.element == earlier.element;
                if same {
                    std::mem::swap(later, earlier);
                }
                same
            });
        }
        Self { nodes }
    }
}

impl FieldSet {
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The number of elements on the first level.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The first level, in the order of FieldsV1.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.nodes.iter().map(|Node { element, member, below }| Entry { element, member: *member, below })
    }

    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((first, rest)) = path.split_first() else { return };
        let at = self.place(first).unwrap_or_else(|at| {
            self.nodes.insert(at, Node { element: first.clone(), member: false, below: Self::default() });
            at
        });
        let node = &mut self.nodes[at];
        match rest {
            [] => node.member = true,
            rest => node.below.insert(rest),
        }
    }

    fn place(&self, element: &PathElement) -> Result<usize, usize> {
        self.nodes.binary_search_by(|node| node.element.cmp(element))
    }

    fn node(&self, element: &PathElement) -> Option<&Node> {
        self.place(element).ok().map(|at| &self.nodes[at])
    }

    pub fn has(&self, element: &PathElement) -> bool {
        self.node(element).is_some_and(|node| node.member)
    }

    pub fn has_path(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.has(last),
            [first, rest @ ..] => self.below(first).is_some_and(|below| below.has_path(rest)),
        }
    }

    /// The set below `element`; `None` if it is empty.
    pub fn below(&self, element: &PathElement) -> Option<&FieldSet> {
        self.node(element).map(|node| &node.below).filter(|below| !below.is_empty())
    }

    pub fn union(self, other: &FieldSet) -> FieldSet {
        if self.is_empty() {
            return other.clone();
        }
        if other.is_empty() {
            return self;
        }
        work::count(self.len() + other.len());
        let mut nodes = Vec::with_capacity(self.len().max(other.len()));
        let mut ours = self.nodes.into_iter().peekable();
        for theirs in &other.nodes {
            while let Some(node) = ours.next_if(|node| node.element < theirs.element) {
                nodes.push(node);
            }
            nodes.push(match ours.next_if(|node| node.element == theirs.element) {
                Some(Node { element, member, below }) => {
                    Node { element, member: member || theirs.member, below: below.union(&theirs.below) }
                }
                None => theirs.clone(),
            });
        }
        nodes.extend(ours);
        Self { nodes }
    }

    /// The union of many sets. Sets are united in pairs, then pairs of pairs: each path is moved only a few times,
    /// while adding one set after the other to a growing union would move all of its paths for each set.
    pub fn union_of(sets: Vec<FieldSet>) -> FieldSet {
        let mut sets = sets;
        while sets.len() > 1 {
            let mut pairs = sets.into_iter();
            let mut united = Vec::with_capacity(pairs.len().div_ceil(2));
            while let Some(one) = pairs.next() {
                united.push(match pairs.next() {
                    Some(other) => one.union(&other),
                    None => one,
                });
            }
            sets = united;
        }
        sets.pop().unwrap_or_default()
    }

    pub fn intersection(&self, other: &FieldSet) -> FieldSet {
        let shared = |node: &Node| {
            let theirs = other.node(&node.element)?;
            let below = node.below.intersection(&theirs.below);
            Some((node.element.clone(), node.member && theirs.member, below))
        };
        self.nodes.iter().filter_map(shared).collect()
    }

    /// The set without the paths that are members of `other`.
    pub fn difference(mut self, other: &FieldSet) -> FieldSet {
        self.remove(other, |_| false);
        self
    }

    /// The set without the members of `other` and everything below them.
    pub fn recursive_difference(mut self, other: &FieldSet) -> FieldSet {
        self.remove(other, |theirs| theirs.member);
        self
    }

    fn remove(&mut self, other: &FieldSet, whole: fn(&Node) -> bool) {
        work::count(self.len().min(other.len()));
        let mut emptied = false;
        let mut remove = |node: &mut Node, theirs: &Node| {
            node.member &= !theirs.member;
            match whole(theirs) {
                true => node.below = Self::default(),
                false => node.below.remove(&theirs.below, whole),
            }
            emptied |= node.is_nothing();
        };
        // Iterates over the smaller side: there may be thousands of small sets and one large one.
        if self.len() < other.len() {
            for node in &mut self.nodes {
                if let Some(theirs) = other.node(&node.element) {
                    remove(node, theirs);
                }
            }
        } else {
            for theirs in &other.nodes {
                if let Ok(at) = self.place(&theirs.element) {
                    remove(&mut self.nodes[at], theirs);
                }
            }
        }
        if emptied {
            self.nodes.retain(|node| !node.is_nothing());
        }
    }

    /// Adds those declared fields to the set that are ancestors of its members.
    pub fn with_named_fields(&self, schema: &Schema, id: TypeId) -> FieldSet {
        let atom = schema.atom(id);
        let named = |node: &Node| {
            let (declared, below) = match (&node.element, &atom.map, &atom.list) {
                (PathElement::Field(name), Some(map), _) => (map.declares(name), map.member(name)),
                (PathElement::Key(_), _, Some(list)) => (false, list.element),
                _ => (false, super::schema::DEDUCED),
            };
            let below = node.below.with_named_fields(schema, below);
            (node.element.clone(), node.member || declared, below)
        };
        self.nodes.iter().map(named).collect()
    }

    /// All paths. On each level, members come before deeper paths.
    pub fn paths(&self) -> Vec<Vec<PathElement>> {
        let mut paths = Vec::new();
        self.collect_paths(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &mut Vec<PathElement>, paths: &mut Vec<Vec<PathElement>>) {
        for node in self.nodes.iter().filter(|node| node.member) {
            paths.push(prefix.iter().chain([&node.element]).cloned().collect());
        }
        for node in &self.nodes {
            prefix.push(node.element.clone());
            node.below.collect_paths(prefix, paths);
            prefix.pop();
        }
    }
}

/// Makes a set of paths of field names: `field_paths(&[&["spec", "replicas"]])`.
pub fn field_paths(paths: &[&[&str]]) -> FieldSet {
    let mut set = FieldSet::default();
    for path in paths {
        let path: Vec<PathElement> = path.iter().map(|name| PathElement::Field((*name).into())).collect();
        set.insert(&path);
    }
    set
}
