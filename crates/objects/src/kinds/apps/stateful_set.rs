//! StatefulSets.

use std::collections::BTreeSet;

use crate::gotext;
use crate::kinds::apps::rollout::amount;
use crate::kinds::apps::shared::{available_are_ready, collisions_grow, replica_counts, selector_selects};
use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, integer, text_column, wide};
use crate::kinds::behavior::columns::text::{CONTAINERS, IMAGES};
use crate::kinds::behavior::format::dns1123_label;
use crate::kinds::behavior::gated_fields::Node::Under;
use crate::kinds::behavior::names::NameFormat;
use crate::kinds::behavior::rules::errors::Verbatim;
use crate::kinds::behavior::rules::same::{IMMUTABLE, immutable, immutable_text, same};
use crate::kinds::behavior::rules::selector;
use crate::kinds::behavior::strategy::status::StatusRule;
use crate::kinds::core::pod_spec::gated_fields::TEMPLATED;
use crate::kinds::core::pod_template::warnings::{template, template_update};
use crate::kinds::core::{persistent_volume_claim, pod_spec};
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("statefulsets", "StatefulSet")
        .short(&["sts"])
        .category("all")
        .sub(&["scale", "status"])
        .generation(),
    strategy: Strategy {
        names: NameFormat::Dns1123Label,
        status: StatusRule::Reset(r#"{"replicas":0,"availableReplicas":0}"#),
        gated_fields: &[Under("spec", TEMPLATED)],
        ..Strategy::PLAIN
    },
    rules: Rules::new(create, update).with_status(status),
    warnings: KindWarnings::new(warn, warn_update),
    columns: &COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    spec(&At::member(object, "spec"), Old::None, errors);
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let (new, old) = (At::member(new, "spec"), At::member(old, "spec"));
    let mut found = Errors::default();
    spec(&new, Old::Valid, &mut found);
    // Errors that the old object had already are accepted; it is validated only if there are errors.
    if !found.is_empty() {
        let mut before = Errors::default();
        spec(&old, Old::Valid, &mut before);
        if before.is_empty() {
            errors.append(found);
        } else {
            spec(&new, Old::Invalid, errors);
        }
    }
    let selector = new.get("selector");
    if !same(selector.value(), old.get("selector").value()) {
        errors.invalid(&selector, selector::shown(&selector), IMMUTABLE);
    }
    immutable(&new.get("volumeClaimTemplates"), &old.get("volumeClaimTemplates"), errors);
    immutable_text(&new.get("serviceName"), &old.get("serviceName"), errors);
    let policy = new.get("podManagementPolicy");
    if policy.text_or(ORDERED) != old.get("podManagementPolicy").text_or(ORDERED) {
        errors.invalid(&policy, policy.text(), IMMUTABLE);
    }
}

/// The default of `podManagementPolicy`.
const ORDERED: &str = "OrderedReady";

/// The errors that the old object had already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Old {
    None,
    Valid,
    Invalid,
}

fn spec(spec: &At<'_, '_>, old: Old, errors: &mut Errors) {
    let policy = spec.get("podManagementPolicy");
    if !matches!(policy.text_or(ORDERED), ORDERED | "Parallel") {
        errors.invalid(&policy, policy.text(), "must be 'OrderedReady' or 'Parallel'");
    }
    strategy(&spec.get("updateStrategy"), errors);
    let retention = spec.get("persistentVolumeClaimRetentionPolicy");
    for name in ["whenDeleted", "whenScaled"] {
        errors.one_of(&retention.get(name), retention.get(name).text_or("Retain"), &["Retain", "Delete"]);
    }
    if old == Old::None {
        for template in spec.get("volumeClaimTemplates").items() {
            persistent_volume_claim::spec(&template.get("spec"), errors);
        }
    }
    errors.not_negative(&spec.get("replicas"));
    errors.not_negative(&spec.get("minReadySeconds"));
    errors.not_negative(&spec.dig(&["ordinals", "start"]));
    let service = spec.get("serviceName");
    if old == Old::None && !service.text().is_empty() {
        errors.in_format(&service, dns1123_label);
    }
    selector_and_template(spec, old, errors);
    pod_spec::runs_forever(&spec.get("template"), "StatefulSet", errors);
}

