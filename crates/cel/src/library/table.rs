//! Functions: the library that each belongs to, and the cost of its calls (`apiserver/pkg/cel/library/cost.go`, cel-go
//! `interpreter/runtimecost.go`).

use super::{
    addresses, authorization, conversions, formats, formatting, lists, optionals, quantities, semvers,
    strings, times, urls,
};
use crate::functions::Overload;
use crate::types::{Generic, Type};
use crate::value::{Error, Value};

/// The cost of a call, by the sizes of its arguments or of its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    One,
    /// So many tenths of the size of an argument.
    Tenths {
        of: usize,
        times: u64,
    },
    /// A tenth of the smaller one.
    Smaller,
    /// The same, and 1 for values whose types have their own equality.
    Equality,
    /// A tenth of both.
    Both,
    /// The size of the second.
    Second,
    Contains,
    Pattern,
    Traversal,
    Join,
    ContainsIp {
        text: bool,
    },
    ContainsCidr {
        text: bool,
    },
    Validate,
    /// Eleven, and the size of the result.
    Output,
    Range,
    Flatten,
    /// Eleven, and each element of an argument with each other.
    Pairs {
        of: usize,
    },
    /// One, and each element of a list with each of another.
    Sets {
        times: u64,
    },
    /// A question to an authorizer: two of them are as many as an expression may ask.
    Question,
    /// A selector that an authorizer reads.
    Selector,
}

fn tenths(size: u64, times: u64) -> u64 {
    (size as f64 * times as f64 * 0.1).ceil() as u64
}

fn pattern(text: u64, pattern: u64) -> u64 {
    let text = ((1.0 + text as f64) * 0.1).ceil() as u64;
    text.saturating_mul((pattern as f64 * 0.25).ceil() as u64)
}

impl Cost {
    /// `None` if it takes the result to tell.
    pub fn before(self, arguments: &[Value<'_>]) -> Option<u64> {
        let size = |of: usize| arguments.get(of).map_or(1, Value::inner_size);
        let plain = |of: usize| arguments.get(of).map_or(1, Value::size);
        Some(match self {
            Self::One => 1,
            Self::Tenths { of, times } => tenths(plain(of), times),
            Self::Equality if matches!(arguments.first(), Some(Value::Opaque(_))) => 1,
            Self::Smaller | Self::Equality => tenths(size(0).min(size(1)), 1),
            Self::Both => tenths(size(0).saturating_add(size(1)), 1),
            Self::Second => size(1),
            Self::Contains => tenths(size(0), 1).saturating_mul(tenths(size(1), 1)),
            Self::Pattern => pattern(plain(0), plain(1)),
            Self::Traversal => arguments.first().map_or(1, traversal),
            Self::Join => tenths(strings::joined_letters(arguments), 2),
            Self::ContainsIp { text } => tenths(2 * plain(0), 1) + if text { tenths(plain(1), 1) } else { 0 },
            Self::ContainsCidr { text } => {
                tenths(2 * plain(0), 1) + tenths(plain(0), 1) + 1 + if text { tenths(plain(1), 1) } else { 0 }
            }
            Self::Validate => validate(arguments),
            Self::Question => 350_000,
            Self::Selector => 10 + tenths(plain(1), 1) + 25 * plain(1),
            Self::Output => return None,
            Self::Range => match arguments.first() {
                Some(Value::Int(count)) if (0..=lists::LONGEST_RANGE).contains(count) => *count as u64 + 11,
                _ => 12,
            },
            Self::Flatten => {
                let depth = match arguments.get(1) {
                    Some(Value::Int(depth)) if *depth >= 0 => *depth as f64,
                    _ => 1.0,
                };
                ((plain(0) as f64 * depth) as u64).saturating_add(11)
            }
            Self::Pairs { of } => pairs(arguments.get(of)),
            Self::Sets { times } => {
                ((plain(0).saturating_mul(plain(1)) as f64 * times as f64) as u64).saturating_add(1)
            }
        })
    }

    /// The cost of an operator with these operands.
    pub fn of_two(self, left: &Value<'_>, right: &Value<'_>) -> u64 {
        match (self, left, right) {
            (Self::One, ..)
            | (_, Value::Int(_), Value::Int(_))
            | (_, Value::Bool(_), Value::Bool(_))
            | (Self::Equality, Value::Opaque(_), _) => 1,
            _ => self.of_sizes(|| left.inner_size(), || right.inner_size()),
        }
    }

    /// The cost of an operator with operands of these sizes; an operand that is an error has size 1.
    pub fn of_sizes(self, left: impl FnOnce() -> u64, right: impl FnOnce() -> u64) -> u64 {
        match self {
            Self::Second => right(),
            Self::Both => tenths(left().saturating_add(right()), 1),
            Self::Smaller | Self::Equality => tenths(left().min(right()), 1),
            _ => 1,
        }
    }

    pub fn after(result: Option<&Value<'_>>) -> u64 {
        result.map_or(1, Value::size).saturating_add(11)
    }
}

/// A function that rules call for each element of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quick {
    Size,
    Contains,
    StartsWith,
    EndsWith,
}

