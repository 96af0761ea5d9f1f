//! Templates of Pods, and what makes Pods of them.

use super::metadata::label_name;
use super::{Remarks, pod, volume};
use crate::api::ObjectMap;
use crate::api::validation::at::At;
use crate::fields;

/// Completions and parallelism of indexed Jobs, beyond which upstream does not promise to keep track.
const COMPLETIONS: i64 = 100_000;
const PARALLELISM: i64 = 10_000;

const IN_PODS: &str = "Pod names and hostnames";

pub(super) fn template(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    pod::template(&At::member(object, "spec").get("template"), remarks);
}

pub(super) fn named_template(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    label_name(object, IN_PODS, remarks);
    template(object, remarks);
}

/// Of a new version only what may be new.
pub(super) fn template_update(new: &ObjectMap, old: &ObjectMap, remarks: &mut Remarks<'_>) {
    if changed(new, old, &["metadata", "generation"]) {
        template(new, remarks);
    }
}

pub(super) fn daemon_set_update(new: &ObjectMap, old: &ObjectMap, remarks: &mut Remarks<'_>) {
    const GENERATION: &str = "deprecated.daemonset.template.generation";
    if changed(new, old, &["metadata", "annotations", GENERATION]) {
        template(new, remarks);
    }
}

pub(super) fn controller(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    named_template(object, remarks);
}

/// Upstream has the two the wrong way round: it tells of the old template.
pub(super) fn controller_update(new: &ObjectMap, old: &ObjectMap, remarks: &mut Remarks<'_>) {
    if changed(new, old, &["metadata", "generation"]) {
        template(old, remarks);
    }
}

pub(super) fn pod_template(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    pod::template(&At::member(object, "template"), remarks);
}

pub(super) fn pod_template_update(new: &ObjectMap, old: &ObjectMap, remarks: &mut Remarks<'_>) {
    if changed(new, old, &["metadata", "generation"]) {
        pod_template(new, remarks);
    }
}

pub(super) fn stateful_set(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    template(object, remarks);
    for claim in At::member(object, "spec").get("volumeClaimTemplates").items() {
        // Upstream leaves `spec` out.
        volume::requests(&claim.holding(claim.get("spec").value()), remarks);
    }
    history(object, remarks);
}

pub(super) fn stateful_set_update(new: &ObjectMap, old: &ObjectMap, remarks: &mut Remarks<'_>) {
    template_update(new, old, remarks);
    for claim in At::member(new, "spec").get("volumeClaimTemplates").items() {
        volume::requests(&claim.get("spec").called("Spec"), remarks);
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

pub(super) fn job(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    label_name(object, IN_PODS, remarks);
    job_spec(&At::member(object, "spec"), remarks);
}

pub(super) fn job_update(new: &ObjectMap, old: &ObjectMap, remarks: &mut Remarks<'_>) {
    if changed(new, old, &["metadata", "generation"]) {
        job_spec(&At::member(new, "spec"), remarks);
    }
}

pub(super) fn cron_job(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    label_name(object, IN_PODS, remarks);
    job_spec(&At::member(object, "spec").dig(&["jobTemplate", "spec"]), remarks);
}

pub(super) fn cron_job_update(new: &ObjectMap, old: &ObjectMap, remarks: &mut Remarks<'_>) {
    let spec = At::member(new, "spec");
    if changed(new, old, &["metadata", "generation"]) {
        job_spec(&spec.dig(&["jobTemplate", "spec"]), remarks);
    }
    if spec.get("schedule").text().contains("TZ") {
        let page = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/";
        remarks.say(format!(
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see {page} for more details"
        ));
    }
}

fn job_spec(spec: &At<'_, '_>, remarks: &mut Remarks<'_>) {
    let indexed = spec.get("completionMode").text() == "Indexed";
    let (completions, parallelism) = (spec.get("completions").int(), spec.get("parallelism").int());
    if indexed && completions > COMPLETIONS && parallelism > PARALLELISM {
        let why = "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, \
                   Kubernetes might not be able to track completedIndexes when a big number of indexes fail";
        remarks.on(spec, why);
    }
    pod::template(&spec.get("template"), remarks);
}

fn changed(new: &ObjectMap, old: &ObjectMap, path: &[&str]) -> bool {
    fields::at(new, path) != fields::at(old, path)
}
