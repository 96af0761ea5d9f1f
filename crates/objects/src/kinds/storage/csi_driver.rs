//! CSIDrivers.

use std::collections::BTreeSet;

use crate::fields;
use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, boolean_column, list, text, text_column};
use crate::kinds::behavior::columns::text::join;
use crate::kinds::behavior::rules::same::immutable;
use crate::kinds::behavior::strategy::generation::Generation;
use crate::kinds::behavior::strategy::status::RESET;
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("csidrivers", "CSIDriver").generation().conditional().returns_deleted(),
    strategy: Strategy { status_metadata: RESET, generation: Generation::FromFirstChange, ..Strategy::PLAIN },
    rules: Rules::new(create, update),
    warnings: KindWarnings::new(warn, warn_update),
    columns: &COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    // Fields with defaults, such as whether a driver attaches volumes, need no check.
    let spec = At::member(object, "spec");
    let policy = spec.get("fsGroupPolicy");
    let policies = ["File", "None", "ReadWriteOnceWithFSType"];
    errors.one_of(&policy, policy.opt_text().unwrap_or("ReadWriteOnceWithFSType"), &policies);
    let requests = spec.get("tokenRequests");
    tokens(&requests, errors);
    let modes = spec.get("volumeLifecycleModes");
    for mode in modes.texts() {
        errors.one_of(&modes, mode, &["Persistent", "Ephemeral"]);
    }
    let period = spec.get("nodeAllocatableUpdatePeriodSeconds");
    if period.opt_int().is_some_and(|period| period < 10) {
        errors.invalid(&period, period.int(), "must be greater than or equal to 10 seconds");
    }
    let secrets = spec.get("serviceAccountTokenInSecrets");
    if let Some(flag) = secrets.opt_flag()
        && requests.is_empty()
    {
        let why = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        errors.invalid(&secrets, flag, why);
    }
}

fn tokens(list: &At<'_, '_>, errors: &mut Errors) {
    let mut audiences = BTreeSet::new();
    for request in list.items() {
        let (audience, seconds) = (request.get("audience"), request.get("expirationSeconds"));
        if !audiences.insert(audience.text()) {
            errors.duplicate(&audience, audience.text());
            continue;
        }
        let Some(number) = seconds.opt_int() else { continue };
        if number < 600 {
            errors.invalid(&seconds, number, "may not specify a duration less than 10 minutes");
        }
        if number > 1 << 32 {
            errors.invalid(&seconds, number, "may not specify a duration larger than 2^32 seconds");
        }
    }
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    create(new, errors);
    let (spec, before) = (At::member(new, "spec"), At::member(old, "spec"));
    let attach = |spec: &At<'_, '_>| spec.get("attachRequired").opt_flag().unwrap_or(true);
    if attach(&spec) != attach(&before) {
        // Upstream uses this name.
        errors.invalid(&spec.get("attachedRequired"), attach(&spec), "field is immutable");
    }
    immutable(&spec.get("volumeLifecycleModes"), &before.get("volumeLifecycleModes"), errors);
}

const TOKENS: &str = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent \
                      possible logging of tokens in volume attributes";

pub fn warn(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    let spec = At::member(object, "spec");
    if !spec.get("tokenRequests").is_empty() && !spec.get("serviceAccountTokenInSecrets").is_set() {
        remarks.say(TOKENS);
    }
}

pub fn warn_update(new: &ObjectMap, old: &ObjectMap, remarks: &mut Remarks<'_>) {
    let requests = ["spec", "tokenRequests"];
    if fields::at(new, &requests) != fields::at(old, &requests) {
        warn(new, remarks);
    }
}

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        boolean_column("AttachRequired", "Whether volumes are attached before they are mounted.")
            .of(|driver, _| driver["spec"]["attachRequired"].as_bool().unwrap_or(true).into()),
        boolean_column("PodInfoOnMount", "Whether the driver is told of the pod when it mounts.")
            .at("spec.podInfoOnMount"),
        boolean_column("StorageCapacity", "Whether the scheduler heeds the capacity the driver reports.")
            .at("spec.storageCapacity"),
        text_column("TokenRequests", "Audiences of the service account tokens that the driver gets.")
            .of(|driver, _| token_audiences(&driver["spec"]["tokenRequests"]).into()),
        boolean_column("RequiresRepublish", "Whether mounted volumes are published again and again.")
            .at("spec.requiresRepublish"),
        text_column("Modes", "Volume life cycles that the driver supports.")
            .of(|driver, _| modes(list(&driver["spec"]["volumeLifecycleModes"])).into()),
        AGE,
    ],
    ..PLAIN
};

fn modes(modes: &[Value]) -> String {
    if modes.is_empty() { "<none>".to_owned() } else { join(modes.iter().map(text), ",") }
}

fn token_audiences(requests: &Value) -> String {
    match requests.as_array() {
        Some(requests) => join(requests.iter().map(|request| text(&request["audience"])), ","),
        None => "<unset>".to_owned(),
    }
}
