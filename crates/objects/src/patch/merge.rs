//! Merge patch (RFC 7386) with the deviations of evanphx/json-patch v4, which upstream uses.

use super::{Decoding, PatchError};
use crate::gotext;
use crate::tree::{Map, Value};

/// Applies `patch` to `document`. With [`Decoding::Unchecked`], an array replaces the document, whose decoding fails
/// later.
pub fn apply(mut document: Value, patch: Value, decoding: Decoding) -> Result<Value, PatchError> {
    match (patch, decoding) {
        (Value::Object(patch), _) => {
            match &mut document {
                Value::Object(object) => merge_objects(object, patch),
                other => *other = without_nulls(Value::Object(patch)),
            }
            Ok(document)
        }
        (patch @ Value::Array(_), Decoding::Unchecked) => Ok(without_nulls(patch)),
        (Value::Null, _) | (_, Decoding::Unchecked) => {
            Err(PatchError::Malformed("Invalid JSON Patch".to_owned()))
        }
        (other, Decoding::Checked) => Err(PatchError::Malformed(format!(
            "error decoding patch: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            gotext::json_kind(&other)
        ))),
    }
}

/// Whether `patch` touches the member at `place`, one of its ancestors, or one of its descendants.
pub fn concerns(patch: &Value, place: &[&str]) -> bool {
    let Some((first, rest)) = place.split_first() else { return true };
    let Value::Object(members) = patch else { return true };
    members.get(first).is_some_and(|below| concerns(below, rest))
}

fn merge_objects(object: &mut Map, patch: Map) {
    let mut object = object.edit();
    for (key, value) in patch {
        if value.is_null() {
            object.remove(&key);
            continue;
        }
        match object.get_mut(&key) {
            Some(current) => merge(current, value),
            None => object.insert(key, without_nulls(value)),
        }
    }
}

fn merge(current: &mut Value, patch: Value) {
    match (current, patch) {
        (Value::Object(object), Value::Object(patch)) => merge_objects(object, patch),
        // Upstream's library does not prune in this case: an array that replaces an object keeps its nulls.
        (current @ Value::Object(_), patch) => *current = patch,
        (current, patch) => *current = without_nulls(patch),
    }
}

/// Drops null members at every depth. Nulls in arrays stay.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let kept = object.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key, without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        scalar => scalar,
    }
}

/// Sorts those objects of a result that upstream's library decodes, since Go prints maps sorted: the objects on the
/// patch's paths, and everything new. A value that replaces an object stays as it was sent.
pub fn sort_touched(result: &mut Value, patch: &Value, before: Option<&Value>) {
    match (result, patch, before) {
        (Value::Object(result), Value::Object(patch), Some(Value::Object(before))) => {
            result.sort_keys();
            for (name, patch) in patch {
                if let Some(value) = result.get_mut(name) {
                    sort_touched(value, patch, before.get(name));
                }
            }
        }
        (_, _, Some(Value::Object(_))) => {}
        (result, ..) => result.sort_all(),
    }
}

#[cfg(test)]
mod tests {
    use crate::tree::json;

    use super::*;

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
        let text = |text: &str| crate::json::parse_text(text).expect("JSON").value;
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
}
