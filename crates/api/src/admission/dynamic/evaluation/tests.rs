//! Expressions with variables, and what they may cost together.

use super::*;
use crate::kinds::behavior::rules::expression::Admission;
use crate::tree::json;

/// The variables that these texts declare, one after the other, and an expression that uses them.
fn compiled(variables: &[(&str, &str)], text: &str) -> (Vec<Variable>, Expression) {
    let mut environment = Admission::new(false).composed();
    let mut declared = Vec::new();
    for (name, text) in variables {
        let (expression, is) = Expression::checked(text, environment.declarations());
        environment.declare_type(name, is.as_ref());
        declared.push(Variable { name: (*name).to_owned(), expression });
    }
    (declared, Expression::compile(text, environment.declarations()))
}

fn evaluated(variables: &[(&str, &str)], text: &str, budget: u64) -> (Result<String, Failure>, u64) {
    let (variables, expression) = compiled(variables, text);
    let object = json!({"n": 3, "list": [1, 2, 3]});
    let seen = Seen { object: object.as_object(), ..Seen::default() };
    let mut run = Run::new(seen, &variables, budget);
    let value = run
        .evaluate(&expression)
        .map(|value| value.as_bool().map_or("no bool".to_owned(), |is| is.to_string()));
    let left = run.left;
    (value, left)
}

#[test]
fn variables_are_evaluated_when_they_are_used() {
    let plenty = 10_000_000;
    let of = |variables: &[(&str, &str)], text: &str| evaluated(variables, text, plenty).0;
    let bad = ("bad", "object.missing == 1");
    assert_eq!(
        of(&[("a", "object.n + 1"), bad, ("b", "variables.a * 2")], "variables.b == 8"),
        Ok("true".into())
    );
    assert_eq!(of(&[bad], "variables.bad || true"), Ok("true".into()));
    let error = |why: &str| Err(Failure::Error(why.to_owned()));
    assert_eq!(
        of(&[bad, ("c", "variables.bad")], "variables.c"),
        error(
            "expression 'variables.c' resulted in error: composited variable \"c\" fails to evaluate: composited \
             variable \"bad\" fails to evaluate: no such key: missing"
        )
    );
    assert_eq!(
        of(&[("n", "1")], "object.missing == variables.n"),
        error("expression 'object.missing == variables.n' resulted in error: no such key: missing")
    );
    assert_eq!(of(&[], "namespaceObject == null && oldObject == null"), Ok("true".into()));
}

#[test]
fn a_long_chain_of_variables_is_no_deep_call() {
    let names: Vec<String> = (0..300).map(|number| format!("v{number}")).collect();
    let texts: Vec<String> = (0..300)
        .map(|at: usize| at.checked_sub(1).map_or("1".to_owned(), |at| format!("variables.v{at} + 1")))
        .collect();
    let variables: Vec<(&str, &str)> =
        names.iter().map(String::as_str).zip(texts.iter().map(String::as_str)).collect();
    assert_eq!(evaluated(&variables, "variables.v299 == 300", 10_000_000).0, Ok("true".into()));
}

#[test]
fn costs_end_one_expression_and_all_of_them() {
    let loops = "lists.range(2000).all(x, lists.range(2000).all(y, x + y >= 0))";
    let (value, left) = evaluated(&[], loops, 10_000_000);
    let why =
        format!("expression '{loops}' resulted in error: operation cancelled: actual cost limit exceeded");
    assert_eq!(value, Err(Failure::Error(why)));
    assert!(left < 9_000_001, "{left}");
    assert_eq!(evaluated(&[], loops, 100_000).0, Err(Failure::OutOfBudget));
}
