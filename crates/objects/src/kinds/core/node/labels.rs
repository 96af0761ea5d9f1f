//! Deprecated labels of nodes (`pkg/api/node/util.go`).

use crate::kinds::behavior::format::label_value;
use crate::kinds::prelude::*;

/// The warning about a label, if it is deprecated.
pub fn deprecated(key: &str) -> Option<&'static str> {
    Some(match key {
        "beta.kubernetes.io/arch" => r#"deprecated since v1.14; use "kubernetes.io/arch" instead"#,
        "beta.kubernetes.io/os" => r#"deprecated since v1.14; use "kubernetes.io/os" instead"#,
        "failure-domain.beta.kubernetes.io/region" => {
            r#"deprecated since v1.17; use "topology.kubernetes.io/region" instead"#
        }
        "failure-domain.beta.kubernetes.io/zone" => {
            r#"deprecated since v1.17; use "topology.kubernetes.io/zone" instead"#
        }
        "beta.kubernetes.io/instance-type" => {
            r#"deprecated since v1.17; use "node.kubernetes.io/instance-type" instead"#
        }
        "app.kubernetes.io/created-by" => "deprecated since v1.9",
        "scheduler.alpha.kubernetes.io/preferAvoidPods" => {
            "deprecated since v1.22; use Taints and Tolerations instead"
        }
        "node-role.kubernetes.io/master" => r#"use "node-role.kubernetes.io/control-plane" instead"#,
        _ => return None,
    })
}

/// Warns about a field that contains a deprecated label.
pub fn key(at: &At<'_, '_>, remarks: &mut Remarks<'_>) {
    if let Some(message) = deprecated(at.text()) {
        remarks.on(at, format_args!("{} is {message}", at.text()));
    }
}

/// Warns about deprecated labels in a node selector.
pub fn selector(at: &At<'_, '_>, remarks: &mut Remarks<'_>) {
    for (label, at) in at.entries() {
        if let Some(message) = deprecated(label) {
            remarks.on(&at, message);
        }
    }
}

/// Warns about a term of a node selector. Terms of preferences (`weighed`) were not validated, so they may contain
/// values that no label can have.
pub fn term(at: &At<'_, '_>, weighed: bool, remarks: &mut Remarks<'_>) {
    for expression in at.get("matchExpressions").items() {
        key(&expression.get("key"), remarks);
        if !weighed {
            continue;
        }
        for value in expression.get("values").items() {
            for message in label_value(value.text()) {
                remarks.on(&value, format_args!("{} is invalid, {message}", value.text()));
            }
        }
    }
}
