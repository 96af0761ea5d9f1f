//! Changes of many members of one object.

use std::mem::take;

use super::Map;
use crate::tree::{Text, Value, work};

/// An object that is being edited. A removed member leaves a hole that lookups skip; the end of the edit closes all
/// holes in one pass. The members keep the order that single removals would leave.
pub struct Edit<'m> {
    map: &'m mut Map,
    /// The indices of removed members; used only if the object has a table.
    holes: Vec<usize>,
}

impl<'m> Edit<'m> {
    pub(super) fn new(map: &'m mut Map) -> Self {
        Self { map, holes: Vec::new() }
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.map.get_mut(name)
    }

    pub fn insert(&mut self, name: impl Into<Text>, value: Value) {
        self.map.insert(name, value);
    }

    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let Some(places) = &mut self.map.places else { return self.map.shift_remove(name) };
        let at = places.0.remove(name)?;
        self.holes.push(at);
        Some(self.map.members[at].1.take())
    }
}

impl Drop for Edit<'_> {
    fn drop(&mut self) {
        if self.holes.is_empty() {
            return;
        }
        let mut holes = take(&mut self.holes);
        holes.sort_unstable();
        let Map { members, places } = &mut *self.map;
        work::count(members.len());
        let (mut at, mut closed) = (0, 0);
        members.retain(|_| {
            let is_hole = holes.get(closed) == Some(&at);
            closed += usize::from(is_hole);
            at += 1;
            !is_hole
        });
        for place in places.iter_mut().flat_map(|places| places.0.values_mut()) {
            *place -= holes.partition_point(|hole| *hole < *place);
        }
    }
}
