//! Rules of admission policies and their bindings (`pkg/apis/admissionregistration/validation`).

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::expression::is_reserved;
use crate::kinds::admissionregistration::webhook;
use crate::kinds::behavior::columns::Column;
use crate::kinds::behavior::columns::cell::{
    AGE, NAME, PLAIN, age, cells, integer_column, list, name, text, text_column,
};
use crate::kinds::behavior::format::{dns1035_label, dns1123_subdomain, label_key, path_segment};
use crate::kinds::behavior::rules::expression::{Admission, Purpose};
use crate::kinds::behavior::rules::{condition, selector};
use crate::kinds::prelude::*;

const AUDIT_ANNOTATIONS: usize = 20;

const AUDIT_EXPRESSION: usize = 5 * 1024;

const MUTATED: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];

pub fn validating(object: &ObjectMap, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    let variables = !spec.get("variables").is_empty();
    let admission = common(&spec, if variables { Variables::Declared } else { Variables::Unknown }, errors);
    let (validations, annotations) = (spec.get("validations"), spec.get("auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        let why = "validations or auditAnnotations must contain at least one item";
        errors.required(&validations, why);
        errors.required(&annotations, why);
    }
    for validation in validations.items() {
        self::validation(&validation, &admission, errors);
    }
    if annotations.len() > AUDIT_ANNOTATIONS {
        let why = format!("must not have more than {AUDIT_ANNOTATIONS} auditAnnotations");
        errors.invalid(&annotations, annotations.value(), &why);
    }
    let metadata = At::member(object, "metadata");
    let (name, mut keys) = (metadata.get("name").text(), BTreeSet::new());
    for annotation in annotations.items() {
        let (key, expression) = (annotation.get("key"), annotation.get("valueExpression"));
        let whole = format!("{name}/{}", key.text());
        if name.is_empty() {
            errors.invalid(&key, key.text(), "requires metadata.name be non-empty");
        } else {
            errors.invalid_each(&key, &whole, label_key(&whole));
        }
        match expression.text().trim().len() {
            0 => errors.required(&expression, "valueExpression is not specified"),
            length if length > AUDIT_EXPRESSION => {
                errors.required(&expression, &format!("must not exceed {AUDIT_EXPRESSION} bytes in length"));
            }
            _ => {
                let why = admission.problem(expression.text().trim(), Purpose::Annotation, errors);
                why.iter().for_each(|why| errors.invalid(&expression, expression.text(), why));
            }
        }
        errors.distinct_from(&key, &mut keys);
    }
}

pub fn status(new: &ObjectMap, _: &ObjectMap, errors: &mut Errors) {
    let status = At::member(new, "status");
    for warning in status.dig(&["typeChecking", "expressionWarnings"]).items() {
        for name in ["warning", "fieldRef"] {
            let text = warning.get(name);
            if text.text().trim().is_empty() {
                errors.required(&text, "");
            }
        }
    }
    condition::validate_all(&status.get("conditions"), errors);
}

pub fn mutating(object: &ObjectMap, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    let admission = common(&spec, Variables::Declared, errors).patching();
    mutated_only(&spec.get("matchConstraints"), errors);
    let mutations = spec.get("mutations");
    errors.present(&mutations, "mutations must contain at least one item");
    for mutation in mutations.items() {
        self::mutation(&mutation, &admission, errors);
    }
    let again = spec.get("reinvocationPolicy");
    errors.present_one_of(&again, &["IfNeeded", "Never"]);
}

pub fn validating_binding(object: &ObjectMap, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    binding(&spec, errors);
    let actions = spec.get("validationActions");
    let mut seen = BTreeSet::new();
    for action in actions.items() {
        errors.one_of(&action, action.text(), &["Audit", "Deny", "Warn"]);
        errors.distinct_from(&action, &mut seen);
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        let why = "must not contain both Deny and Warn (repeating the same validation failure information in the API \
                   response and headers serves no purpose)";
        errors.invalid(&actions, actions.value(), why);
    }
}

pub fn mutating_binding(object: &ObjectMap, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    errors.present(&spec.get("policyName"), "");
    binding(&spec, errors);
    mutated_only(&spec.get("matchResources"), errors);
}

/// Whether expressions may use variables.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Variables {
    Declared,
    Unknown,
}

