//! Lists on both sides.

use super::lookup::{Found, Shape};
use super::order::{self, Sides};
use super::{DIRECTIVE, merge_objects, unknown_directive};
use crate::gotext;
use crate::patch::PatchError;
use crate::schema::types::Types;
use crate::tree::{Map, Value};

/// What a list says of itself and of its elements.
#[derive(Clone, Copy)]
pub(super) struct ListPatch<'a> {
    strategy: &'a str,
    /// Empty for lists of scalars, and for all that are replaced.
    pub merge_key: &'a str,
    element: Shape<'a>,
    types: &'a Types,
}

impl<'a> ListPatch<'a> {
    pub fn of(found: Found<'a>, types: &'a Types) -> Result<Self, PatchError> {
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

    /// The elements that are not among `values`.
    pub fn delete(&self, original: Vec<Value>, values: Vec<Value>) -> Result<Vec<Value>, PatchError> {
        if original.is_empty() && values.is_empty() {
            return Ok(original);
        }
        // Upstream takes objects here for a patch of the list.
        if element_kind(&[&original, &values])? == "object" {
            return self.unite(original, values);
        }
        Ok(original.into_iter().filter(|value| !values.contains(value)).collect())
    }

    fn ordered(&self, merged: Vec<Value>, named: &[Value], live: &[Value]) -> Vec<Value> {
        order::interleave(Sides::split(merged, named, self.merge_key), named, live, self.merge_key)
    }

    /// Elements with `$patch` are not elements: they delete those of their key, or all that were there.
    fn act_on_directives(
        &self,
        mut original: Vec<Value>,
        patch: Vec<Value>,
    ) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
        let mut replaces = false;
        let mut elements = Vec::with_capacity(patch.len());
        for item in patch {
            let Some(directive) = item.get(DIRECTIVE) else {
                elements.push(item);
                continue;
            };
            match directive.as_str() {
                Some("delete") => {
                    let key = self.key_of(&item)?;
                    original.retain(|element| element.get(self.merge_key) != Some(key));
                }
                Some("replace") => replaces = true,
                Some("merge") => {
                    let text = "merging lists cannot yet be specified in the patch";
                    return Err(PatchError::Failed(text.to_owned()));
                }
                _ => return Err(unknown_directive(directive, item.as_object().unwrap_or(&Map::new()))),
            }
        }
        Ok(if replaces { (elements, Vec::new()) } else { (original, elements) })
    }

    fn merge_elements(&self, mut original: Vec<Value>, patch: &[Value]) -> Result<Vec<Value>, PatchError> {
        for item in patch {
            let key = self.key_of(item)?;
            let found = original.iter_mut().find(|element| element.get(self.merge_key) == Some(key));
            match (found, item) {
                (Some(Value::Object(element)), Value::Object(item)) => {
                    let merged =
                        merge_objects(std::mem::take(element), item.clone(), self.element, self.types)?;
                    *element = merged;
                }
                _ => original.push(item.clone()),
            }
        }
        Ok(original)
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

/// The kind of all elements, which has to be one, and not a list.
pub(super) fn element_kind(lists: &[&[Value]]) -> Result<&'static str, PatchError> {
    let mut kinds = lists.iter().flat_map(|list| list.iter()).map(gotext::json_kind);
    let Some(first) = kinds.next() else {
        return Err(PatchError::Failed("no elements in any of the given slices".to_owned()));
    };
    if first == "array" {
        return Err(PatchError::DoesNotApply);
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
    let mut seen = Vec::with_capacity(original.len() + patch.len());
    for value in original.into_iter().chain(patch) {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}
