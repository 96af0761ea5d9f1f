use super::*;
use crate::json::Node;
use crate::schema::builtin;
use crate::schema::kind::{Kind, Shape};
use crate::schema::names::Gvk;
use crate::tree::json;

/// What upstream makes of objects: `tests/upstream/structural` asks its own code.
const UPSTREAM: &str = include_str!("../../../testdata/structural/upstream.jsonl");

fn widget(schema: &Value) -> Kind {
    let schema = schema.as_object().expect("a schema");
    let shape = Structural::read(schema, &builtin::types()).expect("structural");
    Kind { gvk: Gvk::fixed("example.com/v1", "Widget"), shape: Shape::Structural(Arc::new(shape)) }
}

/// Members in any order: a custom resource is a map to upstream.
fn sorted(object: &Map) -> Value {
    let mut object = Value::Object(object.clone());
    object.sort_all();
    object
}

#[test]
fn objects_become_what_upstream_makes_of_them() {
    let mut refused = 0;
    for line in UPSTREAM.lines() {
        let line: Map = serde_json::from_str(line).expect("JSON");
        let kind = widget(&line["schema"]);
        let mut object = line["sent"].as_object().expect("an object").clone();
        let conformed = kind.conform(&mut object);
        if let Some(why) = line.get("refused").and_then(Value::as_str) {
            let error = conformed.expect_err(why);
            assert!(why.ends_with(&error), "{error}\n{why}");
            refused += 1;
            continue;
        }
        conformed.expect("fits");
        let want = |name: &str| sorted(line[name].as_object().expect(name));
        assert_eq!(sorted(&object), want("conformed"), "{} {:?}", line["name"], line["sent"]);
        kind.default(&mut object);
        assert_eq!(sorted(&object), want("defaulted"), "{} {:?}", line["name"], line["sent"]);
    }
    assert_eq!(refused, 2);
}

#[test]
fn unknown_members_are_those_that_pruning_drops() {
    let mut told = 0;
    for line in UPSTREAM.lines() {
        let line: Map = serde_json::from_str(line).expect("JSON");
        let Some(unknown) = line.get("unknown").and_then(Value::as_array) else { continue };
        let text = Node::parse(line["sent"].to_string().as_bytes()).expect("JSON");
        let found = widget(&line["schema"]).problems(&text);
        let of_objects = found.iter().filter(|problem| !problem.starts_with("unknown field \"metadata."));
        let want: Vec<String> = unknown.iter().map(|path| format!("unknown field {}", path)).collect();
        assert_eq!(of_objects.cloned().collect::<Vec<_>>(), want, "{}", line["name"]);
        told += want.len();
    }
    assert!(told > 10, "{told}");
}

#[test]
fn unknown_members_of_metadata_and_repeated_ones_are_told() {
    let kind = widget(&json!({"type": "object", "properties": {"spec": {"type": "object"}}}));
    let text = br#"{"spec":{},"metadata":{"name":"a","odd":1},"more":1,"more":2}"#;
    let found = kind.problems(&Node::parse(text).expect("JSON"));
    let want = [r#"duplicate field "more""#, r#"unknown field "metadata.odd""#, r#"unknown field "more""#];
    assert_eq!(found[..2], want[..2]);
    assert!(found[2..].iter().all(|problem| problem == want[2]), "{found:?}");
}

#[test]
fn what_is_no_schema_is_refused() {
    for (schema, want) in [
        (json!({"type": 1}), ": type must be a string"),
        (json!({"properties": {"a": {"type": "text"}}}), "a: type must be a type of JSON"),
        (json!({"properties": {"a": {"items": []}}}), "a: items must be a schema"),
        (json!({"properties": []}), ": properties must be an object"),
        (json!({"nullable": "x"}), ": nullable must be a boolean"),
    ] {
        let error = Structural::read(schema.as_object().expect("an object"), &builtin::types());
        assert_eq!(error.expect_err(want).to_string(), want);
    }
}
