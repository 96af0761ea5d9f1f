//! When a new token key is due and which old ones still verify; the same rule for both databases.

use super::TokenKey;

/// Old keys verify for so many lifetimes of a key: longer than any token can be of use.
const LIFETIMES_KEPT: i64 = 3;
const SECRET_BYTES: usize = 32;

/// The keys after a rotation, newest first.
pub struct Rotation {
    pub keys: Vec<TokenKey>,
    /// The key that has to be stored, if one was due; it is also the first of `keys`.
    pub added: Option<TokenKey>,
}

impl Rotation {
    /// Keys with a smaller id are to be dropped.
    pub fn oldest(&self) -> u32 {
        self.keys.last().map_or(0, |key| key.id)
    }
}

/// `rows` are (id, created_at, secret), newest first; times in seconds.
pub fn rotate(rows: Vec<(i64, i64, Vec<u8>)>, now: i64, max_age: i64) -> Rotation {
    // Ids are never used twice, or a token of a dropped key could be tried against a younger one.
    let newest_id = rows.first().map_or(0, |(id, ..)| *id as u32);
    let mut keys: Vec<TokenKey> = rows
        .into_iter()
        .map(|(id, created_at, secret)| TokenKey { id: id as u32, created_at, secret })
        .filter(|key| now - key.created_at < LIFETIMES_KEPT * max_age)
        .collect();
    let due = keys.first().is_none_or(|newest| now - newest.created_at >= max_age);
    let added = due.then(|| TokenKey {
        id: newest_id + 1,
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
        let first = rotate(Vec::new(), 1000, 10);
        assert_eq!(first.keys.len(), 1);
        let row = |key: &TokenKey| (i64::from(key.id), key.created_at, key.secret.clone());
        let kept = rotate(first.keys.iter().map(row).collect(), 1009, 10);
        assert!(kept.added.is_none());
        let second = rotate(first.keys.iter().map(row).collect(), 1010, 10);
        assert_eq!(second.keys.iter().map(|key| key.id).collect::<Vec<_>>(), [2, 1]);
        let third = rotate(second.keys.iter().map(row).collect(), 1030, 10);
        assert_eq!(third.keys.iter().map(|key| key.id).collect::<Vec<_>>(), [3, 2]);
    }
}
