//! Tests of `depth`.

use rowplane_objects::codec::depth::depth;
use rowplane_objects::tree::json;

#[test]
fn counts_the_deepest_branch() {
    for (value, want) in [
        (json!("text"), 0),
        (json!({}), 1),
        (json!([]), 1),
        (json!([1, [2, {"a": null}], {}]), 3),
        (json!({"a": {"b": 1}, "c": [[[]]]}), 4),
    ] {
        assert_eq!(depth(&value), want, "{value}");
    }
}
