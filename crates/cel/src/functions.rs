//! The functions that new expressions may call, as upstream declares them.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::types::Type;

/// One way to call a function.
#[derive(Debug)]
pub struct Overload {
    /// Whether the first argument stands before the name.
    pub member: bool,
    pub arguments: Vec<Type>,
    pub result: Type,
}

static FUNCTIONS: LazyLock<HashMap<&str, Vec<Overload>>> = LazyLock::new(|| {
    let mut functions: HashMap<&str, Vec<Overload>> = HashMap::new();
    for (name, overload) in include_str!("functions.txt").lines().filter_map(read) {
        functions.entry(name).or_default().push(overload);
    }
    functions
});

fn read(line: &str) -> Option<(&str, Overload)> {
    let (call, result) = line.split_once(" -> ")?;
    let (name, arguments) = call.strip_suffix(')')?.split_once('(')?;
    let (member, name) = name.strip_prefix('.').map_or((false, name), |name| (true, name));
    Some((name, Overload { member, arguments: Type::parse_list(arguments), result: Type::parse(result) }))
}

/// The ways to call a function, in the order in which they are tried.
pub fn overloads(name: &str) -> Option<&'static [Overload]> {
    FUNCTIONS.get(name).map(Vec::as_slice)
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_line_is_a_function() {
        let lines = include_str!("functions.txt").lines();
        lines.for_each(|line| assert!(super::read(line).is_some(), "{line}"));
    }
}
