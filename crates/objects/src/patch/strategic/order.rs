//! The order of merged lists: elements that the patch names are in the patch's order, the others in the order of the
//! live list.

use super::interleave::{Sides, interleave};
use super::list::{ListPatch, element_kind};
use super::lookup::Shape;
use super::positions::Positions;
use super::{DIRECTIVE, ELEMENT_ORDER, listed, malformed, taken};
use crate::gotext;
use crate::patch::PatchError;
use crate::schema::types::Types;
use crate::tree::{Map, Text, Value};

/// Applies every `$setElementOrder/<list>` together with the patch of its list, and removes both.
pub(super) fn merge_ordered_lists(
    original: &mut Map,
    patch: &mut Map,
    shape: Shape<'_>,
    types: &Types,
) -> Result<(), PatchError> {
    let directives: Vec<Text> = patch.keys().filter(|key| key.starts_with(ELEMENT_ORDER)).cloned().collect();
    for directive in directives {
        let order = expect_list(patch.shift_remove(&directive).unwrap_or_default())?;
        let key = listed(&directive, ELEMENT_ORDER).flatten();
        let key = key.ok_or_else(|| malformed("invalid patch format of setElementOrder list"))?;
        let live = original.get(key).cloned().map(expect_list).transpose()?;
        let patched = patch.get(key).cloned().map(expect_list).transpose()?;
        let list = ListPatch::of(shape.list(key, types)?, types)?;
        check_order(patched.as_deref().unwrap_or_default(), &order, list.merge_key)?;
        let live_items = live.clone().unwrap_or_default();
        let patch_items = patched.clone().unwrap_or_default();
        let merged = match (live, patched) {
            (Some(live), None) => live,
            (None, Some(patched)) => patched.into_iter().filter_map(taken).collect(),
            (Some(live), Some(patched)) => list.merge(live, patched)?,
            (None, None) => continue,
        };
        check_keys(&merged, &order, list.merge_key)?;
        let kind = element_kind(&[&live_items, &patch_items])?;
        let sides = Sides::split(merged, &order, list.merge_key);
        if kind == "object" {
            let all = [&sides.named, &order, &sides.server_only, &live_items];
            all.into_iter().flatten().try_for_each(|item| keyed(item, list.merge_key).map(drop))?;
        }
        let merged = interleave(sides, &order, &live_items, list.merge_key);
        original.insert(key, Value::Array(merged));
        patch.shift_remove(key);
    }
    Ok(())
}

/// The elements that the patch adds or changes must occur in the order list, in the same order.
fn check_order(patch: &[Value], order: &[Value], merge_key: &str) -> Result<(), PatchError> {
    if order.is_empty() {
        return Ok(());
    }
    let mut order_left = order.iter();
    for item in patch.iter().filter(|item| item.get(DIRECTIVE).is_none()) {
        let key = identity(item, merge_key)?;
        let found = loop {
            match order_left.next() {
                Some(ordered) if identity(ordered, merge_key)? == key => break true,
                Some(_) => {}
                None => break false,
            }
        };
        if !found {
            let list = |items: &[Value]| gotext::display(&Value::Array(items.to_vec()));
            return Err(PatchError::Failed(format!(
                "The order in patch list:\n{}\n doesn't match {ELEMENT_ORDER} list:\n{}\n",
                list(patch),
                list(order)
            )));
        }
    }
    Ok(())
}

/// Fails if an element without the merge key is met. Elements are searched in the order list one after the other, so
/// elements behind the last match are not looked at.
fn check_keys(merged: &[Value], order: &[Value], merge_key: &str) -> Result<(), PatchError> {
    let positions = Positions::of(order, merge_key);
    let without_key = order.iter().position(|ordered| identity(ordered, merge_key).is_err());
    for item in merged.iter().filter(|_| !order.is_empty()) {
        identity(item, merge_key)?;
        if let Some(bad) = without_key
            && positions.find(item).is_none_or(|found| found > bad)
        {
            identity(&order[bad], merge_key)?;
        }
    }
    Ok(())
}

fn identity<'a>(item: &'a Value, merge_key: &str) -> Result<&'a Value, PatchError> {
    if merge_key.is_empty() { Ok(item) } else { keyed(item, merge_key) }
}

fn keyed<'a>(item: &'a Value, merge_key: &str) -> Result<&'a Value, PatchError> {
    if !item.is_object() {
        let kind = go_type(item);
        return Err(PatchError::Failed(format!(
            "expected a map[string]interface {{}}, but received a {kind}"
        )));
    }
    item.get(merge_key).ok_or_else(|| without_key(item, merge_key))
}

fn without_key(item: &Value, merge_key: &str) -> PatchError {
    let item = gotext::display(item);
    PatchError::Failed(format!("map: {item} does not contain declared merge key: {merge_key}"))
}

fn expect_list(value: Value) -> Result<Vec<Value>, PatchError> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(PatchError::Failed(format!(
            "expected a []interface {{}}, but received a {}",
            go_type(&other)
        ))),
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
