//! The members of an object.

mod edit;

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash, Hasher};

use super::{Text, Value, work};
pub use edit::Edit;

/// Objects with at least this many members have a hash table; in smaller ones a search is faster.
const INDEXED: usize = 24;

/// Members by name, in insertion order. Equality ignores the order.
#[derive(Clone, Default)]
pub struct Map {
    members: Vec<(Text, Value)>,
    /// The index of each member; only for objects that have, or once had, [`INDEXED`] members.
    places: Option<Box<Places>>,
}

#[derive(Clone, Default)]
struct Places(HashMap<Text, usize>);

impl Map {
    pub const fn new() -> Self {
        Self { members: Vec::new(), places: None }
    }

    pub fn with_capacity(members: usize) -> Self {
        Self { members: Vec::with_capacity(members), places: None }
    }

    pub fn len(&self) -> usize {
        self.members.len()
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    fn find(&self, name: &str) -> Option<usize> {
        match &self.places {
            None => self.members.iter().position(|(known, _)| known.as_str() == name),
            Some(places) => places.0.get(name).copied(),
        }
    }

    pub fn contains_key(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    #[inline]
    pub fn get(&self, name: &str) -> Option<&Value> {
        match &self.places {
            None => self.members.iter().find(|(known, _)| known.as_str() == name).map(|(_, value)| value),
            Some(places) => places.0.get(name).map(|at| &self.members[*at].1),
        }
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        match &self.places {
            None => self.members.iter_mut().find(|(known, _)| known.as_str() == name).map(|(_, value)| value),
            Some(places) => places.0.get(name).map(|at| &mut self.members[*at].1),
        }
    }

    pub fn get_key_value(&self, name: &str) -> Option<(&Text, &Value)> {
        self.find(name).map(|at| (&self.members[at].0, &self.members[at].1))
    }

    /// Sets a member, in its place or behind all others. Returns its earlier value.
    pub fn insert(&mut self, name: impl Into<Text>, value: Value) -> Option<Value> {
        let name = name.into();
        match self.get_mut(&name) {
            Some(place) => Some(std::mem::replace(place, value)),
            None => {
                self.push(name, value);
                None
            }
        }
    }

    /// Appends a member. The caller must know that no member has this name.
    pub fn push(&mut self, name: Text, value: Value) -> &mut Value {
        debug_assert!(!self.contains_key(&name), "{name} is there twice");
        let at = self.members.len();
        match &mut self.places {
            Some(places) => _ = places.0.insert(name.clone(), at),
            None if at + 1 == INDEXED => {
                let names = self.members.iter().map(|(name, _)| name).chain([&name]).cloned();
                self.places = Some(Box::new(Places(names.zip(0..).collect())));
            }
            None => {}
        }
        self.members.push((name, value));
        &mut self.members[at].1
    }

    /// Removes a member. Members behind it are moved, and keep their order. To remove as many members as a client
    /// names, use [`Map::edit`].
    pub fn shift_remove(&mut self, name: &str) -> Option<Value> {
        let at = self.find(name)?;
        let (_, value) = self.members.remove(at);
        if let Some(places) = &mut self.places {
            places.0.remove(name);
            places.0.values_mut().filter(|place| **place > at).for_each(|place| *place -= 1);
        }
        work::count(self.members.len() - at);
        Some(value)
    }

    /// Starts an edit, in which all removals together cost one pass over the members.
    pub fn edit(&mut self) -> Edit<'_> {
        Edit::new(self)
    }

    pub fn entry(&mut self, name: impl Into<Text>) -> Entry<'_> {
        let name = name.into();
        let at = self.find(&name);
        Entry { map: self, name, at }
    }

    pub fn clear(&mut self) {
        *self = Self::new();
    }

    pub fn retain(&mut self, mut keeps: impl FnMut(&Text, &mut Value) -> bool) {
        let before = self.members.len();
        self.members.retain_mut(|(name, value)| keeps(name, value));
        if self.members.len() < before {
            self.index();
        }
    }

