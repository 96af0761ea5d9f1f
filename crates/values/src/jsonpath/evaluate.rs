//! From nodes and an object to what is found.
//!
//! A step that fails still hands on values, which upstream's filters look at (`[?(@.a[9])]`); so a step answers with both.

use super::comparison::compare;
use super::{Budget, Filter, Found, Node, Slice};
use crate::tree::Value;

/// The values that a step finds, and whether it failed.
struct Step<'a> {
    pub found: Vec<Found<'a>>,
    pub failed: bool,
}

impl<'a> Step<'a> {
    pub fn found(found: Vec<Found<'a>>) -> Self {
        Self { found, failed: false }
    }

    pub fn failed(found: Vec<Found<'a>>) -> Self {
        Self { found, failed: true }
    }
}

/// The first result of the first part, if no part fails.
pub fn first<'a>(parts: &'a [Node], object: &'a Value, budget: &mut Budget) -> Option<Found<'a>> {
    let mut first = None;
    for (index, part) in parts.iter().enumerate() {
        let step = walk(part, vec![Found::Value(object)], budget)?;
        if step.failed {
            return None;
        }
        if index == 0 {
            first = step.found.first().copied();
        }
    }
    first
}

/// The values that a node finds from others; `None` when that is too much work.
fn walk<'a>(node: &'a Node, input: Vec<Found<'a>>, budget: &mut Budget) -> Option<Step<'a>> {
    budget.spend(1 + input.len())?;
    let same = |found: Found<'a>| Step::found(vec![found; input.len()]);
    Some(match node {
        Node::List(nodes) => return list(nodes, input, budget),
        Node::Text(text) => Step::found(vec![Found::Text(text)]),
        Node::Integer(integer) => same(Found::Integer(*integer)),
        Node::Float(float) => same(Found::Float(*float)),
        Node::Bool(flag) => same(Found::Bool(*flag)),
        Node::Field(name) => Step::found(input.into_iter().filter_map(|found| field(found, name)).collect()),
        Node::Slice(slice) => return sliced(*slice, input, budget),
        Node::Filter(filter) => return filtered(filter, input, budget),
        Node::Wildcard => {
            let mut found = Vec::new();
            for value in input {
                children(value, &mut found, budget)?;
            }
            Step::found(found)
        }
        Node::Recursive => {
            let mut found = Vec::new();
            for value in input {
                descend(value, &mut found, budget)?;
            }
            Step::found(found)
        }
        Node::Union(members) => {
            let mut found = Vec::new();
            for member in members {
                let step = walk(member, input.clone(), budget)?;
                if step.failed {
                    return Some(Step::failed(input));
                }
                found.extend(step.found);
            }
            Step::found(found)
        }
        Node::Identifier => Step::failed(input),
    })
}

fn list<'a>(nodes: &'a [Node], input: Vec<Found<'a>>, budget: &mut Budget) -> Option<Step<'a>> {
    let mut step = Step::found(input);
    for node in nodes {
        step = walk(node, step.found, budget)?;
        if step.failed {
            break;
        }
    }
    Some(step)
}

fn field<'a>(found: Found<'a>, name: &str) -> Option<Found<'a>> {
    match found {
        Found::Value(Value::Object(members)) => members.get(name).map(Found::Value),
        _ => None,
    }
}

fn sliced<'a>(slice: Slice, input: Vec<Found<'a>>, budget: &mut Budget) -> Option<Step<'a>> {
    let mut found = Vec::new();
    for value in &input {
        let items = match value {
            Found::Value(Value::Null) => continue,
            Found::Value(Value::Array(items)) => items,
            _ => return Some(Step::failed(input)),
        };
        let Ok(range) = range(slice, items.len() as i64) else { return Some(Step::failed(input)) };
        // Upstream stops at the first list of which nothing is asked for.
        let Some((from, to)) = range else { break };
        let step = match slice.step {
            Some(step) if step <= 0 => return Some(Step::failed(input)),
            step => usize::try_from(step.unwrap_or(1)).ok()?,
        };
        let items = items[from..to].iter().step_by(step);
        budget.spend(items.len())?;
        found.extend(items.map(Found::Value));
    }
    Some(Step::found(found))
}

/// The error of a slice whose bounds do not fit the length of the list.
struct OutOfBounds;

