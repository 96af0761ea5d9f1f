//! Functions of lists (`apiserver/pkg/cel/library/lists.go`, cel-go `ext/{lists,sets}.go`).

use std::cmp::Ordering;

use crate::arithmetic;
use crate::types::Type;
use crate::value::{Error, List, Value};

/// The most elements that `lists.range` makes.
pub const LONGEST_RANGE: i64 = 1_000_000;

pub fn call<'a>(
    function: &str,
    arguments: &[Value<'a>],
    result: Option<&Type>,
) -> Option<Result<Value<'a>, Error>> {
    if let ("lists.range", [Value::Int(count)]) = (function, arguments) {
        return Some(range(*count));
    }
    if let ("includes", [of, item]) = (function, arguments) {
        return Some(Ok(Value::Bool(includes(of, item))));
    }
    let Value::List(list) = arguments.first()? else { return None };
    let odd = || !list.is_empty() && !list.get(0).is_ok_and(|first| first.is_ordered());
    if matches!(function, "isSorted" | "sum" | "min" | "max") && odd() {
        return None;
    }
    Some(match (function, &arguments[1..]) {
        ("isSorted", []) => is_sorted(list).map(Value::Bool),
        ("sum", []) => sum(list, result),
        ("min", []) => best(list, "min", Ordering::Greater),
        ("max", []) => best(list, "max", Ordering::Less),
        ("indexOf", [item]) => position(list, item, false),
        ("lastIndexOf", [item]) => position(list, item, true),
        ("reverse", []) => list.iter().rev().collect::<Result<_, _>>().map(Value::owned),
        ("slice", [Value::Int(from), Value::Int(to)]) => slice(list, *from, *to),
        ("flatten", []) => flatten(list, 1),
        ("flatten", [Value::Int(depth)]) => flatten(list, *depth),
        ("distinct", []) => distinct(list),
        ("sort", []) => sorted(list, list),
        ("@sortByAssociatedKeys", [Value::List(keys)]) => sorted(list, keys),
        ("first", []) => end(list, 0),
        ("last", []) => end(list, list.len().saturating_sub(1)),
        ("sets.contains", [Value::List(other)]) => contains(list, other).map(Value::Bool),
        ("sets.intersects", [Value::List(other)]) => intersects(list, other).map(Value::Bool),
        ("sets.equivalent", [Value::List(other)]) => {
            let both = contains(list, other).and_then(|does| Ok(does && contains(other, list)?));
            both.map(Value::Bool)
        }
        _ => return None,
    })
}

fn range<'a>(count: i64) -> Result<Value<'a>, Error> {
    if count < 0 {
        return Err(Error::new(format!("lists.range: size must be non-negative, got {count}")));
    }
    if count > LONGEST_RANGE {
        let why = format!("lists.range: size {count} exceeds maximum allowed ({LONGEST_RANGE})");
        return Err(Error::new(why));
    }
    Ok(Value::owned((0..count).map(Value::Int).collect()))
}

/// Whether a list has an element, or something else is equal to it.
fn includes(of: &Value<'_>, item: &Value<'_>) -> bool {
    let is = |one: &Value<'_>| one.equals(item) == Ok(true);
    match of {
        Value::List(list) => list.iter().any(|one| one.is_ok_and(|one| is(&one))),
        _ => is(of),
    }
}

fn end<'a>(list: &List<'a>, at: usize) -> Result<Value<'a>, Error> {
    if list.is_empty() { Ok(Value::none()) } else { list.get(at).map(Value::some) }
}

fn is_sorted(list: &List<'_>) -> Result<bool, Error> {
    let mut before: Option<Value<'_>> = None;
    for item in list.iter() {
        let item = item?;
        if !item.is_ordered() {
            return Err(Error::no_such_overload());
        }
        if let Some(before) = &before
            && before.compare(&item).is_ok_and(|order| order == Ordering::Greater)
        {
            return Ok(false);
        }
        before = Some(item);
    }
    Ok(true)
}