/// Validates what both kinds of policies have. Returns the names that their expressions may use.
fn common(spec: &At<'_, '_>, variables: Variables, errors: &mut Errors) -> Admission {
    let failure = spec.get("failurePolicy");
    errors.one_of(&failure, failure.opt_text().unwrap_or("Fail"), &["Fail", "Ignore"]);
    param_kind(&spec.get("paramKind"), errors);
    let constraints = spec.get("matchConstraints");
    if constraints.is_set() {
        matched(&constraints, errors);
        errors.present(&constraints.get("resourceRules"), "");
    } else {
        errors.required(&constraints, "");
    }
    let mut admission = Admission::new(spec.get("paramKind").is_set());
    webhook::conditions(&spec.get("matchConditions"), &admission, errors);
    if variables == Variables::Declared {
        admission = admission.composed();
    }
    for variable in spec.get("variables").items() {
        let (name, expression) = (variable.get("name"), variable.get("expression"));
        if name.text().trim().is_empty() {
            errors.required(&name, "name is not specified");
        } else if !is_identifier(name.text()) {
            errors.invalid(&name, name.text(), "must be a valid CEL identifier");
        }
        if expression.text().trim().is_empty() {
            errors.required(&expression, "expression is not specified");
        }
        admission.declare(name.text(), &expression, errors);
    }
    admission
}

fn is_identifier(name: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(known) && !is_reserved(name)
}

fn param_kind(kind: &At<'_, '_>, errors: &mut Errors) {
    if !kind.is_set() {
        return;
    }
    let (at, kind) = (kind.get("apiVersion"), kind.get("kind"));
    let text = at.text();
    if text.is_empty() {
        errors.required(&at, "");
    } else if text.matches('/').count() > 1 {
        errors.invalid(&at, text, &format!("unexpected GroupVersion string: {text}"));
    } else {
        let (group, version) = text.split_once('/').unwrap_or(("", text));
        let messages = dns1123_subdomain(group);
        if !group.is_empty() && !messages.is_empty() {
            errors.invalid(&at, group, &messages.join(","));
        }
        let messages = dns1035_label(version);
        if version.is_empty() {
            errors.invalid(&at, text, "version must be specified");
        } else if !messages.is_empty() {
            errors.invalid(&at, version, &messages.join(","));
        }
    }
    let messages = dns1035_label(&kind.text().to_lowercase());
    if kind.text().is_empty() {
        errors.required(&kind, "");
    } else if !messages.is_empty() {
        let why = format!("may have mixed case, but should otherwise match: {}", messages.join(","));
        errors.invalid(&kind, kind.text(), &why);
    }
}

/// Validates the selection of requests.
fn matched(resources: &At<'_, '_>, errors: &mut Errors) {
    if !resources.is_set() {
        return;
    }
    let policy = resources.get("matchPolicy");
    errors.one_of(&policy, policy.opt_text().unwrap_or("Equivalent"), &["Equivalent", "Exact"]);
    for name in ["namespaceSelector", "objectSelector"] {
        selector::validate(&resources.get(name), errors);
    }
    for list in ["resourceRules", "excludeResourceRules"] {
        for rule in resources.get(list).items() {
            let mut seen = BTreeSet::new();
            for name in rule.get("resourceNames").items() {
                errors.in_format(&name, path_segment);
                errors.distinct_from(&name, &mut seen);
            }
            webhook::operations(&rule.get("operations"), errors);
            webhook::rule(&rule, errors);
        }
    }
}

fn mutated_only(resources: &At<'_, '_>, errors: &mut Errors) {
    let rules = resources.get("resourceRules");
    let place = rules.get("operations");
    for rule in rules.items() {
        for operation in rule.get("operations").texts() {
            errors.one_of(&place, operation, &MUTATED);
        }
    }
}

