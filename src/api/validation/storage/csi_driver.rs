//! Drivers of storage.

use std::collections::BTreeSet;

use super::super::at::At;
use super::super::errors::Errors;
use super::super::same::immutable;
use crate::api::ObjectMap;

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    // What says whether a driver attaches, tells of pods and so on is filled in by defaulting.
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
        // Under upstream's name.
        errors.invalid(&spec.get("attachedRequired"), attach(&spec), "field is immutable");
    }
    immutable(&spec.get("volumeLifecycleModes"), &before.get("volumeLifecycleModes"), errors);
}
