//! RuntimeClasses.

use std::collections::BTreeSet;

use crate::gotext;
use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, text_column};
use crate::kinds::behavior::format::dns1123_label;
use crate::kinds::behavior::rules::errors::Verbatim;
use crate::kinds::behavior::rules::{resource, selector};
use crate::kinds::core::node::labels::deprecated;
use crate::kinds::core::pod_spec::scheduling;
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("runtimeclasses", "RuntimeClass").creates_on_update().conditional(),
    strategy: Strategy::PLAIN,
    rules: Rules::new(create, update).without_finalizers(),
    warnings: KindWarnings::same(warn),
    columns: &COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let overhead = At::member(object, "overhead");
    let (limits, fixed) = (overhead.get("limits"), overhead.get("podFixed"));
    for (name, amount) in fixed.entries() {
        // Upstream validates them as limits, and its errors say so.
        let place = limits.key(name).holding(amount.value());
        resource::container_name(&place, name, errors);
        resource::amount(&place, name, errors);
    }
    let scheduling = At::member(object, "scheduling");
    selector::labels(&scheduling.get("nodeSelector"), errors);
    let tolerations = scheduling.get("tolerations");
    scheduling::tolerations(&tolerations, errors);
    let mut seen = BTreeSet::new();
    for toleration in tolerations.items() {
        let key = ["key", "operator", "value", "effect"].map(|name| toleration.get(name).text());
        if seen.contains(&key) {
            let [key, operator, value, effect] = key.map(|text| gotext::json(&text.into()));
            let seconds = gotext::json(toleration.get("tolerationSeconds").value());
            let shown = format!(
                "{{\"Key\":{key},\"Operator\":{operator},\"Value\":{value},\"Effect\":{effect},\"TolerationSeconds\":{seconds}}}"
            );
            errors.duplicate(&toleration, Verbatim(shown));
        } else {
            seen.insert(key);
        }
    }
}

/// The declared rules end with the error that the handler is immutable, so that its form is judged here.
pub fn update(new: &ObjectMap, _: &ObjectMap, errors: &mut Errors) {
    let handler = At::member(new, "handler");
    errors.in_format_if_given(&handler, dns1123_label);
    create(new, errors);
}

pub fn warn(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    let scheduling = At::member(object, "scheduling");
    let selector = scheduling.get("nodeSelector");
    for message in selector.entries().filter_map(|(label, _)| deprecated(label)) {
        remarks.on(&selector, message);
    }
}

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Handler", "Configuration of the container runtime that the class stands for.")
            .at("handler"),
        AGE,
    ],
    ..PLAIN
};
