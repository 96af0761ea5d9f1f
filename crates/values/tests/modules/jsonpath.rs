//! Tests of `jsonpath`.

use rowplane_values::jsonpath::{Budget, Found, JsonPath};
use rowplane_values::tree::{Value, json, work};

fn object() -> Value {
    json!({"spec": {"replicas": 3, "a.b": "dotted", "empty": "", "nothing": null, "list": [1, 2, 3], "deep": {"list": [{"x": "y"}]}},
        "status": {"conditions": [
            {"type": "Synced", "status": "False"}, {"type": "Ready", "status": "True", "n": 2}]}})
}

fn first(path: &str) -> Option<String> {
    let object = object();
    let path = JsonPath::parse(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    path.first(&object, &mut Budget::of(1000)).map(|found| match found {
        Found::Value(value) => value.to_string(),
        other => format!("{other:?}"),
    })
}

#[test]
fn paths_find_what_they_name() {
    let cases = [
        (".spec.replicas", "3"),
        (".spec['replicas']", "3"),
        (".spec.a\\.b", "\"dotted\""),
        (".spec['a\\.b']", "\"dotted\""),
        (".spec.list[0]", "1"),
        (".spec.list[-1]", "3"),
        (".spec.list[1:]", "2"),
        (".spec.list[*]", "1"),
        (".spec.list[2,0]", "3"),
        ("..x", "\"y\""),
        (".status.conditions[?(@.type==\"Ready\")].status", "\"True\""),
        (".status.conditions[?(@.type=='Ready')].status", "\"True\""),
        (".status.conditions[?(@.n>=2)].type", "\"Ready\""),
        (".status.conditions[?(@.n)].type", "\"Ready\""),
        (".spec.nothing", "null"),
        (".spec.empty", "\"\""),
        (".spec.*", "\"dotted\""),
    ];
    for (path, want) in cases {
        assert_eq!(first(path).as_deref(), Some(want), "{path}");
    }
}

#[test]
fn what_is_not_there_or_fails_is_nothing() {
    let cases = [
        ".spec.none",
        ".spec.none.below",
        ".spec.list[3]",
        ".spec.list[-4]",
        ".spec.replicas[0]",
        ".spec.nothing.below",
        ".spec[?(@.a)]",
        ".status.conditions[?(@.type==1)].status",
        ".spec range",
        ".",
    ];
    for path in cases {
        assert_eq!(first(path), None, "{path}");
    }
}

#[test]
fn texts_that_are_no_paths() {
    for path in [".spec[", ".spec[a]", ".a..", "....a", ".a(b", ".a\"x", "[?(@.a]", ".a[?(@.a==)]x", "#"] {
        let parsed = JsonPath::parse(path);
        // A few of these are odd, and parse all the same, as upstream's do.
        let parses = matches!(path, ".a.." | ".a(b" | ".a\"x");
        assert_eq!(parsed.is_ok(), parses, "{path}: {parsed:?}");
    }
}

#[test]
fn work_is_bounded() {
    let mut deep = json!({"a": 1});
    for _ in 0..100 {
        deep = json!({"a": deep});
    }
    let items: Vec<Value> = (0..1000).map(|n| json!({"a": n})).collect();
    let wide = json!({"items": items});
    let long = "x".repeat(1_000_000);
    for (path, object) in [
        ("..a..a..a..a..a..a..a..a", &deep),
        (".items[*,*,*,*][*,*]", &wide),
        // A filter that looks at all for each of all.
        (".items[?(@..a==1)].a", &wide),
        (".*.*.*.*", &json!({"a": {"b": {"c": long.as_str()}}})),
    ] {
        let path = JsonPath::parse(path).unwrap_or_else(|why| panic!("{path}: {why}"));
        let most = 5000;
        let mut found = None;
        let steps = work::of(|| found = path.first(object, &mut Budget::of(most)));
        // What is too much is counted before it is done.
        assert!(steps <= most + long.len() + 1 && found.is_none(), "{path:?} {steps} {found:?}");
        let mut budget = Budget::of(most);
        path.first(object, &mut budget);
        let any = JsonPath::parse(".a").expect("a path");
        assert!(any.first(&json!({"a": 1}), &mut budget).is_none(), "nothing is left for others");
    }
    let nested = format!("{}1{}", "[?(\"\"".repeat(1000), ")]".repeat(1000));
    assert!(JsonPath::parse(&nested).is_err());
    assert!(JsonPath::parse(&".a".repeat(100_000)).is_err());
}
