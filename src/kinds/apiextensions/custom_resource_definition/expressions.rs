//! The rules in a schema, as expressions of CEL.

use crate::expression::{Checked, Environment, Type};
use crate::gotext;
use crate::kinds::apiextensions::custom_resource_definition::declarations::{OLD_SELF, environment};
use crate::kinds::behavior::rules::at::{At, Path};
use crate::kinds::behavior::rules::errors::{Errors, Verbatim};

/// Whether they fit the schema they stand in, here and below. `fleeting` is what changes as a whole around here, so that
/// nothing in it can be told from something of before.
pub fn validate(schema: &At<'_, '_>, root: bool, fleeting: Option<&Path<'_>>, errors: &mut Errors) {
    let atomic = schema.get("x-kubernetes-map-type").text() == "atomic";
    let around = if atomic { fleeting.or(Some(schema.path())) } else { fleeting };
    for (_, property) in schema.get("properties").entries() {
        validate(&property, embedded(&property), around, errors);
    }
    let values = schema.get("additionalProperties");
    if values.value().is_object() {
        validate(&values, embedded(&values), fleeting, errors);
    }
    let items = schema.get("items");
    if items.value().is_object() {
        let by_key = schema.get("x-kubernetes-list-type").text() == "map";
        let around = if by_key { fleeting } else { fleeting.or(Some(schema.path())) };
        validate(&items, embedded(&items), around, errors);
    }
    let rules = schema.get("x-kubernetes-validations");
    if rules.is_empty() {
        return;
    }
    match environment(schema.value(), root) {
        Some(environment) => {
            rules.items().for_each(|rule| self::rule(&rule, &environment, fleeting, errors));
        }
        None => errors.internal(
            &rules,
            "internal error: failed to construct type information for x-kubernetes-validations rules: unable to \
             convert structural schema to CEL declarations",
        ),
    }
}

fn embedded(schema: &At<'_, '_>) -> bool {
    schema.get("x-kubernetes-embedded-resource").flag()
}

pub fn rule(rule: &At<'_, '_>, environment: &Environment, fleeting: Option<&Path<'_>>, errors: &mut Errors) {
    let (expression, message, optional) =
        (rule.get("rule"), rule.get("messageExpression"), rule.get("optionalOldSelf"));
    if expression.text().trim().is_empty() {
        return;
    }
    let of_optional = optional.flag().then(|| {
        let old = environment.global(OLD_SELF).map_or(Type::Dyn, Type::optional);
        environment.clone().with_variable(OLD_SELF, old)
    });
    let environment = of_optional.as_ref().unwrap_or(environment);
    let mut uses_old = false;
    // Nothing is said of a rule that was not looked at.
    let Some(checked) = errors.check(expression.text(), environment) else { return };
    match checked {
        Ok(Checked { result: Type::Bool, uses, .. }) => {
            uses_old = uses.iter().any(|name| name == OLD_SELF);
            if message.is_set() && !message.text().is_empty() {
                let why = match errors.check(message.text(), environment) {
                    None | Some(Ok(Checked { result: Type::String, .. })) => None,
                    Some(Ok(_)) => Some("messageExpression must evaluate to a string".to_owned()),
                    Some(Err(why)) => Some(format!("messageExpression {why}")),
                };
                why.iter().for_each(|why| errors.invalid(&message, shown(rule), why));
            }
        }
        Ok(_) => errors.invalid(&expression, shown(rule), "cel expression must evaluate to a bool"),
        Err(why) => errors.invalid(&expression, shown(rule), &why),
    }
    if let Some(fleeting) = fleeting.filter(|_| uses_old) {
        let why =
            format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {fleeting}");
        errors.invalid(&expression, expression.text(), &why);
    }
    if !uses_old && optional.is_set() {
        errors.invalid(&optional, optional.flag(), "may not be set if oldSelf is not used in rule");
    }
}

/// As upstream prints its internal struct.
fn shown(rule: &At<'_, '_>) -> Verbatim {
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
