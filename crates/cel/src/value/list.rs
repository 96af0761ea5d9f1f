//! Lists: of objects, of the program, made, or two behind each other.

use std::collections::HashSet;
use std::sync::Arc;

use rowplane_values::tree;

use super::view::{untyped, view};
use super::{Error, Key, Value};
use crate::decl::{ListDecl, ListKind};

#[derive(Clone, Debug)]
pub enum List<'a> {
    Tree(&'a Vec<tree::Value>, &'a ListDecl),
    Dyn(&'a Vec<tree::Value>),
    Constant(&'a Vec<Value<'a>>),
    Owned(Arc<Vec<Value<'a>>>),
    /// A union of lists of objects that are sets or maps.
    Union(Arc<Vec<Value<'a>>>, &'a ListDecl),
    Joined(Arc<Joined<'a>>),
}

#[derive(Debug)]
pub struct Joined<'a> {
    first: List<'a>,
    second: List<'a>,
    len: usize,
}

impl<'a> List<'a> {
    pub fn len(&self) -> usize {
        match self {
            Self::Tree(items, _) | Self::Dyn(items) => items.len(),
            Self::Constant(items) => items.len(),
            Self::Owned(items) | Self::Union(items, _) => items.len(),
            Self::Joined(both) => both.len,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it is an object's, of a declared type.
    pub fn is_declared(&self) -> bool {
        matches!(self, Self::Tree(..) | Self::Union(..))
    }

    /// Lists of objects are never taken for the zero of their type.
    pub fn is_zero(&self) -> bool {
        !self.is_declared() && self.is_empty()
    }

    /// The element there, which there is.
    pub fn get(&self, mut at: usize) -> Result<Value<'a>, Error> {
        let mut list = self;
        loop {
            return match list {
                Self::Tree(items, decl) => view(&items[at], &decl.items),
                Self::Dyn(items) => Ok(untyped(&items[at])),
                Self::Constant(items) => Ok(items[at].clone()),
                Self::Owned(items) | Self::Union(items, _) => Ok(items[at].clone()),
                Self::Joined(both) => {
                    let before = both.first.len();
                    list = if at < before { &both.first } else { &both.second };
                    at -= if at < before { 0 } else { before };
                    continue;
                }
            };
        }
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Result<Value<'a>, Error>> + ExactSizeIterator + '_ {
        (0..self.len()).map(|at| self.get(at))
    }

    /// All elements.
    pub fn to_vec(&self) -> Result<Vec<Value<'a>>, Error> {
        self.iter().collect()
    }

    /// How the list's own elements are told from each other.
    fn kind(&self) -> &'a ListKind {
        self.decl().map_or(&ListKind::Atomic, |decl| &decl.kind)
    }

    fn decl(&self) -> Option<&'a ListDecl> {
        match self {
            Self::Tree(_, decl) | Self::Union(_, decl) => Some(decl),
            _ => None,
        }
    }

    fn united(&self, items: Vec<Value<'a>>) -> Self {
        let items = Arc::new(items);
        match self.decl() {
            Some(decl) => Self::Union(items, decl),
            None => Self::Owned(items),
        }
    }

    /// `self + other`: lists of objects that are sets or maps become their union.
    pub fn plus(&self, other: &Self) -> Result<Self, Error> {
        match self.kind() {
            ListKind::Set => return self.union(other),
            ListKind::Map(keys) => return self.merged(other, keys),
            ListKind::Atomic if other.is_empty() => return Ok(self.clone()),
            ListKind::Atomic if self.is_empty() => return Ok(other.clone()),
            ListKind::Atomic => {}
        }
        let len = self.len() + other.len();
        Ok(Self::Joined(Arc::new(Joined { first: self.clone(), second: other.clone(), len })))
    }

    fn union(&self, other: &Self) -> Result<Self, Error> {
        let mut items = self.to_vec()?;
        let mut known: HashSet<Key<'a>> = items.iter().map(element_key).collect();
        for item in other.iter() {
            let item = item?;
            if known.insert(element_key(&item)) {
                items.push(item);
            }
        }
        Ok(self.united(items))
    }

    fn merged(&self, other: &Self, keys: &[String]) -> Result<Self, Error> {
        let mut items = self.to_vec()?;
        let mut places: std::collections::HashMap<String, usize> =
            items.iter().map(|item| object_key(item, keys)).zip(0..).collect();
        for item in other.iter() {
            let item = item?;
            match places.entry(object_key(&item, keys)) {
                std::collections::hash_map::Entry::Occupied(place) => items[*place.get()] = item,
                std::collections::hash_map::Entry::Vacant(place) => {
                    place.insert(items.len());
                    items.push(item);
                }
            }
        }
        Ok(self.united(items))
    }

    pub fn equals(&self, other: &Self) -> Result<bool, Error> {
        if self.len() != other.len() {
            return Ok(false);
        }
        match self.kind() {
            ListKind::Set => self.equals_set(other),
            ListKind::Map(keys) => self.equals_map(other, keys),
            ListKind::Atomic => {
                for at in 0..self.len() {
                    if !self.get(at)?.equals(&other.get(at)?)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }

    fn equals_set(&self, other: &Self) -> Result<bool, Error> {
        let keys = |list: &Self| -> Result<HashSet<Key<'a>>, Error> {
            list.iter().map(|item| item.map(|item| element_key(&item))).collect()
        };
        Ok(keys(self)? == keys(other)?)
    }

    fn equals_map(&self, other: &Self, keys: &[String]) -> Result<bool, Error> {
        let mut ours = std::collections::HashMap::new();
        for item in self.iter() {
            let item = item?;
            ours.insert(object_key(&item, keys), item);
        }
        let mut seen = HashSet::new();
        for item in other.iter() {
            let item = item?;
            let key = object_key(&item, keys);
            match ours.get(&key) {
                Some(known) if known.equals(&item)? => seen.insert(key),
                _ => return Ok(false),
            };
        }
        Ok(seen.len() == ours.len())
    }
}

/// The key that tells an element of a set from the others.
fn element_key<'a>(value: &Value<'a>) -> Key<'a> {
    Key::of(value).unwrap_or_else(|| Key::String(value.canonical().into()))
}

/// The key that tells an element of a map-like list from the others.
fn object_key(value: &Value<'_>, keys: &[String]) -> String {
    let Value::Map(map) = value else { return String::new() };
    let parts = keys.iter().map(|key| match map.raw(key) {
        Some(part) => part.to_string(),
        None => "<nil>".to_owned(),
    });
    parts.collect::<Vec<_>>().join("\n")
}
