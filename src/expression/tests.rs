use super::{Environment, Type, check};

fn problem(text: &str) -> Option<String> {
    let environment = Environment::default().with_variable("a", Type::Dyn).with_variable("f", Type::Dyn);
    check(text, &environment).err()
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
