//! Tests of `options::selector::label::structured`.

use rowplane_api::options::selector::label::LabelSelector;
use rowplane_values::tree::Value;
use rowplane_values::tree::json;

fn matches(selector: Value, labels: &[(&str, &str)]) -> Option<bool> {
    let selector = LabelSelector::of_object(Some(&selector))?;
    let value = |key: &str| labels.iter().find(|(label, _)| *label == key).map(|(_, value)| *value);
    Some(selector.matches(value))
}

#[test]
fn all_of_it_must_hold() {
    let selector = json!({"matchLabels": {"a": "1"}, "matchExpressions": [
        {"key": "b", "operator": "In", "values": ["x", "y"]}, {"key": "c", "operator": "DoesNotExist"}]});
    assert_eq!(matches(selector.clone(), &[("a", "1"), ("b", "y")]), Some(true));
    assert_eq!(matches(selector.clone(), &[("a", "1"), ("b", "z")]), Some(false));
    assert_eq!(matches(selector.clone(), &[("a", "1"), ("b", "y"), ("c", "")]), Some(false));
    assert_eq!(matches(selector, &[("b", "y")]), Some(false));
}

#[test]
fn empty_selects_all_and_malformed_nothing() {
    assert_eq!(matches(json!({}), &[]), Some(true));
    for bad in [
        json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
        json!(1),
        json!({"matchLabels": {"a": 1}}),
    ] {
        assert_eq!(matches(bad, &[]), None);
    }
    assert!(LabelSelector::of_object(None).is_none());
}
