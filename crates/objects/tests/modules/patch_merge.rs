//! Tests of `patch::merge`.

use rowplane_objects::patch::Decoding;
use rowplane_objects::patch::merge::apply;
use rowplane_objects::patch::merge::sort_touched;
use rowplane_values::tree::Map;
use rowplane_values::tree::Value;
use rowplane_values::tree::json;

#[test]
fn merging() {
    let cases = [
        (
            json!({"a": 1}),
            json!({"a": 2, "b": {"c": null, "d": {"e": null}}}),
            json!({"a": 2, "b": {"d": {}}}),
        ),
        (json!({"a": {"b": 1, "c": 2}}), json!({"a": {"b": null}}), json!({"a": {"c": 2}})),
        (json!({"a": [1, 2]}), json!({"a": [null, {"b": null}]}), json!({"a": [null, {}]})),
        (json!({"a": {"x": 1}}), json!({"a": [{"b": null}]}), json!({"a": [{"b": null}]})),
        (json!({"a": null}), json!({"a": {"b": null}}), json!({"a": {}})),
        (json!({"a": 1}), json!({"gone": null}), json!({"a": 1})),
        (json!({"a": 1}), json!({}), json!({"a": 1})),
    ];
    for (document, patch, want) in cases {
        assert_eq!(apply(document, patch.clone(), Decoding::Checked), Ok(want), "{patch}");
    }
}

/// Compares with a removal of one member after the other, for names in any order, half of them null, in small and
/// large objects.
#[test]
fn nulls_leave_the_other_members_in_their_order() {
    for members in [3, 23, 24, 25, 500] {
        let member = |n: usize, value: Value| (format!("n{}", n * 7919 % (2 * members)), value);
        let document: Map = (0..members).map(|n| member(n, n.into())).collect();
        let patch: Map = (0..2 * members)
            .map(|n| member(n, if n % 2 == 0 { Value::Null } else { json!({"x": n, "y": null}) }))
            .collect();
        let mut want = document.clone();
        for (name, value) in &patch {
            match value {
                Value::Null => drop(want.shift_remove(name)),
                value => drop(want.insert(name.clone(), json!({"x": value["x"]}))),
            }
        }
        let found = apply(document.into(), patch.into(), Decoding::Checked).expect("a patch");
        assert_eq!(found.to_string(), Value::Object(want).to_string());
    }
}

#[test]
fn what_is_printed_in_order() {
    let text = |text: &str| rowplane_values::json::parse_text(text).expect("JSON").value;
    let before = text(r#"{"z":{"c":1,"b":{"y":1,"x":2}},"l":[{"b":1,"a":2}],"o":{"b":1,"a":2}}"#);
    let cases = [
        (r#"{"n":{"d":1,"c":[{"f":1,"e":2}]}}"#, r#""n":{"c":[{"e":2,"f":1}],"d":1}"#),
        (r#"{"z":{"a":1}}"#, r#""z":{"a":1,"b":{"y":1,"x":2},"c":1}"#),
        (r#"{"l":[{"d":1,"c":2}]}"#, r#""l":[{"c":2,"d":1}]"#),
        (r#"{"o":[{"d":1,"c":2}]}"#, r#""o":[{"d":1,"c":2}]"#),
    ];
    for (patch, want) in cases {
        let patch = text(patch);
        let mut result = apply(before.clone(), patch.clone(), Decoding::Checked).expect("applies");
        sort_touched(&mut result, &patch, Some(&before));
        assert!(result.to_string().contains(want), "{result}");
    }
}

#[test]
fn what_is_no_object() {
    let text = |patch, decoding| apply(json!({"a": 1}), patch, decoding).map_err(|e| e.to_string());
    let unmarshal = |kind: &str| {
        Err(format!(
            "error decoding patch: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        ))
    };
    assert_eq!(text(json!([]), Decoding::Checked), unmarshal("array"));
    assert_eq!(text(json!("x"), Decoding::Checked), unmarshal("string"));
    assert_eq!(text(json!(null), Decoding::Checked), Err("Invalid JSON Patch".into()));
    assert_eq!(text(json!([{"a": null}]), Decoding::Unchecked), Ok(json!([{}])));
    assert_eq!(text(json!(1), Decoding::Unchecked), Err("Invalid JSON Patch".into()));
    assert_eq!(text(json!(null), Decoding::Unchecked), Err("Invalid JSON Patch".into()));
}
