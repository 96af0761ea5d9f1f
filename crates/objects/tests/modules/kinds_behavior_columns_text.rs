//! Tests of `kinds::behavior::columns::text`.

use rowplane_objects::kinds::behavior::columns::text::{labels, selector, selector_dump, shortened};
use rowplane_values::tree::json;

#[test]
fn labels_are_sorted() {
    assert_eq!(labels(&json!({"b": "2", "a": "1"})), "a=1,b=2");
    assert_eq!(labels(&json!({})), "<none>");
    assert_eq!(labels(&json!(7)), "<none>");
}

#[test]
fn selectors() {
    let cases = [
        (json!(null), "<none>"),
        (json!({}), "<none>"),
        (json!({"matchLabels": {"app": "web"}}), "app=web"),
        (
            json!({"matchLabels": {"z": "1"}, "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["b", "a"]},
                {"key": "env", "operator": "NotIn", "values": ["prod"]},
                {"key": "gone", "operator": "DoesNotExist"},
                {"key": "here", "operator": "Exists"},
            ]}),
            "env notin (prod),!gone,here,tier in (a,b),z=1",
        ),
        (json!({"matchExpressions": [{"key": "a", "operator": "In"}]}), "<error>"),
        (json!({"matchExpressions": [{"key": "a", "operator": "Near"}]}), "<error>"),
        (json!({"matchExpressions": [5]}), "<error>"),
    ];
    for (value, expected) in cases {
        assert_eq!(selector(&value), expected, "{value}");
    }
}

#[test]
fn lists_are_shortened_after_three() {
    assert_eq!(shortened(["a", "b", "c"], "<unset>"), "a,b,c");
    assert_eq!(shortened(["a", "b", "c", "d", "e"], "<unset>"), "a,b,c + 2 more...");
    assert_eq!(shortened([""; 0], "<unset>"), "<unset>");
}

#[test]
fn selected_parameters_print_as_go_does() {
    let selector = json!({"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": [
        {"key": "k", "operator": "In", "values": ["x", "y"]}
    ]});
    assert_eq!(
        selector_dump(&selector),
        "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},\
         MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:k,Operator:In,Values:[x y],},},}"
    );
}
