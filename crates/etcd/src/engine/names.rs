//! Keys as names of rows. A name is text in which both databases keep the order of the key's bytes: 0x02 to 0x7f
//! stand for themselves, 0x80 to 0xff are the characters of these numbers, and 0x00 and 0x01 are pairs, since
//! PostgreSQL has no text with NUL.

use bytes::Bytes;

use super::Error;

/// The longest name, in bytes: an entry of PostgreSQL's index has to hold it.
const LONGEST: usize = 2048;
/// The first character of a pair.
const PAIR: char = '\u{1}';

/// The name of a key, or [`Error::TooLarge`].
pub fn checked_name(key: &[u8]) -> Result<String, Error> {
    let name = name(key);
    if name.len() > LONGEST { Err(Error::TooLarge) } else { Ok(name) }
}

/// The name of a key, or of the end of a range.
pub fn name(key: &[u8]) -> String {
    let mut name = String::with_capacity(key.len());
    for byte in key {
        match byte {
            0 => name.extend([PAIR, '\u{1}']),
            1 => name.extend([PAIR, '\u{2}']),
            other => name.push(char::from(*other)),
        }
    }
    name
}

/// A name behind those of all keys that are less than this one, and before its own; `None` if there are none.
pub fn before(key: &[u8]) -> Option<String> {
    let (last, rest) = key.split_last()?;
    let mut before = name(rest);
    // The keys before it that begin like it go on with a lesser byte.
    if let Some(lesser) = last.checked_sub(1) {
        before.push_str(&name(&[lesser]));
        before.push(char::MAX);
    }
    Some(before)
}

/// The key of a name; `None` if no key has this name.
pub fn key(name: &str) -> Option<Bytes> {
    let mut key = Vec::with_capacity(name.len());
    let mut characters = name.chars();
    while let Some(character) = characters.next() {
        key.push(match character {
            PAIR => match characters.next()? {
                '\u{1}' => 0,
                '\u{2}' => 1,
                _ => return None,
            },
            '\0' => return None,
            other => u8::try_from(u32::from(other)).ok()?,
        });
    }
    Some(key.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_sorted_as_keys_are() {
        let mut keys: Vec<Vec<u8>> = (0..=255_u8).map(|byte| vec![byte]).collect();
        keys.extend((0..=255_u8).map(|byte| vec![b'a', byte, 0, 255 - byte]));
        keys.extend([vec![], vec![0, 0], vec![0, 1], vec![1, 0], vec![0, 2], vec![b'a'], vec![255; 9]]);
        keys.sort();
        let names: Vec<String> = keys.iter().map(|key| name(key)).collect();
        assert!(names.is_sorted_by(|one, other| one.as_bytes() <= other.as_bytes()));
        assert!(names.iter().all(|name| !name.contains('\0')));
        for (bytes, name) in keys.iter().zip(&names) {
            assert_eq!(key(name).as_deref(), Some(&**bytes));
        }
    }

    #[test]
    fn what_is_before_a_key_is_behind_all_lesser_ones() {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        for one in [0, 1, 2, 3, 0x7f, 0x80, 0xfe, 0xff] {
            keys.push(vec![one]);
            keys.extend([0, 1, 2, 0x7f, 0x80, 0xff].map(|other| vec![one, other]));
        }
        keys.sort();
        for key in &keys {
            let before = before(key).expect("there are lesser keys");
            for other in &keys {
                assert_eq!(name(other) > before, other >= key, "{other:?} and {key:?}");
            }
        }
        assert_eq!(before(b""), None);
    }

    #[test]
    fn what_is_no_name_has_no_key() {
        for name in ["\u{1}", "\u{1}\u{3}", "\0", "\u{100}"] {
            assert_eq!(key(name), None, "{name:?}");
        }
    }

    #[test]
    fn a_name_fits_an_index() {
        assert!(checked_name(&[b'k'; LONGEST]).is_ok());
        assert_eq!(checked_name(&[b'k'; LONGEST + 1]), Err(Error::TooLarge));
        assert_eq!(checked_name(&[0xff; LONGEST / 2 + 1]), Err(Error::TooLarge));
    }
}
