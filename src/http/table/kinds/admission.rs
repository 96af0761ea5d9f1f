//! `admissionregistration.k8s.io`: webhooks, policies and their bindings.

use jiff::Timestamp;

use super::super::cell::{AGE, NAME, PLAIN, age, cells, integer_column, list, name, text, text_column};
use super::super::text::selector_dump;
use super::super::{Column, Printer};
use crate::tree::Value;

pub static WEBHOOK_CONFIGURATION: Printer = Printer {
    columns: &[NAME, integer_column("Webhooks", "Number of webhooks."), AGE],
    cells: |object, now| cells![name(object), list(&object["webhooks"]).len(), age(object, now)],
    ..PLAIN
};

const PARAM_KIND: Column = text_column("ParamKind", "Kind of the objects that hold the parameters.");

pub static VALIDATING_POLICY: Printer = Printer {
    columns: &[NAME, integer_column("Validations", "Number of validations."), PARAM_KIND, AGE],
    cells: |object, now| policy_cells(object, "validations", now),
    ..PLAIN
};

pub static MUTATING_POLICY: Printer = Printer {
    columns: &[NAME, integer_column("Mutations", "Number of mutations."), PARAM_KIND, AGE],
    cells: |object, now| policy_cells(object, "mutations", now),
    ..PLAIN
};

pub static POLICY_BINDING: Printer = Printer {
    columns: &[
        NAME,
        text_column("PolicyName", "Policy that is put to use."),
        text_column("ParamRef", "Object or objects that hold the parameters."),
        AGE,
    ],
    cells: |object, now| {
        let spec = &object["spec"];
        cells![name(object), text(&spec["policyName"]), param_ref(&spec["paramRef"]), age(object, now)]
    },
    ..PLAIN
};

fn policy_cells(policy: &Value, rules: &str, now: Timestamp) -> Vec<Value> {
    let spec = &policy["spec"];
    cells![name(policy), list(&spec[rules]).len(), param_kind(&spec["paramKind"]), age(policy, now)]
}

fn param_kind(kind: &Value) -> String {
    if !kind.is_object() {
        return "<unset>".to_owned();
    }
    format!("{}/{}", text(&kind["apiVersion"]), text(&kind["kind"]))
}

/// `ns/name`, or `*/name` where the reference does not say which namespace.
fn param_ref(reference: &Value) -> String {
    match (text(&reference["name"]), text(&reference["namespace"])) {
        ("", _) if reference["selector"].is_object() => selector_dump(&reference["selector"]),
        ("", _) => "<unset>".to_owned(),
        (name, "") => format!("*/{name}"),
        (name, namespace) => format!("{namespace}/{name}"),
    }
}
