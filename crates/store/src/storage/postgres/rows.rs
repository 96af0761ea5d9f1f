//! The rows that a batch is judged by, as numbered places.

use std::collections::HashMap;

use crate::storage::Key;

/// First the keys of the batch's mutations, in their order, then those of other rows, each once.
pub struct Rows<'a> {
    pub keys: Vec<&'a Key>,
    /// The first place of each mutation's key; `None` if no two mutations have one key.
    pub same: Option<Vec<i32>>,
    first: HashMap<&'a Key, i32>,
}

impl<'a> Rows<'a> {
    pub fn new(mutations: impl Iterator<Item = &'a Key>, others: impl Iterator<Item = &'a Key>) -> Self {
        let mut keys: Vec<&Key> = mutations.collect();
        let mut first = HashMap::with_capacity(keys.len());
        // Places are counted from 1, as PostgreSQL counts what is in an array.
        let same: Vec<i32> =
            keys.iter().zip(1..).map(|(key, place)| *first.entry(*key).or_insert(place)).collect();
        let repeated = first.len() < keys.len();
        for key in others {
            first.entry(key).or_insert_with(|| {
                keys.push(key);
                keys.len() as i32
            });
        }
        Self { keys, same: repeated.then_some(same), first }
    }

    /// The first place of a key; 0 if it is not among the rows.
    pub fn place(&self, key: &Key) -> i32 {
        self.first.get(key).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::ResourceId;

    #[test]
    fn a_key_has_its_first_place() {
        let [a, b, c] = ["a", "b", "c"].map(|name| Key::new(ResourceId(1), "", name));
        let rows = Rows::new([&a, &b, &a].into_iter(), [&b, &c, &c].into_iter());
        assert_eq!(rows.keys, [&a, &b, &a, &c]);
        assert_eq!(rows.same, Some(vec![1, 2, 1]));
        assert_eq!([&a, &b, &c].map(|key| rows.place(key)), [1, 2, 4]);
        assert_eq!(Rows::new([&a, &b].into_iter(), [&c].into_iter()).same, None);
    }
}
