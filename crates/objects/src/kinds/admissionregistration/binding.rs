//! Columns of the bindings of admission policies.

use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, text, text_column};
use crate::kinds::behavior::columns::text::selector_dump;
use crate::kinds::prelude::*;

pub static POLICY_BINDING: Printer = Printer {
    columns: &[
        NAME,
        text_column("PolicyName", "Policy that is put to use.").at("spec.policyName"),
        text_column("ParamRef", "Object or objects that hold the parameters.")
            .of(|object, _| param_ref(&object["spec"]["paramRef"]).into()),
        AGE,
    ],
    ..PLAIN
};

/// `ns/name`, or `*/name` if the reference names no namespace.
fn param_ref(reference: &Value) -> String {
    match (text(&reference["name"]), text(&reference["namespace"])) {
        ("", _) if reference["selector"].is_object() => selector_dump(&reference["selector"]),
        ("", _) => "<unset>".to_owned(),
        (name, "") => format!("*/{name}"),
        (name, namespace) => format!("{namespace}/{name}"),
    }
}
