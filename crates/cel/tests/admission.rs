//! Assertions 119 to 122 of `docs/spec/admission.md`. 118, equal values and equal costs, is `upstream.rs`.

use std::sync::atomic::{AtomicBool, Ordering};

use rowplane_cel::value::{Error, Value};
use rowplane_cel::{Budget, Environment, Variables, check, program};

struct Nothing;

impl<'a> Variables<'a> for Nothing {
    fn get(&self, _: &str) -> Option<Result<Value<'a>, Error>> {
        None
    }
}

/// What an expression comes to, and what it has spent.
fn evaluated(expression: &str, mut budget: Budget<'_>) -> (String, u64) {
    let environment = Environment::default();
    let checked = check(expression, &environment).expect("fits");
    let plan = program(&checked, &environment).expect("a plan");
    let outcome = match plan.evaluate(&Nothing, &mut budget) {
        Ok(value) => format!("{value:?}"),
        Err(fault) => fault.message().to_owned(),
    };
    (outcome, budget.spent)
}

#[test]
fn admission_119_a_range_is_refused_or_paid_for_before_it_is_made() {
    let (outcome, _) = evaluated("lists.range(2000000000).size() > 0", Budget::of(10_000_000));
    assert_eq!(outcome, "lists.range: size 2000000000 exceeds maximum allowed (1000000)");
    let (outcome, spent) = evaluated("lists.range(1000000).size() > 0", Budget::of(100_000));
    assert_eq!(outcome, "operation cancelled: actual cost limit exceeded");
    assert!(spent > 100_000);
}

#[test]
fn admission_120_errors_go_up_until_somebody_takes_them() {
    let is = |expression: &str| evaluated(expression, Budget::of(1000)).0;
    assert_eq!(is("true || (1/0 == 1)"), "Bool(true)");
    assert_eq!(is("(1/0 == 1) || true"), "Bool(true)");
    assert_eq!(is("false && (1/0 == 1)"), "Bool(false)");
    assert_eq!(is("(1/0 == 1) || false"), "division by zero");
    assert_eq!(is("[1,2][5]"), "index out of bounds: 5");
    assert_eq!(is("{'a':1}.b"), "no such key: b");
}

#[test]
fn admission_121_libraries() {
    for expression in [
        "quantity('1Gi').isGreaterThan(quantity('1G'))",
        "ip('::1').isLoopback()",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3')",
        "semver('v1.2', true).minor() == 2",
        "format.dns1123Label().validate('A').hasValue()",
    ] {
        assert_eq!(evaluated(expression, Budget::of(1000)).0, "Bool(true)", "{expression}");
        assert_eq!(evaluated(&format!("!({expression})"), Budget::of(1000)).0, "Bool(false)", "{expression}");
    }
}

/// Loops that would take years end when nobody waits for them any more.
#[test]
fn admission_122_an_evaluation_is_interrupted() {
    let interrupt = AtomicBool::new(false);
    let range = "lists.range(100000)";
    let expression = format!("{range}.all(x, {range}.all(y, {range}.all(z, x + y + z >= 0)))");
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| interrupt.store(true, Ordering::Relaxed));
        let budget = Budget { interrupt: Some(&interrupt), ..Budget::of(u64::MAX) };
        evaluated(&expression, budget).0
    });
    assert_eq!(outcome, "operation interrupted");
}
