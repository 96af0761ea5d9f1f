//! Tests of `json`.

use rand::{RngExt, SeedableRng};
use rowplane_objects::codec::depth::{MAX_DEPTH, depth};
use rowplane_objects::patch::PatchError;
use rowplane_objects::patch::json::{MAX_MOVED, MAX_OPERATIONS, apply, sort_touched};
use rowplane_objects::tree::{Value, json, work};

fn patched(document: &Value, patch: Value) -> Result<Value, PatchError> {
    apply(document.clone(), &patch)
}

fn is_unfit(outcome: Result<Value, PatchError>) -> bool {
    matches!(outcome, Err(PatchError::DoesNotApply(_) | PatchError::TestFailed(_)))
}

#[test]
fn operations_that_apply() {
    let doc = json!({"a": {"b": [1, 2, 3]}, "x/y": 1, "m~n": 2, "nil": null});
    let cases = [
        (json!([]), json!({})),
        (json!(null), json!({})),
        (json!([{"op": "add", "path": "/n", "value": 1}]), json!({"n": 1})),
        (json!([{"op": "add", "path": "/n"}]), json!({"n": null})),
        (json!([{"op": "replace", "path": "/n", "value": 1}]), json!({"n": 1})),
        (json!([{"op": "replace", "path": "/x~1y", "value": 9}]), json!({"x/y": 9})),
        (json!([{"op": "replace", "path": "/m~0n", "value": 9}]), json!({"m~n": 9})),
        (json!([{"op": "replace", "path": "nil/m~0n", "value": 9}]), json!({"m~n": 9})),
        (json!([{"op": "add", "path": "/a/b/-", "value": 4}]), json!({"a": {"b": [1, 2, 3, 4]}})),
        (json!([{"op": "add", "path": "/a/b/-1", "value": 4}]), json!({"a": {"b": [1, 2, 3, 4]}})),
        (json!([{"op": "add", "path": "/a/b/3", "value": 4}]), json!({"a": {"b": [1, 2, 3, 4]}})),
        (json!([{"op": "add", "path": "/a/b/00", "value": 4}]), json!({"a": {"b": [4, 1, 2, 3]}})),
        (json!([{"op": "replace", "path": "/a/b/-1", "value": 4}]), json!({"a": {"b": [1, 2, 4]}})),
        (json!([{"op": "remove", "path": "/a/b/+1"}]), json!({"a": {"b": [1, 3]}})),
        (json!([{"op": "copy", "from": "/gone", "path": "/n"}]), json!({"n": null})),
        (json!([{"op": "copy", "from": "/a/b/0", "path": "/n"}]), json!({"n": 1})),
        (json!([{"op": "test", "path": "/gone"}]), json!({})),
        (json!([{"op": "test", "path": "/nil", "value": null}]), json!({})),
        (json!([{"op": "test", "path": "/a", "value": {"b": [1, 2, 3]}}]), json!({})),
    ];
    for (patch, changes) in cases {
        let mut want = doc.clone();
        for (key, value) in changes.as_object().unwrap() {
            want[key] = value.clone();
        }
        assert_eq!(patched(&doc, patch.clone()), Ok(want), "{patch}");
    }
    let moved = patched(&doc, json!([{"op": "move", "from": "/a/b", "path": "/a/c"}])).unwrap();
    assert_eq!(moved["a"], json!({"c": [1, 2, 3]}));
    assert_eq!(patched(&doc, json!([{"op": "replace", "path": "", "value": [1]}])), Ok(json!([1])));
}

#[test]
fn operations_that_fail() {
    let doc = json!({"a": {"b": [1, 2]}, "n": 1});
    let cases = [
        json!([null]),
        json!([{"op": "frob", "path": "/a"}]),
        json!([{"op": "add", "value": 1}]),
        json!([{"op": "add", "path": "", "value": 1}]),
        json!([{"op": "add", "path": "a", "value": 1}]),
        json!([{"op": "add", "path": "/no/x", "value": 1}]),
        json!([{"op": "add", "path": "/n/x", "value": 1}]),
        json!([{"op": "add", "path": "/a/b/3", "value": 1}]),
        json!([{"op": "add", "path": "/a/b/-4", "value": 1}]),
        json!([{"op": "replace", "path": "/a/b/2", "value": 1}]),
        json!([{"op": "replace", "path": "/a/b/-", "value": 1}]),
        json!([{"op": "replace", "path": "", "value": 1}]),
        json!([{"op": "remove", "path": "/no"}]),
        json!([{"op": "remove", "path": ""}]),
        json!([{"op": "move", "from": "/no", "path": "/a"}]),
        json!([{"op": "copy", "path": "/x"}]),
        json!([{"op": "test", "path": "/n", "value": 1.0}]),
        json!([{"op": "test", "path": "/n"}]),
        json!([{"op": "test", "path": "/a/b/5"}]),
        json!([{"op": "replace", "path": "/n", "value": 2}, {"op": "remove", "path": "/no"}]),
    ];
    for patch in cases {
        assert!(is_unfit(patched(&doc, patch.clone())), "{patch}");
    }
}

