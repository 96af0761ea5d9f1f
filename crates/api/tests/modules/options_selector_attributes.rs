//! Tests of `selector::attributes`.

use rowplane_access::auth::authorizer::{Operator, Requirement, Selectors};
use rowplane_api::options::query::Query;
use rowplane_api::options::selector::attributes::{QuerySelectors, ReviewSelectors};
use rowplane_objects::tree::{Value, json};

fn asked(attributes: Value) -> ReviewSelectors {
    ReviewSelectors::of(attributes.as_object().expect("attributes"))
}

fn one(key: &str, operator: Operator, values: &[&str]) -> Requirement {
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    Requirement { key: key.to_owned(), operator, values }
}

#[test]
fn selectors_of_a_query() {
    let of = |query: &str| QuerySelectors::of(&Query::parse(query));
    let selectors = of("fieldSelector=a%3D1,b!%3D2&labelSelector=c+in+(y,x),!d");
    assert_eq!(selectors.fields(), [one("a", Operator::In, &["1"]), one("b", Operator::NotIn, &["2"])]);
    assert_eq!(
        selectors.labels(),
        [one("c", Operator::In, &["x", "y"]), one("d", Operator::DoesNotExist, &[])]
    );
    let broken = of("fieldSelector=a&labelSelector=a+in");
    assert!(broken.fields().is_empty() && broken.labels().is_empty());
}

#[test]
fn auth_77_what_cannot_be_parsed_is_left_out_and_told() {
    let both = asked(json!({"fieldSelector": {"rawSelector": "a"}, "labelSelector": {"requirements": [
        {"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Near", "values": ["c"]}]}}));
    assert_eq!(both.labels(), [one("a", Operator::Exists, &[])]);
    assert!(both.fields().is_empty());
    assert_eq!(
        both.left_out,
        [
            "spec.resourceAttributes.fieldSelector ignored due to parse error",
            "spec.resourceAttributes.labelSelector partially ignored due to parse error",
        ]
    );
    let two = json!([{"key": "a", "operator": "In", "values": ["1", "2"]}]);
    assert_eq!(asked(json!({"fieldSelector": {"requirements": two}})).left_out.len(), 1);
    assert!(asked(json!({})).left_out.is_empty());
}
