//! Warnings about valid Jobs, and about the Jobs of CronJobs.

use crate::kinds::behavior::warnings::label_name;
use crate::kinds::core::pod_spec::warnings;
use crate::kinds::core::pod_template::warnings::{IN_PODS, changed};
use crate::kinds::prelude::*;

/// The numbers of completions and parallel pods of an indexed Job above which upstream does not guarantee to track
/// them.
const COMPLETIONS: i64 = 100_000;

const PARALLELISM: i64 = 10_000;

pub fn warn(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    label_name(object, IN_PODS, remarks);
    job_spec(&At::member(object, "spec"), remarks);
}

pub fn warn_update(new: &ObjectMap, old: &ObjectMap, remarks: &mut Remarks<'_>) {
    if changed(new, old, &["metadata", "generation"]) {
        job_spec(&At::member(new, "spec"), remarks);
    }
}

pub fn job_spec(spec: &At<'_, '_>, remarks: &mut Remarks<'_>) {
    let indexed = spec.get("completionMode").text() == "Indexed";
    let (completions, parallelism) = (spec.get("completions").int(), spec.get("parallelism").int());
    if indexed && completions > COMPLETIONS && parallelism > PARALLELISM {
        let why = "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, \
                   Kubernetes might not be able to track completedIndexes when a big number of indexes fail";
        remarks.on(spec, why);
    }
    warnings::template(&spec.get("template"), remarks);
}
