//! The order of a merged list: elements that the patch names are in the patch's order, the others in the order of the live
//! list.

use super::positions::Positions;
use crate::tree::Value;

/// A merged list in two parts: elements that the patch names, and elements that only the live list has.
pub(super) struct Sides {
    pub named: Vec<Value>,
    pub server_only: Vec<Value>,
}

impl Sides {
    pub fn split(merged: Vec<Value>, named: &[Value], merge_key: &str) -> Self {
        let order = Positions::of(named, merge_key);
        let (named, server_only) = merged.into_iter().partition(|item| order.find(item).is_some());
        Self { named, server_only }
    }
}

/// Joins both parts, each in its own order. A live element goes before a named one only if the named one was live, too,
/// and stood behind it; so new elements come first.
pub(super) fn interleave(mut sides: Sides, named: &[Value], live: &[Value], merge_key: &str) -> Vec<Value> {
    let (named, live) = (Positions::of(named, merge_key), Positions::of(live, merge_key));
    sides.named.sort_by_key(|item| named.find(item).unwrap_or(usize::MAX));
    sides.server_only.sort_by_key(|item| live.find(item).unwrap_or(usize::MAX));
    let mut named = sides.named.into_iter().peekable();
    let mut server_only = sides.server_only.into_iter().peekable();
    let mut merged = Vec::new();
    while let (Some(theirs), Some(ours)) = (server_only.peek(), named.peek()) {
        let before =
            matches!((live.find(theirs), live.find(ours)), (Some(theirs), Some(ours)) if theirs < ours);
        merged.extend(if before { server_only.next() } else { named.next() });
    }
    merged.extend(named);
    merged.extend(server_only);
    merged
}