/// The sum of a list; that of an empty one is the zero of the result's type.
fn sum<'a>(list: &List<'a>, result: Option<&Type>) -> Result<Value<'a>, Error> {
    let zero = |like: &Value<'_>| match like {
        Value::Uint(_) => Value::Uint(0),
        Value::Double(_) => Value::Double(0.0),
        Value::Duration(_) => Value::Duration(0),
        _ => Value::Int(0),
    };
    let mut sum = match (list.iter().next(), result) {
        (Some(first), _) => zero(&first?),
        (None, Some(Type::Uint)) => Value::Uint(0),
        (None, Some(Type::Double)) => Value::Double(0.0),
        (None, Some(Type::Duration)) => Value::Duration(0),
        (None, _) => Value::Int(0),
    };
    for item in list.iter() {
        sum = arithmetic::add(&sum, &item?)?;
    }
    Ok(sum)
}

fn best<'a>(list: &List<'a>, function: &str, worse: Ordering) -> Result<Value<'a>, Error> {
    let mut best: Option<Value<'a>> = None;
    for item in list.iter() {
        let item = item?;
        if !item.is_ordered() {
            return Err(Error::no_such_overload());
        }
        let better = best.as_ref().is_none_or(|best| best.compare(&item).is_ok_and(|order| order == worse));
        if better {
            best = Some(item);
        }
    }
    best.ok_or_else(|| Error::new(format!("{function} called on empty list")))
}

fn position<'a>(list: &List<'a>, item: &Value<'a>, last: bool) -> Result<Value<'a>, Error> {
    let is = |at: &usize| list.get(*at).and_then(|found| found.equals(item)).unwrap_or(false);
    let found = if last { (0..list.len()).rev().find(is) } else { (0..list.len()).find(is) };
    Ok(Value::Int(found.map_or(-1, |at| at as i64)))
}

fn slice<'a>(list: &List<'a>, from: i64, to: i64) -> Result<Value<'a>, Error> {
    let wrong = |why: String| Err(Error::new(format!("cannot slice({from}, {to}), {why}")));
    if from < 0 || to < 0 {
        return wrong("negative indexes not supported".to_owned());
    }
    if from > to {
        return wrong("start index must be less than or equal to end index".to_owned());
    }
    if (list.len() as i64) < to {
        return wrong(format!("list is length {}", list.len()));
    }
    (from as usize..to as usize).map(|at| list.get(at)).collect::<Result<_, _>>().map(Value::owned)
}

fn flatten<'a>(list: &List<'a>, depth: i64) -> Result<Value<'a>, Error> {
    if depth < 0 {
        return Err(Error::new("level must be non-negative"));
    }
    let mut level: Vec<Value<'a>> = list.to_vec()?;
    for _ in 0..depth {
        if !level.iter().any(|item| matches!(item, Value::List(_))) {
            break;
        }
        let mut flat = Vec::new();
        for item in level {
            match item {
                Value::List(inner) => flat.extend(inner.to_vec()?),
                other => flat.push(other),
            }
        }
        level = flat;
    }
    Ok(Value::owned(level))
}

fn distinct<'a>(list: &List<'a>) -> Result<Value<'a>, Error> {
    let mut kept: Vec<Value<'a>> = Vec::new();
    for item in list.iter() {
        let item = item?;
        if !kept.iter().any(|known| item.equals(known).unwrap_or(false)) {
            kept.push(item);
        }
    }
    Ok(Value::owned(kept))
}

fn sorted<'a>(list: &List<'a>, keys: &List<'a>) -> Result<Value<'a>, Error> {
    if list.len() != keys.len() {
        return Err(Error::new(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} \
             elements respectively",
            list.len(),
            keys.len()
        )));
    }
    let keys = keys.to_vec()?;
    if let Some(first) = keys.first() {
        if !first.is_ordered() {
            return Err(Error::new("list elements must be comparable"));
        }
        if keys.len() > 1 && keys.iter().any(|key| key.type_name() != first.type_name()) {
            return Err(Error::new("list elements must have the same type"));
        }
    }
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by(|one, other| keys[*one].compare(&keys[*other]).unwrap_or(Ordering::Equal));
    order.into_iter().map(|at| list.get(at)).collect::<Result<_, _>>().map(Value::owned)
}

pub fn has(list: &List<'_>, item: &Value<'_>) -> Result<bool, Error> {
    for known in list.iter() {
        if known?.equals(item).unwrap_or(false) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn contains(list: &List<'_>, other: &List<'_>) -> Result<bool, Error> {
    for item in other.iter() {
        if !has(list, &item?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn intersects(list: &List<'_>, other: &List<'_>) -> Result<bool, Error> {
    for item in list.iter() {
        if has(other, &item?)? {
            return Ok(true);
        }
    }
    Ok(false)
}