pub fn validation(validation: &At<'_, '_>, admission: &Admission, errors: &mut Errors) {
    let (expression, message) = (validation.get("expression"), validation.get("message"));
    let blank = |text: &str| !text.is_empty() && text.trim().is_empty();
    if expression.text().trim().is_empty() {
        errors.required(&expression, "expression is not specified");
    }
    admission.validate(&expression, Purpose::Truth, errors);
    let other = validation.get("messageExpression");
    if blank(other.text()) {
        errors.invalid(&other, other.text(), "must be non-empty if specified");
    }
    if !other.text().is_empty() {
        admission.unauthorized().validate(&other, Purpose::Message, errors);
    }
    if blank(message.text()) {
        errors.invalid(&message, message.text(), "must be non-empty if specified");
    } else if message.text().trim().contains(['\n', '\r']) {
        errors.invalid(&message, message.text(), "must not contain line breaks");
    }
    let reason = validation.get("reason");
    if reason.is_set() {
        errors.one_of(&reason, reason.text(), &["Forbidden", "Invalid", "RequestEntityTooLarge"]);
    }
}

pub fn mutation(mutation: &At<'_, '_>, admission: &Admission, errors: &mut Errors) {
    let kind = mutation.get("patchType");
    let (wanted, other, purpose) = match kind.text() {
        "" => return errors.required(&kind, ""),
        "JSONPatch" => ("jsonPatch", "applyConfiguration", Purpose::JsonPatch),
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", Purpose::Configuration),
        text => {
            errors.one_of(&kind, text, &["ApplyConfiguration", "JSONPatch"]);
            return;
        }
    };
    let (own, foreign) = (mutation.get(wanted), mutation.get(other));
    if !own.is_set() {
        errors.required(&own, &format!("must be specified when patchType is {}", kind.text()));
    } else if own.get("expression").text().trim().is_empty() {
        errors.required(&own.get("expression"), "");
    }
    admission.validate_trimmed(&own.get("expression"), purpose, errors);
    if foreign.is_set() {
        let why = format!("must not be specified when patchType is {}", kind.text());
        errors.invalid(&foreign, &*format!("{{{other}}}"), &why);
    }
}

/// Validates what both kinds of bindings have.
fn binding(spec: &At<'_, '_>, errors: &mut Errors) {
    let policy = spec.get("policyName");
    errors.in_format_if_given(&policy, dns1123_subdomain);
    param(&spec.get("paramRef"), errors);
    matched(&spec.get("matchResources"), errors);
}

fn param(param: &At<'_, '_>, errors: &mut Errors) {
    if !param.is_set() {
        return;
    }
    let (name, selector) = (param.get("name"), param.get("selector"));
    let (named, selected) = (!name.text().is_empty(), selector.is_set());
    if named {
        errors.in_format(&name, path_segment);
    }
    if named && selected {
        for at in [&name, &selector] {
            errors.forbidden(at, "name and selector are mutually exclusive");
        }
    }
    selector::validate(&selector, errors);
    if !named && !selected {
        errors.required(param, "one of name or selector must be specified");
    }
    let action = param.get("parameterNotFoundAction");
    match action.value() {
        Value::String(text) if !text.is_empty() => _ = errors.one_of(&action, text, &["Deny", "Allow"]),
        _ => errors.required(&action, ""),
    }
}

const PARAM_KIND: Column = text_column("ParamKind", "Kind of the objects that hold the parameters.");

pub static VALIDATING_POLICY: Printer = Printer {
    columns: &[NAME, integer_column("Validations", "Number of validations."), PARAM_KIND, AGE],
    cells: Some(|object, now| policy_cells(object, "validations", now)),
    ..PLAIN
};

pub static MUTATING_POLICY: Printer = Printer {
    columns: &[NAME, integer_column("Mutations", "Number of mutations."), PARAM_KIND, AGE],
    cells: Some(|object, now| policy_cells(object, "mutations", now)),
    ..PLAIN
};

fn policy_cells(policy: &Value, rules: &str, now: Timestamp) -> Vec<Value> {
    let spec = &policy["spec"];
    cells![name(policy), list(&spec[rules]).len(), shown_kind(&spec["paramKind"]), age(policy, now)]
}

fn shown_kind(kind: &Value) -> String {
    if !kind.is_object() {
        return "<unset>".to_owned();
    }
    format!("{}/{}", text(&kind["apiVersion"]), text(&kind["kind"]))
}
