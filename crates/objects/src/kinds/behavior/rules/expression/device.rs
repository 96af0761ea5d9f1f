//! Selectors of devices (`dynamic-resource-allocation/cel`).

use std::sync::LazyLock;

use super::declared;
use crate::expression::{Checked, Environment, Type, worst_cost_by};
use crate::kinds::behavior::rules::errors::Errors;

/// `k8s.io/dynamic-resource-allocation/cel/compile.go`.
const DEVICE: (&str, &[(&str, &str)]) = (
    "kubernetes.DRADevice",
    &[
        ("driver", "string"),
        ("attributes", "map(string, map(string, google.protobuf.Any))"),
        ("capacity", "map(string, map(string, kubernetes.Quantity))"),
        ("allowMultipleAllocations", "bool"),
    ],
);

/// The error of a selector of devices.
#[derive(Debug, PartialEq, Eq)]
pub enum DeviceProblem {
    Invalid(String),
    /// It may cost too much to evaluate.
    TooComplex,
}

/// The most that the evaluation of a selector may cost.
const MOST: u64 = 1_000_000;

/// The error of a selector of devices.
pub fn problem(text: &str, errors: &mut Errors) -> Option<DeviceProblem> {
    let checked = match errors.check(text, environment())? {
        Ok(checked) => checked,
        Err(why) => return Some(DeviceProblem::Invalid(why)),
    };
    match &checked.result {
        Type::Bool | Type::Any => match cost(&checked) {
            Some(cost) => (cost > MOST).then_some(DeviceProblem::TooComplex),
            None => {
                errors.leave_unchecked();
                None
            }
        },
        result => {
            let why = format!("must evaluate to bool or the unknown type, not {result}");
            Some(DeviceProblem::Invalid(why))
        }
    }
}

fn environment() -> &'static Environment {
    static KNOWN: LazyLock<Environment> = LazyLock::new(|| {
        let environment = declared(Environment::default().with_bindings(), &[DEVICE]);
        environment.with_variable("device", Type::Struct(DEVICE.0.into()))
    });
    &KNOWN
}

fn cost(checked: &Checked) -> Option<u64> {
    worst_cost_by(checked, &|path| {
        let steps: Vec<&str> = path.iter().map(|step| &**step).collect();
        size(&steps)
    })
}

/// How much there is at most at a path (`dynamic-resource-allocation/cel/compile.go`): how long driver, domains, names and
/// values are, and how many of them there are.
fn size(path: &[&str]) -> Option<u64> {
    const ENTRIES: u64 = 32;
    const DRIVER: u64 = 63;
    const DOMAIN: u64 = 63;
    const NAME: u64 = 32;
    const VALUE: u64 = 64;
    match path {
        ["device"] => Some(0),
        ["device", "driver"] => Some(DRIVER),
        ["device", "allowMultipleAllocations"] => Some(1),
        ["device", "attributes" | "capacity"] => Some(ENTRIES),
        ["device", "attributes" | "capacity", "@keys"] => Some(DOMAIN),
        ["device", "attributes" | "capacity", "@values" | "@items"] => Some(ENTRIES),
        ["device", "attributes" | "capacity", "@values" | "@items", "@keys"] => Some(NAME),
        ["device", "capacity", "@values" | "@items", "@values" | "@items"] => Some(0),
        ["device", "attributes", "@values" | "@items", below] if *below != "@keys" => Some(VALUE),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_of_devices_cost_what_upstream_says() {
        let cases = include_str!("../../../../../../../testdata/cel/devices.tsv").lines();
        let (mut compared, mut different) = (0, Vec::new());
        for (expected, expression) in cases.filter_map(|line| line.split_once('\t')) {
            let checked = crate::expression::check(expression, environment()).expect("an expression");
            let found = cost(&checked).expect("a stack");
            compared += 1;
            if found.to_string() != expected {
                different.push(format!("{expression}\n  upstream {expected}\n  rowplane {found}"));
            }
        }
        assert!(compared > 200, "{compared}");
        assert!(different.is_empty(), "{} of {compared}:\n{}", different.len(), different.join("\n"));
    }

    #[test]
    fn what_may_cost_too_much_is_too_complex() {
        let each = |within: &str| format!("device.attributes.all(d, device.attributes[d].all(k, {within}))");
        let problem = |text: &str| problem(text, &mut Errors::with_expressions());
        assert_eq!(problem(&each("k != 'x'")), None);
        let deep = each(&each(&each("k.matches('^a+$')")));
        assert_eq!(problem(&deep), Some(DeviceProblem::TooComplex));
    }
}