/// The bounds of a slice of a list; `None` if it is empty.
fn range(slice: Slice, length: i64) -> Result<Option<(usize, usize)>, OutOfBounds> {
    let mut from = slice.from.unwrap_or(0);
    if from < 0 {
        from += length;
    }
    let mut to = slice.to.unwrap_or(length);
    if to < 0 || (to == 0 && slice.is_index) {
        to += length;
    }
    if from == to {
        return Ok(None);
    }
    if from >= length || from < 0 || to > length || to < 0 || from > to {
        return Err(OutOfBounds);
    }
    match (usize::try_from(from), usize::try_from(to)) {
        (Ok(from), Ok(to)) => Ok(Some((from, to))),
        _ => Err(OutOfBounds),
    }
}

/// Members by their names, where Go takes them as they come; items; the bytes of a text.
fn children<'a>(value: Found<'a>, found: &mut Vec<Found<'a>>, budget: &mut Budget) -> Option<()> {
    match value {
        Found::Value(Value::Object(members)) => {
            budget.spend(members.len())?;
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            found.extend(members.into_iter().map(|(_, value)| Found::Value(value)));
        }
        Found::Value(Value::Array(items)) => {
            budget.spend(items.len())?;
            found.extend(items.iter().map(Found::Value));
        }
        Found::Value(Value::String(text)) => bytes(text, found, budget)?,
        Found::Text(text) => bytes(text, found, budget)?,
        _ => {}
    }
    Some(())
}

fn bytes<'a>(text: &str, found: &mut Vec<Found<'a>>, budget: &mut Budget) -> Option<()> {
    budget.spend(text.len())?;
    found.extend(text.bytes().map(Found::Byte));
    Some(())
}

/// A value and all below it that have children; texts have, unless they are empty. What is open is on a stack of its own,
/// so that no object is too deep.
fn descend<'a>(value: Found<'a>, found: &mut Vec<Found<'a>>, budget: &mut Budget) -> Option<()> {
    let mut open = vec![value];
    let mut below = Vec::new();
    while let Some(value) = open.pop() {
        budget.spend(1)?;
        match value {
            Found::Value(Value::String(text)) if !text.is_empty() => found.push(value),
            Found::Text(text) if !text.is_empty() => found.push(value),
            Found::Value(Value::Object(_) | Value::Array(_)) => {
                children(value, &mut below, budget)?;
                if !below.is_empty() {
                    found.push(value);
                }
                open.extend(below.drain(..).rev());
            }
            _ => {}
        }
    }
    Some(())
}

/// The items of lists that have something, or compare so with something: `[?(…)]`.
fn filtered<'a>(filter: &'a Filter, input: Vec<Found<'a>>, budget: &mut Budget) -> Option<Step<'a>> {
    let mut found = Vec::new();
    for value in &input {
        let Found::Value(Value::Array(items)) = value else { return Some(Step::failed(input)) };
        for item in items {
            match verdict(filter, item, budget)? {
                FilterResult::Passes => found.push(Found::Value(item)),
                FilterResult::Fails => {}
                FilterResult::Broken => return Some(Step::failed(input)),
                FilterResult::Incomparable => return Some(Step::failed(found)),
            }
        }
    }
    Some(Step::found(found))
}

fn verdict<'a>(filter: &'a Filter, item: &'a Value, budget: &mut Budget) -> Option<FilterResult> {
    let left = walk(&filter.left, vec![Found::Value(item)], budget)?;
    let Some((operator, right)) = &filter.compared else {
        return Some(if left.found.is_empty() { FilterResult::Fails } else { FilterResult::Passes });
    };
    let left = match (left.failed, &left.found[..]) {
        (false, []) => return Some(FilterResult::Fails),
        (false, [left]) => *left,
        _ => return Some(FilterResult::Broken),
    };
    let right = walk(right, vec![Found::Value(item)], budget)?;
    let right = match (right.failed, &right.found[..]) {
        (false, []) => return Some(FilterResult::Fails),
        (false, [right]) => *right,
        _ => return Some(FilterResult::Broken),
    };
    Some(match compare(operator, left, right) {
        Some(true) => FilterResult::Passes,
        Some(false) => FilterResult::Fails,
        None => FilterResult::Incomparable,
    })
}

enum FilterResult {
    Passes,
    Fails,
    /// One side is no single value; the filter hands on what it was given.
    Broken,
    /// The values cannot be compared; the filter hands on what it has found so far.
    Incomparable,
}
