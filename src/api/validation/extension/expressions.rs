//! The rules in a schema, as expressions of CEL.

use crate::api::validation::at::At;
use crate::api::validation::errors::{Errors, Verbatim};
use crate::api::validation::expression::problem;
use crate::gotext;

/// Whether they can be read, here and below.
pub fn validate(schema: &At<'_, '_>, errors: &mut Errors) {
    for rule in schema.get("x-kubernetes-validations").items() {
        for expression in ["rule", "messageExpression"].map(|name| rule.get(name)) {
            if let Some(why) = problem(expression.text()).filter(|_| expression.is_set()) {
                errors.invalid(&expression, shown_rule(&rule), &why);
            }
        }
    }
    for (_, property) in schema.get("properties").entries() {
        validate(&property, errors);
    }
    for name in ["additionalProperties", "items"] {
        let below = schema.get(name);
        if below.value().is_object() {
            validate(&below, errors);
        }
    }
}

/// As upstream prints its internal struct.
fn shown_rule(rule: &At<'_, '_>) -> Verbatim {
    let text = |name: &str| gotext::json(&rule.get(name).text().into());
    Verbatim(format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        text("rule"),
        text("message"),
        text("messageExpression"),
        gotext::json(rule.get("reason").value()),
        text("fieldPath"),
        gotext::json(rule.get("optionalOldSelf").value())
    ))
}
