//! Sets of paths.

use super::path::PathElement;
use super::schema::{Schema, TypeId};
use crate::tree::work;

/// A set of paths, as a tree. What stands below a member need not be a member, nor what stands above.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// Sorted by their elements, each of which is there once.
    nodes: Vec<Node>,
}

/// Never a node that is no member and has nothing below.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    element: PathElement,
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

/// From elements, whether they are members, and what stands below them; of the same element the last counts.
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

    /// Elements of the first level.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// In the order of FieldsV1.
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

    /// What stands below `element`; `None` if nothing does.
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

    /// The union of many sets. Pairs are united first, then pairs of these: each path is moved a few times, where a
    /// growing union would move all of its paths for each set.
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
        // The smaller side is gone through: there may be thousands of small sets, and one that is large.
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

    /// With the declared fields on the way to a member as members, too.
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

    /// All paths: members of a level first, then what is deeper.
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

/// A set of field names paths: `field_paths(&[&["spec", "replicas"]])`.
pub fn field_paths(paths: &[&[&str]]) -> FieldSet {
    let mut set = FieldSet::default();
    for path in paths {
        let path: Vec<PathElement> = path.iter().map(|name| PathElement::Field((*name).into())).collect();
        set.insert(&path);
    }
    set
}
