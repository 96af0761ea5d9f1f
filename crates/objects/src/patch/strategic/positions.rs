//! Finds list elements by their merge keys. Long lists have a hash table, since a patch may name as many elements as
//! the list has.

use std::collections::{HashMap, VecDeque};

use crate::tree::{Value, work};

/// Lists with at least this many elements have a hash table; searching shorter ones is faster.
const INDEXED: usize = 16;

/// The identity of an element: the value of its merge key or, in a list without a merge key, the element itself.
fn identity<'v>(item: &'v Value, merge_key: &str) -> Option<&'v Value> {
    if merge_key.is_empty() { Some(item) } else { item.get(merge_key) }
}

/// The elements of a list that does not change.
pub(super) struct Positions<'v> {
    items: &'v [Value],
    merge_key: &'v str,
    table: Option<HashMap<&'v Value, usize>>,
}

impl<'v> Positions<'v> {
    pub fn of(items: &'v [Value], merge_key: &'v str) -> Self {
        let table = (items.len() >= INDEXED).then(|| {
            let mut table = HashMap::with_capacity(items.len());
            for (at, item) in items.iter().enumerate() {
                if let Some(identity) = identity(item, merge_key) {
                    table.entry(identity).or_insert(at);
                }
            }
            table
        });
        Self { items, merge_key, table }
    }

    /// The first element with the identity of `item`.
    pub fn find(&self, item: &Value) -> Option<usize> {
        let wanted = identity(item, self.merge_key)?;
        match &self.table {
            Some(table) => table.get(wanted).copied(),
            None => {
                work::count(self.items.len());
                self.items.iter().position(|known| identity(known, self.merge_key) == Some(wanted))
            }
        }
    }
}

/// The elements of a list during a merge: it grows, and elements may lose their keys.
pub(super) struct Elements<'k> {
    items: Vec<Value>,
    merge_key: &'k str,
    /// For each key the indices of its elements, ascending.
    table: Option<HashMap<Value, VecDeque<usize>>>,
}

impl<'k> Elements<'k> {
    pub fn new(items: Vec<Value>, merge_key: &'k str) -> Self {
        let mut elements = Self { items: Vec::new(), merge_key, table: None };
        if items.len() < INDEXED {
            elements.items = items;
        } else {
            elements.table = Some(HashMap::with_capacity(items.len()));
            items.into_iter().for_each(|item| elements.push(item));
        }
        elements
    }

    /// The first element with this key.
    pub fn find(&self, key: &Value) -> Option<usize> {
        match &self.table {
            Some(table) => table.get(key)?.front().copied(),
            None => {
                work::count(self.items.len());
                self.items.iter().position(|item| item.get(self.merge_key) == Some(key))
            }
        }
    }

    pub fn get_mut(&mut self, at: usize) -> &mut Value {
        &mut self.items[at]
    }

    pub fn push(&mut self, item: Value) {
        if self.table.is_none() && self.items.len() + 1 >= INDEXED {
            self.table = Some(HashMap::new());
            std::mem::take(&mut self.items).into_iter().for_each(|item| self.push(item));
        }
        if let (Some(table), Some(key)) = (&mut self.table, item.get(self.merge_key)) {
            table.entry(key.clone()).or_default().push_back(self.items.len());
        }
        self.items.push(item);
    }

    /// Updates the table after the element at `at`, which had this key, was changed.
    pub fn changed(&mut self, at: usize, key: &Value) {
        let Some(table) = &mut self.table else { return };
        let now = self.items[at].get(self.merge_key);
        if now == Some(key) {
            return;
        }
        if let Some(places) = table.get_mut(key)
            && let Ok(found) = places.binary_search(&at)
        {
            places.remove(found);
        }
        if let Some(now) = now {
            let places = table.entry(now.clone()).or_default();
            let before = places.partition_point(|place| *place < at);
            places.insert(before, at);
        }
    }

    pub fn into_items(self) -> Vec<Value> {
        self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::json;

    /// Short and long lists, with duplicates, and with elements that have no key.
    fn lists() -> impl Iterator<Item = Vec<Value>> {
        [0, 1, INDEXED - 1, INDEXED, 200].into_iter().map(|length| {
            (0..length)
                .map(|n| match n % 5 {
                    4 => json!({"other": n}),
                    _ => json!({"name": format!("n{}", n * 31 % 37)}),
                })
                .collect()
        })
    }

    #[test]
    fn the_first_of_a_key_is_found() {
        for items in lists() {
            let (keyed, plain) = (Positions::of(&items, "name"), Positions::of(&items, ""));
            for n in 0..40 {
                let wanted = json!({"name": format!("n{n}"), "more": 1});
                let at = items.iter().position(|item| item.get("name") == wanted.get("name"));
                assert_eq!(keyed.find(&wanted), at);
                assert_eq!(plain.find(&wanted), None);
            }
            assert_eq!(keyed.find(&json!({"other": 4})), None);
            for item in &items {
                assert_eq!(plain.find(item), items.iter().position(|other| other == item));
            }
        }
    }

    #[test]
    fn elements_are_found_while_they_come_and_change() {
        for items in lists() {
            let mut model = items.clone();
            let mut elements = Elements::new(items, "name");
            for n in 0..60 {
                let key = Value::from(format!("n{}", n * 7 % 45));
                let at = model.iter().position(|item| item.get("name") == Some(&key));
                assert_eq!(elements.find(&key), at);
                match (at, n % 3) {
                    (Some(at), 0) => {
                        model[at] = json!({"gone": n});
                        *elements.get_mut(at) = json!({"gone": n});
                        elements.changed(at, &key);
                    }
                    (Some(at), 1) => {
                        let other = json!({"name": format!("n{}", n % 9)});
                        model[at] = other.clone();
                        *elements.get_mut(at) = other;
                        elements.changed(at, &key);
                    }
                    _ => {
                        model.push(json!({"name": key.clone()}));
                        elements.push(json!({"name": key}));
                    }
                }
            }
            assert_eq!(elements.into_items(), model);
        }
    }
}
