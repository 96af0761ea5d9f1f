//! IngressClasses.

use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, text, text_column};
use crate::kinds::behavior::format::dns1123_label;
use crate::kinds::behavior::rules::domain_path;
use crate::kinds::behavior::rules::same::immutable_text;
use crate::kinds::networking::ingress::reference;
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("ingressclasses", "IngressClass").generation(),
    strategy: Strategy::PLAIN,
    rules: Rules::new(create, update),
    warnings: KindWarnings::NONE,
    columns: &COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

const CONTROLLER_MAX: usize = 250;

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    let controller = spec.get("controller");
    errors.no_longer(&controller, CONTROLLER_MAX);
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

pub fn parameters(at: &At<'_, '_>, errors: &mut Errors) {
    reference(at, errors);
    let (scope, namespace) = (at.get("scope"), at.get("namespace"));
    // The default is Cluster.
    match (scope.opt_text().unwrap_or("Cluster"), namespace.opt_text()) {
        ("Namespace", None) => errors.required(&namespace, "`parameters.scope` is set to 'Namespace'"),
        ("Namespace", Some(name)) => errors.invalid_each(&namespace, name, dns1123_label(name)),
        ("Cluster", Some(_)) => errors.forbidden(&namespace, "`parameters.scope` is set to 'Cluster'"),
        ("Cluster", None) => {}
        (other, _) => errors.not_supported(&scope, other, &["Cluster", "Namespace"]),
    }
}

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Controller", "Controller that serves the class.").at("spec.controller"),
        text_column("Parameters", "Object that configures the controller.")
            .of(|object, _| class_parameters(&object["spec"]["parameters"]).into()),
        AGE,
    ],
    ..PLAIN
};

fn class_parameters(parameters: &Value) -> String {
    if !parameters.is_object() {
        return "<none>".to_owned();
    }
    let (kind, name) = (text(&parameters["kind"]), text(&parameters["name"]));
    match parameters["apiGroup"].as_str() {
        Some(group) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    }
}
