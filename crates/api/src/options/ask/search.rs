//! `rowplane.search`: objects with a text in their name, a label, an annotation or another string, whatever the case of
//! ASCII letters.

use memchr::memchr2;

use crate::json::scan::{Members, key_is, run};

/// Bytes by how often they are in the JSON of objects, those that are often first.
const OFTEN: &[u8] = b"\"eatnrsio:lmdpc,u-fgkhy/.0vbwTSP1{}";

/// A text that is looked for.
#[derive(Debug)]
pub struct Search {
    /// In lower case.
    text: Vec<u8>,
    /// The part of the text that JSON never escapes, and the place of its rarest byte; empty if there is none.
    plain: Vec<u8>,
    rarest: usize,
}

/// Whether the names of members count as strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    Looked,
    Skipped,
}

impl Search {
    pub fn new(text: &str) -> Self {
        let text = text.to_ascii_lowercase().into_bytes();
        let is_plain = |byte: &u8| (b' '..=b'~').contains(byte) && !b"\"\\<>&".contains(byte);
        let parts = text.split(|byte| !is_plain(byte));
        let plain = parts.max_by_key(|part| part.len()).unwrap_or_default().to_vec();
        let how_often = |byte: &u8| OFTEN.iter().position(|often| often == byte).unwrap_or(OFTEN.len());
        let rarest = (0..plain.len()).max_by_key(|at| how_often(&plain[*at])).unwrap_or_default();
        Self { text, plain, rarest }
    }

    /// Whether the text is in the strings of an object. Its kind, its version and its managers do not count.
    pub fn is_in(&self, json: &[u8]) -> bool {
        self.may_be_in(json) && self.is_in_members(json).unwrap_or(false)
    }

    /// Looks at the bytes as they are, which is fast: few objects have them anywhere.
    fn may_be_in(&self, json: &[u8]) -> bool {
        find(json, &self.plain, self.rarest)
    }

    fn is_in_members(&self, json: &[u8]) -> Option<bool> {
        let mut members = Members::new(json, 0)?;
        while let Some(member) = members.step()? {
            let is_of_kind = ["kind", "apiVersion"].iter().any(|name| key_is(json, &member.key, name));
            let is_found = match key_is(json, &member.key, "metadata") {
                true => self.is_in_metadata(json, member.value.start)?,
                false => !is_of_kind && self.is_in_strings(&json[member.value], Keys::Skipped),
            };
            if is_found {
                return Some(true);
            }
        }
        Some(false)
    }

    fn is_in_metadata(&self, json: &[u8], at: usize) -> Option<bool> {
        let mut members = Members::new(json, at)?;
        while let Some(member) = members.step()? {
            let is = |name: &str| key_is(json, &member.key, name);
            let keys = if is("labels") || is("annotations") { Keys::Looked } else { Keys::Skipped };
            if !is("managedFields") && self.is_in_strings(&json[member.value.clone()], keys) {
                return Some(true);
            }
        }
        Some(false)
    }

    fn is_in_strings(&self, json: &[u8], keys: Keys) -> bool {
        let mut at = 0;
        while let Some(begin) =
            json.get(at..).and_then(|rest| memchr::memchr(b'"', rest)).map(|found| at + found)
        {
            let Some(end) = end_of_string(json, begin) else { return false };
            // Stored JSON has no blanks, and a colon behind a string says that it was a name.
            let is_key = json.get(end) == Some(&b':');
            if !(is_key && keys == Keys::Skipped) && self.is_in_string(&json[begin..end]) {
                return true;
            }
            at = end;
        }
        false
    }

    /// A string with its quotes.
    fn is_in_string(&self, quoted: &[u8]) -> bool {
        if !quoted.contains(&b'\\') {
            let rarest = 0;
            return find(&quoted[1..quoted.len() - 1], &self.text, rarest);
        }
        serde_json::from_slice::<String>(quoted).is_ok_and(|text| find(text.as_bytes(), &self.text, 0))
    }
}

/// Whether a text in lower case is in other text. The byte at `rarest` is looked for first.
fn find(text: &[u8], wanted: &[u8], rarest: usize) -> bool {
    let Some(byte) = wanted.get(rarest) else { return true };
    let mut at = rarest;
    while let Some(found) = text.get(at..).and_then(|rest| memchr2(*byte, byte.to_ascii_uppercase(), rest)) {
        at += found;
        let begin = at - rarest;
        match text.get(begin..begin + wanted.len()) {
            Some(here) if here.eq_ignore_ascii_case(wanted) => return true,
            Some(_) => at += 1,
            None => return false,
        }
    }
    false
}

fn end_of_string(json: &[u8], begin: usize) -> Option<usize> {
    let mut at = begin + 1;
    loop {
        at = run(json, at);
        match json.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_looked_at_and_names_of_members_are_not() {
        let json = br#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"Web-1","labels":{"tier":"front"},
            "managedFields":[{"manager":"helm"}]},"spec":{"containers":[{"image":"r/App:v1.2","args":["a\"b<c"]}]}}"#;
        let json: Vec<u8> = json.iter().copied().filter(|byte| !b" \n".contains(byte)).collect();
        for found in ["web-1", "TIER", "front", "app:V1.2", "a\"B", "\"b<", "b\\u003c"] {
            let is_wanted = found != "b\\u003c";
            assert_eq!(Search::new(found).is_in(&json), is_wanted, "{found}");
        }
        for missing in ["pod", "v1\"", "helm", "image", "containers", "app:v1.3", "nothing", "\n"] {
            assert!(!Search::new(missing).is_in(&json), "{missing}");
        }
        assert!(Search::new("a<b").is_in(br#"{"data":{"x":"A\u003cB"}}"#));
        assert!(Search::new("").is_in(br#"{"data":{"x":""}}"#));
    }
}
