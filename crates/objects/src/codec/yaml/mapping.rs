//! A mapping while its members come: keys of all types, merge keys, and keys that come twice.

use std::collections::HashSet;

use super::node::{Form, KeyType, Node, Origin};
use super::resolve;
use crate::gotext;
use crate::tree::{Map, Text, Value};

/// The key whose value comes next.
enum Due {
    Member(Text, KeyType),
    Merge,
    /// A key that JSON does not know; it is told when the value is there.
    Unsupported(String),
}

#[derive(Default)]
pub(super) struct Mapping {
    members: Map,
    /// One for each member.
    origins: Vec<Origin>,
    /// The keys of `origins`, once one has come twice.
    seen: Option<HashSet<(Text, KeyType)>>,
    due: Option<Due>,
}

/// The keys that came twice, in go-yaml's words. All are counted; not all are told.
#[derive(Default)]
pub(super) struct Repetitions {
    found: Vec<String>,
    bytes: usize,
    untold: usize,
}

impl Repetitions {
    /// How many are told at most, and after how many bytes of text no more are.
    const TOLD_MAX: usize = 256;
    const BYTES_MAX: usize = 256 * 1024;

    pub fn len(&self) -> usize {
        self.found.len()
    }

    pub fn since(&self, told: usize) -> Vec<String> {
        self.found[told..].to_vec()
    }

    pub fn again(&mut self, found: Vec<String>) {
        found.into_iter().for_each(|text| self.tell(text));
    }

    fn tell(&mut self, text: String) {
        if self.found.len() >= Self::TOLD_MAX || self.bytes >= Self::BYTES_MAX {
            self.untold += 1;
        } else {
            self.bytes += text.len();
            self.found.push(text);
        }
    }

    pub fn told(mut self) -> Vec<String> {
        if self.untold > 0 {
            self.found.push(format!("and {} more", self.untold));
        }
        self.found
    }
}

impl Mapping {
    pub fn awaits_key(&self) -> bool {
        self.due.is_none()
    }

    pub fn is_merging(&self) -> bool {
        matches!(self.due, Some(Due::Merge))
    }

    pub fn end(self) -> (Value, Vec<Origin>) {
        (Value::Object(self.members), self.origins)
    }

    /// Takes in a key, or the value of the key before.
    pub fn add(
        &mut self,
        node: Node,
        repetitions: &mut Repetitions,
        unsupported: &mut Option<String>,
    ) -> Result<(), String> {
        match self.due.take() {
            None => self.due = Some(due(&node)?),
            Some(Due::Member(key, of)) => {
                self.put(Origin { key, of, line: node.line }, node.value, repetitions);
            }
            Some(Due::Merge) => self.merge(node, repetitions)?,
            Some(Due::Unsupported(key)) => {
                let value = resolve::go_syntax(&node.value, true);
                unsupported
                    .get_or_insert_with(|| format!("unsupported map key of type: {key}, value: {value}"));
            }
        }
        Ok(())
    }

    fn put(&mut self, origin: Origin, value: Value, repetitions: &mut Repetitions) {
        let Some(place) = self.members.get_mut(&origin.key) else {
            if let Some(seen) = &mut self.seen {
                seen.insert((origin.key.clone(), origin.of));
            }
            self.members.insert(origin.key.clone(), value);
            self.origins.push(origin);
            return;
        };
        *place = value;
        let origins = &self.origins;
        let seen =
            self.seen.get_or_insert_with(|| origins.iter().map(|each| (each.key.clone(), each.of)).collect());
        if !seen.insert((origin.key.clone(), origin.of)) {
            let key =
                if origin.of == KeyType::Text { gotext::quote(&origin.key) } else { origin.key.to_string() };
            repetitions.tell(format!("line {}: key {key} already set in map", origin.line));
        }
    }

    /// Merges another mapping, or several, of which the first counts most.
    fn merge(&mut self, node: Node, repetitions: &mut Repetitions) -> Result<(), String> {
        const WRONG: &str = "yaml: map merge requires map or sequence of maps as the value";
        match (node.value, node.form) {
            (Value::Object(merged), Form::Mapping { members }) => self.put_all(members, merged, repetitions),
            (Value::Array(items), Form::Sequence { members, is_alias: false }) => {
                for (item, members) in items.into_iter().zip(members).rev() {
                    let Value::Object(merged) = item else { return Err(WRONG.to_owned()) };
                    self.put_all(members, merged, repetitions);
                }
            }
            _ => return Err(WRONG.to_owned()),
        }
        Ok(())
    }

    fn put_all(&mut self, origins: Vec<Origin>, members: Map, repetitions: &mut Repetitions) {
        for (origin, (_, value)) in origins.into_iter().zip(members) {
            self.put(origin, value, repetitions);
        }
    }
}

/// A key as JSON's.
fn due(node: &Node) -> Result<Due, String> {
    Ok(match (&node.value, &node.form) {
        (_, Form::Merge) => Due::Merge,
        (Value::String(text), _) => Due::Member(text.clone(), KeyType::Text),
        (_, Form::Float(value)) => Due::Member(resolve::float_key(*value).into(), KeyType::Float),
        (Value::Number(number), _) if number.is_i64() => Due::Member(number.to_string().into(), KeyType::Int),
        (Value::Number(_), _) => {
            Due::Unsupported(format!("uint64, key: {}", resolve::go_syntax(&node.value, true)))
        }
        (Value::Bool(value), _) => Due::Member(value.to_string().into(), KeyType::Bool),
        (Value::Null, _) => Due::Unsupported("%!s(<nil>), key: <nil>".to_owned()),
        (Value::Array(_) | Value::Object(_), _) => {
            return Err(format!("yaml: invalid map key: {}", resolve::go_syntax(&node.value, true)));
        }
    })
}