    pub fn sort_keys(&mut self) {
        if !self.keys().is_sorted() {
            self.members.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
            self.index();
        }
    }

    /// Updates the table after members were moved.
    fn index(&mut self) {
        work::count(self.members.len());
        if let Some(places) = &mut self.places {
            places.0.clear();
            places.0.extend(self.members.iter().map(|(name, _)| name.clone()).zip(0..));
        }
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Text, &Value)> + ExactSizeIterator + Clone {
        self.members.iter().map(|(name, value)| (name, value))
    }

    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (&Text, &mut Value)> + ExactSizeIterator {
        self.members.iter_mut().map(|(name, value)| (&*name, value))
    }

    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &Text> + ExactSizeIterator + Clone {
        self.members.iter().map(|(name, _)| name)
    }

    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Value> + ExactSizeIterator + Clone {
        self.members.iter().map(|(_, value)| value)
    }

    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Value> + ExactSizeIterator {
        self.members.iter_mut().map(|(_, value)| value)
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Compares values only once, whatever the result is: a second comparison on each level would double the cost per
/// level.
impl PartialEq for Map {
    fn eq(&self, other: &Self) -> bool {
        if self.len() != other.len() {
            return false;
        }
        let pairs = || self.members.iter().zip(&other.members);
        if pairs().all(|((one, _), (other, _))| one == other) {
            return pairs().all(|((_, one), (_, other))| one == other);
        }
        self.iter().all(|(name, value)| other.get(name) == Some(value))
    }
}

impl Eq for Map {}

/// Equal objects have equal hashes, whatever the order of their members.
impl Hash for Map {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let alone = BuildHasherDefault::<DefaultHasher>::default();
        let sum = self.members.iter().fold(0u64, |sum, member| sum.wrapping_add(alone.hash_one(member)));
        (self.members.len(), sum).hash(state);
    }
}

/// The value of a member; null if there is none.
impl std::ops::Index<&str> for Map {
    type Output = Value;

    fn index(&self, name: &str) -> &Value {
        static NOTHING: Value = Value::Null;
        self.get(name).unwrap_or(&NOTHING)
    }
}

/// The mutable value of a member, which is inserted as null if it is missing.
impl std::ops::IndexMut<&str> for Map {
    fn index_mut(&mut self, name: &str) -> &mut Value {
        self.entry(name).or_insert(Value::Null)
    }
}

impl<K: Into<Text>> Extend<(K, Value)> for Map {
    fn extend<I: IntoIterator<Item = (K, Value)>>(&mut self, members: I) {
        for (name, value) in members {
            self.insert(name, value);
        }
    }
}

impl<K: Into<Text>> FromIterator<(K, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, Value)>>(members: I) -> Self {
        let mut map = Self::new();
        map.extend(members);
        map
    }
}

impl IntoIterator for Map {
    type Item = (Text, Value);
    type IntoIter = std::vec::IntoIter<(Text, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.members.into_iter()
    }
}

impl<'a> IntoIterator for &'a Map {
    type Item = (&'a Text, &'a Value);
    type IntoIter = std::iter::Map<std::slice::Iter<'a, (Text, Value)>, fn(&'a (Text, Value)) -> Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.members.iter().map(|(name, value)| (name, value))
    }
}

impl<'a> IntoIterator for &'a mut Map {
    type Item = (&'a Text, &'a mut Value);
    type IntoIter =
        std::iter::Map<std::slice::IterMut<'a, (Text, Value)>, fn(&'a mut (Text, Value)) -> Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.members.iter_mut().map(|(name, value)| (&*name, value))
    }
}

/// A member that may be missing.
pub struct Entry<'a> {
    map: &'a mut Map,
    name: Text,
    at: Option<usize>,
}

impl<'a> Entry<'a> {
    pub fn or_insert(self, value: Value) -> &'a mut Value {
        self.or_insert_with(|| value)
    }

    pub fn or_insert_with(self, value: impl FnOnce() -> Value) -> &'a mut Value {
        match self.at {
            Some(at) => &mut self.map.members[at].1,
            None => self.map.push(self.name, value()),
        }
    }
}
