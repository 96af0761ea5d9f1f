//! Classes of ingresses.

use super::super::at::At;
use super::super::domain_path;
use super::super::errors::Errors;
use super::super::format::dns1123_label;
use super::super::same::immutable_text;
use super::ingress::reference;
use crate::api::ObjectMap;

const CONTROLLER_MAX: usize = 250;

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    let controller = spec.get("controller");
    if controller.text().len() > CONTROLLER_MAX {
        errors.too_long(&controller, CONTROLLER_MAX);
    }
    domain_path(&controller, controller.text(), errors);
    let parameters = spec.get("parameters");
    if parameters.is_set() {
        self::parameters(&parameters, errors);
    }
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let (spec, old) = (At::member(new, "spec"), At::member(old, "spec"));
    immutable_text(&spec.get("controller"), &old.get("controller"), errors);
    create(new, errors);
}

fn parameters(at: &At<'_, '_>, errors: &mut Errors) {
    reference(at, errors);
    let (scope, namespace) = (at.get("scope"), at.get("namespace"));
    // Defaulting says Cluster.
    match (scope.opt_text().unwrap_or("Cluster"), namespace.opt_text()) {
        ("Namespace", None) => errors.required(&namespace, "`parameters.scope` is set to 'Namespace'"),
        ("Namespace", Some(name)) => errors.invalid_each(&namespace, name, dns1123_label(name)),
        ("Cluster", Some(_)) => errors.forbidden(&namespace, "`parameters.scope` is set to 'Cluster'"),
        ("Cluster", None) => {}
        (other, _) => errors.not_supported(&scope, other, &["Cluster", "Namespace"]),
    }
}
