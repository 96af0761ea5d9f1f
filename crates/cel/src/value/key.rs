//! Maps that expressions make.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use super::{Text, Value};

/// From how many entries on they are found by a table.
const INDEXED: usize = 12;

/// The key of an entry in a map.
#[derive(Clone, Debug)]
pub enum Key<'a> {
    Bool(bool),
    Int(i64),
    Uint(u64),
    /// The bits of a double.
    Double(u64),
    String(Text<'a>),
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bool(one), Self::Bool(other)) => one == other,
            (Self::Int(one), Self::Int(other)) => one == other,
            (Self::Uint(one), Self::Uint(other)) | (Self::Double(one), Self::Double(other)) => one == other,
            (Self::String(one), Self::String(other)) => **one == **other,
            _ => false,
        }
    }
}

impl Eq for Key<'_> {}

impl Hash for Key<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Bool(is) => is.hash(state),
            Self::Int(number) => number.hash(state),
            Self::Uint(number) | Self::Double(number) => number.hash(state),
            Self::String(text) => text[..].hash(state),
        }
    }
}

impl<'a> Key<'a> {
    pub fn of(value: &Value<'a>) -> Option<Self> {
        Some(match value {
            Value::Bool(is) => Self::Bool(*is),
            Value::Int(number) => Self::Int(*number),
            Value::Uint(number) => Self::Uint(*number),
            Value::Double(number) => Self::Double(number.to_bits()),
            Value::String(text) => Self::String(text.clone()),
            _ => return None,
        })
    }

    pub fn value(&self) -> Value<'a> {
        match self {
            Self::Bool(is) => Value::Bool(*is),
            Self::Int(number) => Value::Int(*number),
            Self::Uint(number) => Value::Uint(*number),
            Self::Double(bits) => Value::Double(f64::from_bits(*bits)),
            Self::String(text) => Value::String(text.clone()),
        }
    }

    /// Keys of other types that are the same number.
    fn alike(&self) -> [Option<Key<'static>>; 2] {
        match self {
            Self::Double(bits) => {
                let number = f64::from_bits(*bits);
                let int = (number as i64) as f64 == number && number.abs() < 9.3e18;
                let uint = (number as u64) as f64 == number && (0.0..1.85e19).contains(&number);
                [int.then_some(Key::Int(number as i64)), uint.then_some(Key::Uint(number as u64))]
            }
            Self::Int(number) => [u64::try_from(*number).ok().map(Key::Uint), None],
            Self::Uint(number) => [i64::try_from(*number).ok().map(Key::Int), None],
            _ => [None, None],
        }
    }
}

/// Entries in the order they were made.
#[derive(Clone, Debug, Default)]
pub struct Entries<'a> {
    entries: Vec<(Key<'a>, Value<'a>)>,
    places: HashMap<Key<'a>, usize>,
}

impl<'a> Entries<'a> {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Key<'a>, &Value<'a>)> {
        self.entries.iter().map(|(key, value)| (key, value))
    }

    pub fn nth(&self, at: usize) -> Option<&(Key<'a>, Value<'a>)> {
        self.entries.get(at)
    }

    fn place(&self, key: &Key<'_>) -> Option<usize> {
        if self.entries.len() < INDEXED {
            return self.entries.iter().position(|(known, _)| known == key);
        }
        self.places.get(key).copied()
    }

    /// The value of a key, or of one of another type that is the same number.
    pub fn find(&self, key: &Key<'_>) -> Option<&Value<'a>> {
        let alike = || key.alike().into_iter().flatten().find_map(|key| self.place(&key));
        let place = self.place(key).or_else(alike)?;
        Some(&self.entries[place].1)
    }

    /// Puts an entry into its place, or behind the others.
    pub fn put(&mut self, key: Key<'a>, value: Value<'a>) {
        if let Some(place) = self.place(&key) {
            self.entries[place].1 = value;
            return;
        }
        if self.entries.len() + 1 == INDEXED {
            self.places = self.entries.iter().map(|(key, _)| key.clone()).zip(0..).collect();
        }
        if self.entries.len() + 1 >= INDEXED {
            self.places.insert(key.clone(), self.entries.len());
        }
        self.entries.push((key, value));
    }

    pub fn remove(&mut self, key: &Key<'_>) {
        self.entries.retain(|(known, _)| known != key);
        if self.entries.len() >= INDEXED {
            self.places = self.entries.iter().map(|(key, _)| key.clone()).zip(0..).collect();
        }
    }
}
