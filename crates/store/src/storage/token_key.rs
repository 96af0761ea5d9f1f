//! When a new token key is due, and which old keys still verify. Both databases use this rule.
//!
//! The newest key is kept whatever its age: others sign with it, and a server whose clock is ahead must not take it from them.

use super::TokenKey;

/// For how many lifetimes of a key an old key still verifies: longer than any token can be useful.
const LIFETIMES_KEPT: i64 = 3;
const SECRET_BYTES: usize = 32;

/// The keys after a rotation, newest first.
pub struct Rotation {
    pub keys: Vec<TokenKey>,
    /// The key to store, if a new one was due. It is also the first of `keys`.
    pub added: Option<TokenKey>,
}

impl Rotation {
    /// The smallest id that is kept; keys with smaller ids must be deleted.
    pub fn oldest(&self) -> u32 {
        self.keys.last().map_or(0, |key| key.id)
    }
}

/// Rotates the keys. `rows` are (id, created_at, secret), newest first; times are in seconds. `timeline` counts the failovers
/// of the database, 0 where it has none.
pub fn rotate(rows: Vec<(i64, i64, Vec<u8>)>, timeline: u32, now: i64, max_age: i64) -> Rotation {
    // Ids are never reused. Otherwise a token of a deleted key could be verified with a younger key. A failover may take back a
    // key that has signed tokens: the next one gets another id, since the timeline is another one. Servers that rotate at once
    // choose the same id, by which the database sees that they do.
    let newest_id = rows.first().map_or(0, |(id, ..)| *id as u32);
    let mut keys: Vec<TokenKey> = rows
        .into_iter()
        .map(|(id, created_at, secret)| TokenKey { id: id as u32, created_at, secret })
        .enumerate()
        .filter(|(place, key)| *place == 0 || now - key.created_at < LIFETIMES_KEPT * max_age)
        .map(|(_, key)| key)
        .collect();
    let due = keys.first().is_none_or(|newest| now - newest.created_at >= max_age);
    #[expect(clippy::disallowed_methods, reason = "a secret")]
    let added = due.then(|| TokenKey {
        id: newest_id.saturating_add(1).saturating_add(timeline),
        created_at: now,
        secret: rand::random::<[u8; SECRET_BYTES]>().to_vec(),
    });
    if let Some(key) = &added {
        keys.insert(0, key.clone());
    }
    Rotation { keys, added }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_overlap_and_expire() {
        let first = rotate(Vec::new(), 0, 1000, 10);
        assert_eq!(first.keys.len(), 1);
        let row = |key: &TokenKey| (i64::from(key.id), key.created_at, key.secret.clone());
        let kept = rotate(first.keys.iter().map(row).collect(), 0, 1009, 10);
        assert!(kept.added.is_none());
        let second = rotate(first.keys.iter().map(row).collect(), 0, 1010, 10);
        assert_eq!(second.keys.iter().map(|key| key.created_at).collect::<Vec<_>>(), [1010, 1000]);
        let third = rotate(second.keys.iter().map(row).collect(), 0, 1030, 10);
        assert_eq!(third.keys.iter().map(|key| key.created_at).collect::<Vec<_>>(), [1030, 1010]);
        assert!(third.keys.is_sorted_by(|newer, older| newer.id > older.id));
    }

    #[test]
    fn a_clock_that_is_ahead_leaves_others_the_key_that_they_use() {
        let rows = vec![(2, 1010, vec![2]), (1, 1000, vec![1])];
        let ahead = rotate(rows, 0, 5000, 10);
        assert_eq!(ahead.keys.iter().map(|key| key.id).collect::<Vec<_>>(), [3, 2]);
        assert_eq!(ahead.oldest(), 2);
    }

    #[test]
    fn a_key_that_was_taken_back_has_its_id_alone() {
        let id = |timeline| rotate(vec![(1, 0, Vec::new())], timeline, 10, 10).keys[0].id;
        assert_eq!((id(0), id(1), id(1), id(2)), (2, 3, 3, 4));
    }
}
