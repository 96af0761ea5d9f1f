//! Classes of container runtimes.

use std::collections::BTreeSet;

use super::at::At;
use super::errors::{Errors, Verbatim};
use super::format::dns1123_label;
use super::same::immutable_text;
use super::{pod, resource, selector};
use crate::api::ObjectMap;
use crate::gotext;

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let handler = At::member(object, "handler");
    errors.required_in_format(&handler, dns1123_label);
    let overhead = At::member(object, "overhead");
    let (limits, fixed) = (overhead.get("limits"), overhead.get("podFixed"));
    for (name, amount) in fixed.entries() {
        // Upstream checks them as if they were limits, and says so.
        let place = limits.key(name).holding(amount.value());
        resource::container_name(&place, name, errors);
        resource::amount(&place, name, errors);
    }
    let scheduling = At::member(object, "scheduling");
    selector::labels(&scheduling.get("nodeSelector"), errors);
    let tolerations = scheduling.get("tolerations");
    pod::tolerations(&tolerations, errors);
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

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    create(new, errors);
    immutable_text(&At::member(new, "handler"), &At::member(old, "handler"), errors);
}
