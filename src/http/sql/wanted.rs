//! The part of a kind's objects that a scan wants.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use rowplane_sql::Error as SqlError;

use crate::cache::{Objects, Range};
use crate::codec::object::Object;

/// Objects that are taken from a state at a time.
const CHUNK: usize = 256;

/// Objects one after the other.
pub type Found = Box<dyn Iterator<Item = Result<Arc<Object>, SqlError>> + Send>;

/// The part of a resource that a lookup wants.
#[derive(Default)]
pub struct Wanted {
    /// Namespaces and names of single objects.
    pub keys: VecDeque<(String, String)>,
    /// Namespaces; `None` for all of them.
    pub namespaces: VecDeque<Option<String>>,
}

impl Wanted {
    /// Objects of some names in some namespaces.
    pub fn keys(namespaces: BTreeSet<String>, names: &BTreeSet<String>) -> Self {
        let of = |namespace: &String| names.iter().map(|name| (namespace.clone(), name.clone())).collect();
        Self { keys: namespaces.iter().flat_map(|one| -> Vec<_> { of(one) }).collect(), ..Self::default() }
    }

    /// All objects of some namespaces; `None` for all of them.
    pub fn ranges(namespaces: Option<BTreeSet<String>>) -> Self {
        let namespaces = match namespaces {
            Some(namespaces) => namespaces.into_iter().map(Some).collect(),
            None => [None].into(),
        };
        Self { namespaces, ..Self::default() }
    }

    /// The wanted objects of a state.
    pub fn of(mut self, objects: Objects) -> impl Iterator<Item = Result<Arc<Object>, SqlError>> + Send {
        let mut range: Option<Range> = None;
        let mut chunk: VecDeque<Arc<Object>> = VecDeque::new();
        std::iter::from_fn(move || {
            while let Some((namespace, name)) = self.keys.pop_front() {
                if let Some(object) = objects.get(&namespace, &name) {
                    return Some(Ok(object));
                }
            }
            while chunk.is_empty() {
                let next = match range.take() {
                    Some(range) => range,
                    None => Range::of(self.namespaces.pop_front()?.as_deref()),
                };
                chunk.extend(objects.range(&next).take(CHUNK).cloned());
                if let Some(last) = chunk.back().filter(|_| chunk.len() == CHUNK) {
                    range = Some(next.after_key(last.key()));
                }
            }
            chunk.pop_front().map(Ok)
        })
    }
}
