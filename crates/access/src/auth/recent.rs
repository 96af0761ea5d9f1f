//! A map of bounded size that forgets what was not used lately.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::mem;
use std::sync::{Mutex, PoisonError};

/// Two generations of entries: when the younger one is full, the older one is forgotten. What is used stays in the
/// younger one.
pub struct Recent<K, V> {
    /// The most entries of a generation.
    most: usize,
    generations: Mutex<[HashMap<K, V>; 2]>,
}

impl<K: Hash + Eq, V: Clone> Recent<K, V> {
    pub fn new(most: usize) -> Self {
        Self { most, generations: Mutex::new([HashMap::new(), HashMap::new()]) }
    }

    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        let [younger, older] = &mut *generations;
        if let Some(found) = younger.get(key) {
            return Some(found.clone());
        }
        let (key, found) = older.remove_entry(key)?;
        self.insert(&mut generations, key, found.clone());
        Some(found)
    }

    pub fn put(&self, key: K, value: V) {
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        self.insert(&mut generations, key, value);
    }

    fn insert(&self, [younger, older]: &mut [HashMap<K, V>; 2], key: K, value: V) {
        if younger.len() >= self.most {
            *older = mem::take(younger);
        }
        younger.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_goes() {
        let recent = Recent::new(10);
        recent.put(0, "kept");
        for number in 1..1000 {
            recent.put(number, "other");
            assert_eq!(recent.get(&0), Some("kept"));
        }
        assert_eq!((recent.get(&999), recent.get(&900)), (Some("other"), None));
        let generations = recent.generations.lock().unwrap();
        assert!(generations.iter().map(HashMap::len).sum::<usize>() <= 20);
    }
}
