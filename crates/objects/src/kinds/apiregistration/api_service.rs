//! APIServices (kube-aggregator's `pkg/apis/apiregistration/validation`).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::fields;
use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, condition, text, text_column};
use crate::kinds::behavior::format::{dns1035_label, dns1123_subdomain, path_segment};
use crate::kinds::behavior::names::NameFormat;
use crate::kinds::behavior::strategy::status::RESET;
use crate::kinds::prelude::*;
use crate::tree::json;

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("apiservices", "APIService")
        .category("api-extensions")
        .sub(&["status"])
        .conditional(),
    strategy: Strategy {
        names: NameFormat::PathSegment,
        status_metadata: RESET,
        hooks: &ApiServiceHooks,
        ..Strategy::PLAIN
    },
    rules: Rules::timeless(create).with_status(status).without_finalizers(),
    warnings: KindWarnings::NONE,
    columns: &COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

#[derive(Debug)]
struct ApiServiceHooks;

impl Hooks for ApiServiceHooks {
    fn prepare_create(&self, object: &mut ObjectMap, writer: &Writer<'_>) {
        prepare_service(object, writer.now);
    }
}

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let (metadata, spec) = (At::member(object, "metadata"), At::member(object, "spec"));
    let (name, group, version) = (metadata.get("name"), spec.get("group"), spec.get("version"));
    let wanted = format!("{}.{}", version.text(), group.text());
    // A name that is missing, or none for a path, is told elsewhere. A prefix has to be what a name has to be.
    for name in [metadata.get("generateName"), name] {
        if !name.text().is_empty() && name.text() != wanted && path_segment(name.text()).is_empty() {
            let why = format!("must be `spec.version+\".\"+spec.group`: \"{wanted}\"");
            errors.invalid(&name, name.text(), &why);
        }
    }
    if !group.text().is_empty() {
        errors.in_format(&group, dns1123_subdomain);
    } else if version.text() != "v1" {
        errors.required(&group, "only v1 may have an empty group and it better be legacy kube");
    }
    errors.in_format(&version, dns1035_label);
    for (name, most) in [("groupPriorityMinimum", 20000), ("versionPriority", 1000)] {
        let number = spec.get(name);
        if !(1..=most).contains(&number.int()) {
            errors.invalid(&number, number.int(), &format!("must be positive and less than {most}"));
        }
    }
    let (bundle, insecure, service) =
        (spec.get("caBundle"), spec.get("insecureSkipTLSVerify"), spec.get("service"));
    if !service.is_set() {
        if !bundle.text().is_empty() {
            let bytes = STANDARD.decode(bundle.text()).map_or(0, |bytes| bytes.len());
            errors.invalid(&bundle, &*format!("{bytes} bytes"), "local APIServices may not have a caBundle");
        }
        if insecure.flag() {
            errors.invalid(&insecure, true, "local APIServices may not have insecureSkipTLSVerify");
        }
        return;
    }
    for name in ["namespace", "name"] {
        let name = service.get(name);
        errors.present(&name, "");
    }
    let port = service.get("port");
    let number = port.opt_int().unwrap_or(443);
    if !(1..=65535).contains(&number) {
        errors.invalid(&port, number, "port is not valid: must be between 1 and 65535, inclusive");
    }
    if insecure.flag() && !bundle.text().is_empty() {
        errors.invalid(&insecure, true, "may not be true if caBundle is present");
    }
}

pub fn status(new: &ObjectMap, _: &ObjectMap, errors: &mut Errors) {
    let status = At::member(new, "status");
    for condition in status.get("conditions").items() {
        let status = condition.get("status");
        errors.one_of(&status, status.text(), &["True", "False", "Unknown"]);
    }
}

/// An APIService without a service refers to this server, and is available at once.
pub fn prepare_service(object: &mut ObjectMap, now: &str) {
    if fields::at(object, &["spec", "service"]).is_some_and(|service| !service.is_null()) {
        return;
    }
    let condition = json!({
        "type": "Available",
        "status": "True",
        "lastTransitionTime": now,
        "reason": "Local",
        "message": "Local APIServices are always available",
    });
    fields::object_mut(object, "status").insert("conditions", vec![condition].into());
}

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Service", "Service behind the API, or Local.").of(|object, _| backend(object).into()),
        text_column("Available", "Whether the API can be reached.")
            .of(|object, _| availability(object).into()),
        AGE,
    ],
    ..PLAIN
};

fn backend(api_service: &Value) -> String {
    let service = &api_service["spec"]["service"];
    if !service.is_object() {
        return "Local".to_owned();
    }
    format!("{}/{}", text(&service["namespace"]), text(&service["name"]))
}

fn availability(api_service: &Value) -> String {
    let Some(available) = condition(&api_service["status"]["conditions"], "Available") else {
        return "Unknown".to_owned();
    };
    match (text(&available["status"]), text(&available["reason"])) {
        (status @ "True", _) | (status, "") => status.to_owned(),
        (status, reason) => format!("{status} ({reason})"),
    }
}
