//! Controllers of pods (`pkg/apis/{apps,batch,core}/v1/defaults.go`).

use super::set::{empty, if_absent, if_zero, is_absent, is_zero, part, structs, text};
use crate::fields::{self, ObjectMap};

/// The annotation in which `apps/v1` keeps a field of the internal version.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

pub(super) fn deployment(deployment: &mut ObjectMap) {
    let Some(spec) = part(deployment, "spec") else { return };
    if_absent(spec, "replicas", 1);
    let strategy = fields::object_mut(spec, "strategy");
    if_zero(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate" {
        let rolling = fields::object_mut(strategy, "rollingUpdate");
        if_absent(rolling, "maxUnavailable", "25%");
        if_absent(rolling, "maxSurge", "25%");
    }
    no_pointers(strategy, &["maxUnavailable", "maxSurge"]);
    if_absent(spec, "revisionHistoryLimit", 10);
    if_absent(spec, "progressDeadlineSeconds", 600);
}

pub(super) fn daemon_set(set: &mut ObjectMap) {
    let annotations = fields::object_mut(fields::object_mut(set, "metadata"), "annotations");
    if_absent(annotations, TEMPLATE_GENERATION, "0");
    annotations.sort_keys();
    let Some(spec) = part(set, "spec") else { return };
    let strategy = fields::object_mut(spec, "updateStrategy");
    if_zero(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate" {
        let rolling = fields::object_mut(strategy, "rollingUpdate");
        if_absent(rolling, "maxUnavailable", 1);
        if_absent(rolling, "maxSurge", 0);
    }
    no_pointers(strategy, &["maxUnavailable", "maxSurge"]);
    if_absent(spec, "revisionHistoryLimit", 10);
}

pub(super) fn stateful_set(set: &mut ObjectMap) {
    let Some(spec) = part(set, "spec") else { return };
    if_zero(spec, "podManagementPolicy", "OrderedReady");
    let strategy = fields::object_mut(spec, "updateStrategy");
    if is_zero(strategy, "type") {
        strategy.insert("type", "RollingUpdate".into());
        if_absent(strategy, "rollingUpdate", empty());
    }
    no_pointers(strategy, &["partition"]);
    if text(strategy, "type") == "RollingUpdate"
        && let Some(rolling) = part(strategy, "rollingUpdate")
    {
        if_absent(rolling, "maxUnavailable", 1);
    }
    let retention = fields::object_mut(spec, "persistentVolumeClaimRetentionPolicy");
    if_zero(retention, "whenDeleted", "Retain");
    if_zero(retention, "whenScaled", "Retain");
    if_absent(spec, "replicas", 1);
    if_absent(spec, "revisionHistoryLimit", 10);
    for claim in structs(spec, "volumeClaimTemplates") {
        claim.insert("kind", "PersistentVolumeClaim".into());
        claim.insert("apiVersion", "v1".into());
    }
}

/// Sets members of `rollingUpdate` to 0 that are no pointers in the internal version.
fn no_pointers(strategy: &mut ObjectMap, names: &[&str]) {
    if let Some(rolling) = part(strategy, "rollingUpdate") {
        names.iter().for_each(|name| if_absent(rolling, name, 0));
    }
}

pub(super) fn replica_set(set: &mut ObjectMap) {
    if let Some(spec) = part(set, "spec") {
        if_absent(spec, "replicas", 1);
    }
}

pub(super) fn replication_controller(controller: &mut ObjectMap) {
    let labels = fields::at(controller, &["spec", "template", "metadata", "labels"]).cloned();
    let Some(labels) = labels.filter(|labels| !labels.is_null()) else { return };
    if let Some(spec) = part(controller, "spec") {
        if_zero(spec, "selector", labels.clone());
    }
    if_zero(fields::object_mut(controller, "metadata"), "labels", labels);
}

pub(super) fn job(job: &mut ObjectMap) {
    let labels = fields::at(job, &["spec", "template", "metadata", "labels"]).cloned();
    if let Some(labels) = labels.filter(|labels| !labels.is_null()) {
        if_zero(fields::object_mut(job, "metadata"), "labels", labels);
    }
    let Some(spec) = part(job, "spec") else { return };
    if is_absent(spec, "completions") && is_absent(spec, "parallelism") {
        spec.insert("completions", 1.into());
    }
    if_absent(spec, "parallelism", 1);
    let limit = if is_absent(spec, "backoffLimitPerIndex") { 6 } else { i32::MAX };
    if_absent(spec, "backoffLimit", limit);
    if_absent(spec, "completionMode", "NonIndexed");
    if_absent(spec, "suspend", false);
    let replacement = if is_absent(spec, "podFailurePolicy") { "TerminatingOrFailed" } else { "Failed" };
    if_absent(spec, "podReplacementPolicy", replacement);
    if_absent(spec, "manualSelector", false);
}

pub(super) fn cron_job(job: &mut ObjectMap) {
    let Some(spec) = part(job, "spec") else { return };
    if_zero(spec, "concurrencyPolicy", "Allow");
    if_absent(spec, "suspend", false);
    if_absent(spec, "successfulJobsHistoryLimit", 3);
    if_absent(spec, "failedJobsHistoryLimit", 1);
}

pub(super) fn pod_condition_pattern(pattern: &mut ObjectMap) {
    if_zero(pattern, "status", "True");
}