#[test]
fn limits() {
    let text = "json: cannot unmarshal object into Go value of type jsonpatch.Patch";
    assert_eq!(patched(&json!({}), json!({})), Err(PatchError::Malformed(text.into())));
    assert!(matches!(patched(&json!({}), json!([1])), Err(PatchError::Malformed(_))));
    let many = Value::Array(vec![json!({"op": "add", "path": "/a"}); MAX_OPERATIONS + 1]);
    let limit = PatchError::TooManyOperations { limit: 10_000, found: 10_001 };
    assert_eq!(patched(&json!({}), many), Err(limit));
    let big = json!({"a": "x".repeat(1024 * 1024)});
    let copy = |times: usize| Value::Array(vec![json!({"op": "copy", "from": "/a", "path": "/b"}); times]);
    assert!(patched(&big, copy(2)).is_ok());
    assert!(is_unfit(patched(&big, copy(3))));
}

/// Each operation alone is cheap enough; ten thousand of them are not.
#[test]
fn operations_that_move_too_much() {
    let wide = json!({"list": vec![0; 50_000], "below": {}});
    let steps = |step: Value, times: usize| Value::Array(vec![step; times]);
    let too_many = Err(PatchError::TooManyMoves { limit: MAX_MOVED });
    for step in [json!({"op": "remove", "path": "/list/0"}), json!({"op": "add", "path": "/list/0"})] {
        assert_eq!(patched(&wide, steps(step.clone(), 10_000)), too_many, "{step}");
        assert!(patched(&wide, steps(step.clone(), 1000)).is_ok(), "{step}");
    }
    // Moving a value deeper requires a look at its own depth.
    let down = json!({"op": "move", "from": "/list", "path": "/below/list"});
    let up = json!({"op": "move", "from": "/below/list", "path": "/list"});
    let there_and_back = |times: usize| Value::Array(vec![[down.clone(), up.clone()]; times].concat());
    assert_eq!(patched(&wide, there_and_back(5000)), too_many);
    assert_eq!(patched(&wide, there_and_back(100)), Ok(wide.clone()));
    // A test copies nothing, and moves between siblings need no check of the depth.
    let test = json!({"op": "test", "path": "/list", "value": []});
    assert!(is_unfit(patched(&wide, steps(test, 1))));
    let renamed = [
        json!({"op": "move", "from": "/list", "path": "/l"}),
        json!({"op": "move", "from": "/l", "path": "/list"}),
    ];
    assert_eq!(patched(&wide, Value::Array(vec![renamed; 5000].concat())), Ok(wide));
}

/// Has the same result as sorting, for each operation, all objects on its path, but in a single pass.
#[test]
fn what_operations_touch_is_sorted() {
    let document = || {
        let members = (0..1000).rev().map(|n| (format!("k{n}"), json!({"b": [{"z": 1, "y": 2}], "a": n})));
        json!({"z": Value::from_iter(members), "a": {"y": 1, "x": 2}})
    };
    let steps: Vec<Value> = (0..1000)
        .map(|n| json!({"op": "test", "path": format!("/z/k{n}/b/0/y"), "from": "/a"}))
        .chain([
            json!({"op": "test", "path": "/a/q/r"}),
            json!({"op": "remove", "path": "/".repeat(1 << 20)}),
        ])
        .collect();
    let mut sorted = document();
    let taken = work::of(|| sort_touched(&mut sorted, &Value::Array(steps.clone())));
    assert!(taken < 10_000, "{taken} members moved");
    let mut want = document();
    steps.iter().for_each(|step| sort_touched(&mut want, &json!([step])));
    assert_eq!(sorted.to_string(), want.to_string());
    assert!(sorted.to_string().starts_with(r#"{"a":{"x":2,"y":1},"z":{"k0":{"a":0,"b":[{"y":2,"z":1}]},"#));
}

#[test]
fn copies_into_itself_end() {
    let mut document = json!({"a": {"a": {}}});
    let mut pointer = "/a/a".to_owned();
    while depth(&document) <= MAX_DEPTH / 2 {
        let copy = json!([{"op": "copy", "from": "/a", "path": format!("{pointer}/a")}]);
        document = patched(&document, copy).expect("not deep yet");
        pointer = "/a".repeat(depth(&document) - 1);
    }
    for (op, member) in [("copy", "from"), ("add", "value"), ("replace", "value")] {
        let value = if member == "from" { json!("/a") } else { document.clone() };
        let patch = json!([{"op": op, member: value, "path": format!("{pointer}/a")}]);
        assert!(is_unfit(patched(&document, patch)), "{op}");
    }
}

#[test]
fn no_input_panics() {
    let paths = ["", "/", "/a", "/a/0", "/a/-", "/a/-1", "/a/99999999999999999999", "/~", "/~1~", "a", "//"];
    let names = ["add", "remove", "replace", "move", "copy", "test"];
    let mut rng = rand::rngs::SmallRng::seed_from_u64(1);
    for _ in 0..20_000 {
        let mut pick = |list: &[&str]| list[rng.random_range(0..list.len())].to_owned();
        let one =
            json!({"op": pick(&names), "path": pick(&paths), "from": pick(&paths), "value": [pick(&paths)]});
        let two = json!({"op": pick(&names), "path": pick(&paths), "from": pick(&paths)});
        let _ = patched(&json!({"a": [1], "": {"": 2}}), json!([one, two]));
    }
}
