//! An object as its members are looked up.

use std::borrow::Cow;
use std::ops::Range;

use crate::json::scan::{Members, key_is, member, raw_string};
use crate::tree::{Map, Text, Value};

/// An object as its members are looked up: where it is served as it is stored, nothing is parsed but what is looked at.
#[derive(Debug)]
pub enum Seen<'o> {
    Json(&'o [u8]),
    Decoded(&'o Map),
}

/// The members of an object that are looked at.
#[derive(Debug, Default)]
pub struct Wanted {
    /// Whether all of the value is looked at.
    all: bool,
    members: Vec<(Text, Wanted)>,
}

impl Wanted {
    pub fn everything() -> Self {
        Self { all: true, members: Vec::new() }
    }

    /// Adds the value at a path.
    pub fn add(&mut self, path: &[Text]) {
        let Some((first, rest)) = path.split_first() else {
            self.all = true;
            return;
        };
        let at = self.members.iter().position(|(name, _)| name == first).unwrap_or_else(|| {
            self.members.push((first.clone(), Self::default()));
            self.members.len() - 1
        });
        self.members[at].1.add(rest);
    }
}

impl<'o> Seen<'o> {
    /// The text of the scalar at a path; `None` if there is none.
    pub fn scalar(&self, path: &[Text]) -> Option<Cow<'o, str>> {
        match self {
            Self::Json(json) => {
                let at = path.iter().try_fold(0..json.len(), |at, name| member(json, at.start, name))?;
                scalar_text(json, &at)
            }
            Self::Decoded(object) => {
                let (first, rest) = path.split_first()?;
                match rest.iter().try_fold(object.get(first)?, |value, name| value.get(name))? {
                    Value::String(text) => Some(Cow::Borrowed(text)),
                    value @ (Value::Bool(_) | Value::Number(_)) => Some(value.to_string().into()),
                    Value::Null | Value::Array(_) | Value::Object(_) => None,
                }
            }
        }
    }

    /// The object with those of its members that are wanted. `None` if its text cannot be parsed.
    pub fn members(&self, wanted: &Wanted) -> Option<Cow<'o, Map>> {
        match self {
            Self::Decoded(object) => Some(Cow::Borrowed(object)),
            Self::Json(json) if wanted.all => serde_json::from_slice(json).ok().map(Cow::Owned),
            Self::Json(json) => of_members(json, 0, wanted).map(Cow::Owned),
        }
    }
}

fn scalar_text<'o>(json: &'o [u8], at: &Range<usize>) -> Option<Cow<'o, str>> {
    match json.get(at.start)? {
        b'"' => match raw_string(json, at)? {
            raw if raw.contains('\\') => {
                serde_json::from_slice::<String>(&json[at.clone()]).ok().map(Cow::Owned)
            }
            raw => Some(Cow::Borrowed(raw)),
        },
        b'{' | b'[' | b'n' => None,
        _ => std::str::from_utf8(&json[at.clone()]).ok().map(Cow::Borrowed),
    }
}

/// Recurses as deep as paths are long.
fn of_members(json: &[u8], at: usize, wanted: &Wanted) -> Option<Map> {
    let mut members = Members::new(json, at)?;
    let mut found = Map::with_capacity(wanted.members.len());
    while found.len() < wanted.members.len()
        && let Some(key) = members.key()?
    {
        let value = members.value()?;
        let Some((name, inner)) = wanted.members.iter().find(|(name, _)| key_is(json, &key, name)) else {
            continue;
        };
        let is_object = json.get(value.start) == Some(&b'{');
        let value = match inner.all || !is_object {
            true => serde_json::from_slice(&json[value]).ok()?,
            false => Value::Object(of_members(json, value.start, inner)?),
        };
        found.push(name.clone(), value);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Vec<Text> {
        text.split('.').map(Into::into).collect()
    }

    #[test]
    fn only_what_is_wanted_is_parsed() {
        let json = br#"{"kind":"K","metadata":{"name":"a","labels":{"x":"y"}},"spec":{"n":3,"on":true,"s":"a\"b","no":null}}"#;
        let whole: Map = serde_json::from_slice(json).expect("JSON");
        for seen in [Seen::Json(json), Seen::Decoded(&whole)] {
            for (at, text) in [
                ("spec.n", Some("3")),
                ("spec.on", Some("true")),
                ("spec.s", Some("a\"b")),
                ("spec.no", None),
                ("spec", None),
                ("metadata.labels.x", Some("y")),
                ("status.x", None),
            ] {
                assert_eq!(seen.scalar(&path(at)).as_deref(), text, "{at}");
            }
        }
        let mut wanted = Wanted::default();
        for at in ["spec.n", "metadata.labels", "status.x"] {
            wanted.add(&path(at));
        }
        let found = Seen::Json(json).members(&wanted).expect("members").into_owned();
        let text = serde_json::to_string(&found).expect("JSON");
        assert_eq!(text, r#"{"metadata":{"labels":{"x":"y"}},"spec":{"n":3}}"#);
        let all = Seen::Json(json).members(&Wanted::everything()).expect("members").into_owned();
        assert_eq!(all, whole);
    }
}