impl Quick {
    pub fn of(function: &str) -> Option<Self> {
        Some(match function {
            "size" => Self::Size,
            "contains" => Self::Contains,
            "startsWith" => Self::StartsWith,
            "endsWith" => Self::EndsWith,
            _ => return None,
        })
    }

    /// The value, if these are arguments that it takes.
    pub fn call<'a>(self, arguments: &[Value<'a>]) -> Option<Value<'a>> {
        Some(match (self, arguments) {
            (Self::Size, arguments) => return size(arguments)?.ok(),
            (Self::Contains, [Value::String(text), Value::String(part)]) => {
                Value::Bool(text.contains(&**part))
            }
            (Self::StartsWith, [Value::String(text), Value::String(part)]) => {
                Value::Bool(text.starts_with(&**part))
            }
            (Self::EndsWith, [Value::String(text), Value::String(part)]) => {
                Value::Bool(text.ends_with(&**part))
            }
            _ => return None,
        })
    }
}

fn validate(arguments: &[Value<'_>]) -> u64 {
    match arguments.first() {
        Some(Value::Opaque(opaque)) => match &**opaque {
            super::opaque::Opaque::Format(format) => {
                pattern(arguments.get(1).map_or(1, Value::size), format.pattern)
            }
            _ => 1,
        },
        _ => 1,
    }
}

fn pairs(list: Option<&Value<'_>>) -> u64 {
    let Some(Value::List(list)) = list else { return 11 };
    let size = list.len() as u64;
    let text = size > 0 && matches!(list.get(0), Ok(Value::String(_) | Value::Bytes(_)));
    let factor = if text { 2.1 } else { 2.0 };
    ((size.saturating_mul(size) as f64 * factor) as u64).saturating_add(11)
}

/// One for each scalar, and a tenth for each byte of texts.
fn traversal(value: &Value<'_>) -> u64 {
    match value {
        Value::String(text) => (text.len() as f64 * 0.1) as u64,
        Value::Bytes(bytes) => (bytes.len() as f64 * 0.1) as u64,
        Value::List(list) => list.iter().map(|item| item.as_ref().map_or(1, traversal)).sum(),
        Value::Map(map) => map
            .keys()
            .iter()
            .map(|key| traversal(key) + map.find(key, 0).ok().flatten().as_ref().map_or(1, traversal))
            .sum(),
        _ => 1,
    }
}

/// The cost of a function's calls; `overload` is given if the checker has found only one.
pub fn cost(function: &str, overload: Option<&Overload>) -> Cost {
    let first = overload.and_then(|overload| overload.arguments.first());
    let second = overload.and_then(|overload| overload.arguments.get(1));
    let is = |argument: Option<&Type>, of: Type| argument == Some(&of);
    let text = matches!(first, Some(Type::String | Type::Bytes));
    match function {
        "_==_" => Cost::Equality,
        "_!=_" => Cost::Smaller,
        "_<_" | "_<=_" | "_>_" | "_>=_" if text => Cost::Smaller,
        "_+_" if text => Cost::Both,
        "@in" if matches!(second.and_then(Type::as_applied), Some(of) if of.of == Generic::List) => {
            Cost::Second
        }
        "startsWith" | "endsWith" => Cost::Tenths { of: 1, times: 1 },
        "contains" => Cost::Contains,
        "matches" | "find" | "findAll" => Cost::Pattern,
        "bytes" if is(first, Type::String) => Cost::Tenths { of: 0, times: 1 },
        "string" if is(first, Type::Bytes) => Cost::Tenths { of: 0, times: 1 },
        "strings.quote" | "format" => Cost::Tenths { of: 0, times: 1 },
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" | "includes" => Cost::Traversal,
        "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "jsonpatch.escapeKey" => {
            Cost::Tenths { of: 0, times: 1 }
        }
        "ip" if matches!(first, Some(of) if *of != Type::String) => Cost::One,
        "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
            Cost::Tenths { of: 0, times: 1 }
        }
        "replace" | "split" | "ip.isCanonical" => Cost::Tenths { of: 0, times: 2 },
        "join" => Cost::Join,
        "containsIP" => Cost::ContainsIp { text: is(second, Type::String) },
        "containsCIDR" => Cost::ContainsCidr { text: is(second, Type::String) },
        "validate" => Cost::Validate,
        "check" => Cost::Question,
        "fieldSelector" | "labelSelector" => Cost::Selector,
        "slice" | "reverse" => Cost::Output,
        "lists.range" => Cost::Range,
        "flatten" => Cost::Flatten,
        "distinct" => Cost::Pairs { of: 0 },
        "sort" if overload.is_some() => Cost::Pairs { of: 0 },
        "@sortByAssociatedKeys" if overload.is_some() => Cost::Pairs { of: 1 },
        "sets.contains" | "sets.intersects" => Cost::Sets { times: 1 },
        "sets.equivalent" => Cost::Sets { times: 2 },
        _ => Cost::One,
    }
}

