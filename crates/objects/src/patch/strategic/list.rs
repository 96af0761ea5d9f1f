//! Merging a list of the patch into the list of the object.

use std::collections::HashSet;

use super::interleave::{Sides, interleave};
use super::lookup::{FieldMerge, Shape};
use super::positions::{Elements, Positions};
use super::{DIRECTIVE, merge_objects, unknown_directive};
use crate::gotext;
use crate::patch::PatchError;
use crate::schema::types::Types;
use crate::tree::{Map, Value};

/// How a list and its elements are merged.
#[derive(Clone, Copy)]
pub(super) struct ListPatch<'a> {
    strategy: &'a str,
    /// Empty for lists of scalars, and for lists that are replaced.
    pub merge_key: &'a str,
    element: Shape<'a>,
    types: &'a Types,
}

impl<'a> ListPatch<'a> {
    pub fn of(found: FieldMerge<'a>, types: &'a Types) -> Result<Self, PatchError> {
        let (strategy, merge_key) = (found.strategy()?, found.merge_key());
        Ok(Self { strategy, merge_key, element: found.shape, types })
    }

    pub fn merge(&self, original: Vec<Value>, patch: Vec<Value>) -> Result<Vec<Value>, PatchError> {
        if self.strategy != "merge" {
            return Ok(patch);
        }
        self.unite(original, patch)
    }

    fn unite(&self, original: Vec<Value>, patch: Vec<Value>) -> Result<Vec<Value>, PatchError> {
        if original.is_empty() && patch.is_empty() {
            return Ok(original);
        }
        if element_kind(&[&original, &patch])? != "object" {
            let named = patch.clone();
            let live = original.clone();
            return Ok(self.ordered(without_repeats(original, patch), &named, &live));
        }
        if self.merge_key.is_empty() {
            let kind = self.element.kind_name();
            return Err(PatchError::Failed(format!("cannot merge lists without merge key for {kind}")));
        }
        let (original, patch) = self.act_on_directives(original, patch)?;
        let live = original.clone();
        let merged = self.merge_elements(original, &patch)?;
        for element in &live {
            self.key_of(element)?;
        }
        Ok(self.ordered(merged, &patch, &live))
    }

    /// The elements that are not in `values`.
    pub fn delete(&self, original: Vec<Value>, values: Vec<Value>) -> Result<Vec<Value>, PatchError> {
        if original.is_empty() && values.is_empty() {
            return Ok(original);
        }
        // For objects, upstream merges the values instead.
        if element_kind(&[&original, &values])? == "object" {
            return self.unite(original, values);
        }
        let deleted = Positions::of(&values, "");
        Ok(original.into_iter().filter(|value| deleted.find(value).is_none()).collect())
    }

    fn ordered(&self, merged: Vec<Value>, named: &[Value], live: &[Value]) -> Vec<Value> {
        interleave(Sides::split(merged, named, self.merge_key), named, live, self.merge_key)
    }

    /// Carries out the directives in a list: an element with `$patch` deletes the element with its key, or replaces all
    /// elements.
    fn act_on_directives(
        &self,
        mut original: Vec<Value>,
        patch: Vec<Value>,
    ) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
        let mut replaces = false;
        let mut elements = Vec::with_capacity(patch.len());
        let mut deleted = Vec::new();
        for item in patch {
            let Some(directive) = item.get(DIRECTIVE) else {
                elements.push(item);
                continue;
            };
            match directive.as_str() {
                Some("delete") => {
                    self.key_of(&item)?;
                    deleted.push(item);
                }
                Some("replace") => replaces = true,
                Some("merge") => {
                    let text = "merging lists cannot yet be specified in the patch";
                    return Err(PatchError::Failed(text.to_owned()));
                }
                _ => return Err(unknown_directive(directive, item.as_object().unwrap_or(&Map::new()))),
            }
        }
        if !deleted.is_empty() {
            let deleted = Positions::of(&deleted, self.merge_key);
            original.retain(|element| deleted.find(element).is_none());
        }
        Ok(if replaces { (elements, Vec::new()) } else { (original, elements) })
    }

    fn merge_elements(&self, original: Vec<Value>, patch: &[Value]) -> Result<Vec<Value>, PatchError> {
        let mut elements = Elements::new(original, self.merge_key);
        for item in patch {
            let key = self.key_of(item)?;
            let found = elements.find(key).map(|at| (at, elements.get_mut(at)));
            match (found, item) {
                (Some((at, Value::Object(element))), Value::Object(item)) => {
                    let merged =
                        merge_objects(std::mem::take(element), item.clone(), self.element, self.types)?;
                    *element = merged;
                    elements.changed(at, key);
                }
                _ => elements.push(item.clone()),
            }
        }
        Ok(elements.into_items())
    }

    fn key_of<'v>(&self, element: &'v Value) -> Result<&'v Value, PatchError> {
        element.get(self.merge_key).ok_or_else(|| {
            PatchError::Failed(format!(
                "map: {} does not contain declared merge key: {}",
                gotext::display(element),
                self.merge_key
            ))
        })
    }
}

/// The JSON type of all elements, which must be the same, and not a list.
pub(super) fn element_kind(lists: &[&[Value]]) -> Result<&'static str, PatchError> {
    let mut kinds = lists.iter().flat_map(|list| list.iter()).map(gotext::json_kind);
    let Some(first) = kinds.next() else {
        return Err(PatchError::Failed("no elements in any of the given slices".to_owned()));
    };
    if first == "array" {
        return Err(PatchError::DoesNotApply("lists of lists cannot be merged".to_owned()));
    }
    if kinds.any(|kind| kind != first) {
        let lists: Vec<String> =
            lists.iter().map(|list| gotext::display(&Value::Array(list.to_vec()))).collect();
        let text = format!("list element types are not identical: [{}]", lists.join(" "));
        return Err(PatchError::Failed(text));
    }
    Ok(first)
}

fn without_repeats(original: Vec<Value>, patch: Vec<Value>) -> Vec<Value> {
    let all: Vec<Value> = original.into_iter().chain(patch).collect();
    let mut seen = HashSet::with_capacity(all.len());
    let first: Vec<bool> = all.iter().map(|value| seen.insert(value)).collect();
    all.into_iter().zip(first).filter_map(|(value, first)| first.then_some(value)).collect()
}
