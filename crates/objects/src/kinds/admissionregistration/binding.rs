//! Columns of the bindings of admission policies.

use crate::kinds::behavior::columns::Printer;
use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, age, cells, name, text, text_column};
use crate::kinds::behavior::columns::text::selector_dump;
use crate::tree::Value;

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

/// `ns/name`, or `*/name` if the reference names no namespace.
fn param_ref(reference: &Value) -> String {
    match (text(&reference["name"]), text(&reference["namespace"])) {
        ("", _) if reference["selector"].is_object() => selector_dump(&reference["selector"]),
        ("", _) => "<unset>".to_owned(),
        (name, "") => format!("*/{name}"),
        (name, namespace) => format!("{namespace}/{name}"),
    }
}