/// Whether a function's arguments are looked at one after the other, so that the first that fails ends the call.
pub fn is_sequential(function: &str, arguments: usize, overload: Option<&Overload>) -> bool {
    let plain = matches!(
        function,
        "contains"
            | "startsWith"
            | "endsWith"
            | "matches"
            | "size"
            | "type"
            | "dyn"
            | "sort"
            | "@sortByAssociatedKeys"
    );
    arguments > 2 || function == "format" || overload.is_none() && !plain
}

/// Calls a function of a library.
pub fn call<'a>(function: &str, arguments: &[Value<'a>], result: Option<&Type>) -> Result<Value<'a>, Error> {
    let found = match function {
        "size" => size(arguments),
        "contains" | "startsWith" | "endsWith" => return part(function, arguments),
        "bool" | "bytes" | "double" | "dyn" | "duration" | "int" | "string" | "timestamp" | "type"
        | "uint" => arguments.first().and_then(|value| conversions::call(function, value)),
        "format" => formatting::call(arguments),
        "format.named" | "validate" => formats::call(function, arguments),
        "sign" | "isInteger" | "asInteger" | "asApproximateFloat" | "add" | "sub" | "quantity"
        | "isQuantity" => quantities::call(function, arguments),
        "isLessThan" | "isGreaterThan" | "compareTo" => {
            quantities::call(function, arguments).or_else(|| semvers::call(function, arguments))
        }
        "semver" | "isSemver" | "major" | "minor" | "patch" => semvers::call(function, arguments),
        "indexOf" | "lastIndexOf" => {
            strings::call(function, arguments).or_else(|| lists::call(function, arguments, result))
        }
        "hasValue" | "value" | "unwrapOpt" => optionals::call(function, arguments),
        _ if function.starts_with("format.") => formats::call(function, arguments),
        _ if function.starts_with("optional.") => optionals::call(function, arguments),
        _ if function.starts_with("get") => {
            times::call(function, arguments).or_else(|| urls::call(function, arguments))
        }
        _ => strings::call(function, arguments)
            .or_else(|| lists::call(function, arguments, result))
            .or_else(|| addresses::call(function, arguments))
            .or_else(|| urls::call(function, arguments))
            .or_else(|| authorization::call(function, arguments)),
    };
    found.unwrap_or_else(|| Err(unfit(function, arguments)))
}

fn unfit(function: &str, arguments: &[Value<'_>]) -> Error {
    if function == "size" {
        return Error::new("no such overload: size");
    }
    let types: Vec<&str> = arguments.iter().map(Value::type_name).collect();
    Error::new(format!("no such overload: {function}({})", types.join(", ")))
}

fn size<'a>(arguments: &[Value<'a>]) -> Option<Result<Value<'a>, Error>> {
    match arguments.first()? {
        value @ (Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_)) => {
            Some(Ok(Value::Int(value.size() as i64)))
        }
        _ => None,
    }
}

fn part<'a>(function: &str, arguments: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [Value::String(text), Value::String(part)] = arguments else { return Err(Error::no_such_overload()) };
    Ok(Value::Bool(match function {
        "contains" => text.contains(&**part),
        "startsWith" => text.starts_with(&**part),
        _ => text.ends_with(&**part),
    }))
}