fn selector_and_template(spec: &At<'_, '_>, old: Old, errors: &mut Errors) {
    let selector = spec.get("selector");
    selector_selects(&selector, "statefulset", errors);
    let template = spec.get("template");
    let labels = template.dig(&["metadata", "labels"]);
    match selector::matches(&selector, &labels) {
        None => errors.invalid(&selector, selector::shown(&selector), ""),
        Some(matches) => {
            if !matches {
                selector::mismatch(&labels, errors);
            }
            if old != Old::Invalid {
                let claims: Vec<&str> = claim_names(spec);
                pod_spec::template(&template, pod_spec::Owner::StatefulTemplate(&claims), errors);
            }
            pod_spec::template_metadata(&template, errors);
        }
    }
}

fn claim_names<'v>(spec: &At<'v, '_>) -> Vec<&'v str> {
    let (mut names, mut seen) = (Vec::new(), BTreeSet::new());
    for template in spec.get("volumeClaimTemplates").items() {
        let name = template.dig(&["metadata", "name"]).text();
        if seen.insert(name) {
            names.push(name);
        }
    }
    names
}

fn strategy(at: &At<'_, '_>, errors: &mut Errors) {
    let rolling = at.get("rollingUpdate");
    match at.get("type").text_or("RollingUpdate") {
        "OnDelete" => {
            if rolling.is_set() {
                let shown = Verbatim(shown_rolling(&rolling));
                errors.invalid(&rolling, shown, "only allowed for updateStrategy 'RollingUpdate'");
            }
        }
        "RollingUpdate" => {
            errors.not_negative(&rolling.get("partition"));
            let unavailable = rolling.get("maxUnavailable");
            if unavailable.is_set() {
                let unavailable = amount(unavailable, 1);
                unavailable.check(errors);
                if unavailable.is_zero() {
                    errors.invalid(unavailable.at(), unavailable.shown(), "cannot be 0");
                }
                unavailable.at_most_all(errors);
            }
        }
        other => {
            let shown = if rolling.is_set() { shown_rolling(&rolling) } else { "null".to_owned() };
            let shown = format!("{{\"Type\":{},\"RollingUpdate\":{shown}}}", gotext::json(&other.into()));
            errors.invalid(at, Verbatim(shown), "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
}

/// Upstream prints its internal struct.
fn shown_rolling(rolling: &At<'_, '_>) -> String {
    let unavailable = gotext::json(rolling.get("maxUnavailable").value());
    format!("{{\"Partition\":{},\"MaxUnavailable\":{unavailable}}}", rolling.get("partition").int())
}

pub fn status(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let status = At::member(new, "status");
    const COUNTS: [&str; 7] = [
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    ];
    errors.none_negative(&status, &COUNTS);
    replica_counts(&status, &COUNTS[1..5], errors);
    available_are_ready(&status, "status.readyReplicas", errors);
    collisions_grow(&status, &At::member(old, "status"), errors);
}

pub fn warn(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    template(object, remarks);
    for claim in At::member(object, "spec").get("volumeClaimTemplates").items() {
        // Upstream's path lacks `spec`.
        persistent_volume_claim::requests(&claim.holding(claim.get("spec").value()), remarks);
    }
    history(object, remarks);
}

pub fn warn_update(new: &ObjectMap, old: &ObjectMap, remarks: &mut Remarks<'_>) {
    template_update(new, old, remarks);
    for claim in At::member(new, "spec").get("volumeClaimTemplates").items() {
        persistent_volume_claim::requests(&claim.get("spec").called("Spec"), remarks);
    }
    history(new, remarks);
}

fn history(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    let spec = At::member(object, "spec");
    let limit = spec.get("revisionHistoryLimit");
    if limit.int() < 0 {
        remarks.on(&limit, "a negative value retains all historical revisions; a value >= 0 is recommended");
    }
}

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Ready", "Ready pods, of those that are wanted.")
            .of(|object, _| ready_of_desired(object).into()),
        AGE,
        wide(CONTAINERS),
        wide(IMAGES),
    ],
    ..PLAIN
};

pub fn ready_of_desired(object: &Value) -> String {
    format!("{}/{}", integer(&object["status"]["readyReplicas"]), integer(&object["spec"]["replicas"]))
}
