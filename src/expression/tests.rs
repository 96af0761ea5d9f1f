use super::{Environment, STACK, Type, check, on_deep_stack, on_stack_of};

fn problem(text: &str) -> Option<String> {
    let environment = Environment::default().with_variable("a", Type::Dyn).with_variable("f", Type::Dyn);
    on_deep_stack(|stack| check(text, &environment, stack).expect("short enough").err()).expect("a thread")
}

#[test]
fn what_is_wrong_is_shown() {
    let why = problem("a &&\n\t)").expect("wrong");
    assert!(why.starts_with("compilation failed: ERROR: <input>:2:2: Syntax error: "), "{why}");
    assert!(why.ends_with("\n |  )\n | .^"), "{why}");
    assert!(problem("object.spec.").is_some());
    assert!(problem("'open").is_some());
}

#[test]
fn no_expression_needs_more_stack_than_there_is() {
    let limit = "expression recursion limit exceeded: 96";
    let nested = [("(", ")"), ("[", "]"), ("dyn(", ")"), ("{1: ", "}"), ("a ? b : ", ""), ("a.all(b, ", ")")];
    for (open, close) in nested {
        let nest = |depth| problem(&format!("{}1{}", open.repeat(depth), close.repeat(depth)));
        assert!(nest(50).is_none_or(|why| !why.contains(limit)), "{open}");
        assert!(nest(1000).is_some_and(|why| why.contains(limit)), "{open}");
    }
    for link in ["a+", "a&&", "a.", "a[0].b.", "!", "-"] {
        let text = format!("{}a", link.repeat((super::LONGEST - 1) / link.len()));
        assert_eq!(problem(&text), None, "{link}");
    }
}

/// Each link would make the type, or the work, twice as large.
#[test]
fn no_expression_takes_more_time_than_there_is() {
    for link in [".map(x, {x: x})", ".optMap(x, [x])", ".optMap(x, {x: x})", ".map(x, [[x]])"] {
        let text = format!("a{}", link.repeat((super::LONGEST - 1) / link.len()));
        assert_eq!(problem(&text), None, "{link}");
        assert!(problem(&text.replacen('a', "b", 1)).is_some(), "{link}");
    }
    assert_eq!(problem(&format!("[{}1]", "a == 1, ".repeat(1500))).map(|why| why.len() > 10), Some(true));
}

#[test]
fn a_thread_that_is_not_to_be_had_is_an_error() {
    assert!(on_stack_of(isize::MAX as usize, |_| ()).is_err());
    assert_eq!(on_stack_of(STACK, |_| 1).ok(), Some(1));
}

#[test]
fn long_expressions_are_not_looked_at() {
    let text = "(".repeat(super::LONGEST + 1);
    let looked = |text| on_deep_stack(|stack| check(text, &Environment::default(), stack).is_some());
    assert_eq!((looked(&text).ok(), looked(&text[1..]).ok()), (Some(false), Some(true)));
}
