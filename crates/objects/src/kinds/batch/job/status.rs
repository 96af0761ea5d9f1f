//! Rules for the status that a job's controller writes: conditions must be consistent, and final ones must stay.

use std::collections::BTreeSet;

use crate::kinds::batch::job::{indexes, is_indexed};
use crate::kinds::behavior::rules::same::same;
use crate::kinds::prelude::*;

/// A status with the old one, to find changes.
struct Status<'a> {
    at: At<'a, 'static>,
    old: At<'a, 'static>,
    spec: At<'a, 'static>,
}

impl Status<'_> {
    fn is(&self, condition: &str) -> bool {
        has(&self.at, condition)
    }

    fn was(&self, condition: &str) -> bool {
        has(&self.old, condition)
    }

    fn turned(&self, condition: &str) -> bool {
        self.is(condition) != self.was(condition)
    }

    fn changed(&self, field: &str) -> bool {
        !same(self.at.get(field).value(), self.old.get(field).value())
    }

    fn finished(&self) -> bool {
        self.is("Complete") || self.is("Failed")
    }

    fn finishes(&self) -> bool {
        self.finished() != (self.was("Complete") || self.was("Failed"))
    }

    fn refuse_conditions(&self, why: &str, errors: &mut Errors) {
        errors.invalid_unsaid(&self.at.get("conditions"), why);
    }
}

fn has(status: &At<'_, '_>, condition: &str) -> bool {
    says(status, condition, "True")
}

fn says(status: &At<'_, '_>, condition: &str, value: &str) -> bool {
    let fits = |at: At<'_, '_>| at.get("type").text() == condition && at.get("status").text() == value;
    status.get("conditions").items().any(fits)
}

pub fn status(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let status = Status {
        at: At::member(new, "status"),
        old: At::member(old, "status"),
        spec: At::member(new, "spec"),
    };
    errors.none_negative(&status.at, &["active", "succeeded", "failed", "ready", "terminating"]);
    uncounted(&status.at.get("uncountedTerminatedPods"), errors);
    completion(&status, errors);
    conditions_agree(&status, errors);
    finished(&status, errors);
    index_sets(&status, errors);
    counts(&status, errors);
    success(&status, errors);
    no_way_back(&status, errors);
}

fn uncounted(at: &At<'_, '_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for list in ["succeeded", "failed"] {
        for uid in at.get(list).items() {
            if uid.text().is_empty() {
                errors.invalid(&uid, "", "must not be empty");
            } else if !seen.insert(uid.text()) {
                errors.duplicate(&uid, uid.text());
            }
        }
    }
}

fn completion(status: &Status<'_>, errors: &mut Errors) {
    let (completed, started) = (status.at.get("completionTime"), status.at.get("startTime"));
    let (completes, complete) = (status.turned("Complete"), status.is("Complete"));
    if (completes || status.turned("Failed")) && complete && status.is("Failed") {
        status.refuse_conditions("cannot set Complete=True and Failed=true conditions", errors);
    }
    if (completes || status.turned("FailureTarget")) && complete && status.is("FailureTarget") {
        status.refuse_conditions("cannot set Complete=True and FailureTarget=true conditions", errors);
    }
    if completes || status.changed("completionTime") {
        if completed.is_set() && !complete {
            let why = "cannot set completionTime when there is no Complete=True condition";
            errors.invalid(&completed, completed.value(), why);
        }
        if !completed.is_set() && complete {
            errors.required(&completed, "completionTime is required for Complete jobs");
        }
    }
    // Both times are in UTC and in the same form, so comparing texts compares times.
    let before = completed.is_set() && started.is_set() && completed.text() < started.text();
    if (status.changed("startTime") || status.changed("completionTime")) && before {
        errors.invalid(&completed, completed.value(), "must be equal to or after `startTime`");
    }
}

fn conditions_agree(status: &Status<'_>, errors: &mut Errors) {
    let failed = status.is("Failed") && !status.is("FailureTarget");
    if (status.turned("Failed") || status.changed("failedIndexes")) && failed {
        let why = "cannot set Failed=True condition without the FailureTarget=true condition";
        status.refuse_conditions(why, errors);
    }
    let complete = status.is("Complete") && !status.is("SuccessCriteriaMet");
    if (status.turned("Complete") || status.turned("SuccessCriteriaMet")) && complete {
        let why = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition";
        status.refuse_conditions(why, errors);
    }
}

fn finished(status: &Status<'_>, errors: &mut Errors) {
    if !status.finished() {
        return;
    }
    let finishes = status.finishes();
    let (active, started) = (status.at.get("active"), status.at.get("startTime"));
    if (finishes || status.changed("active")) && active.int() > 0 {
        errors.invalid(&active, active.int(), "active>0 is invalid for finished job");
    }
    let completions = status.spec.get("completions").opt_int();
    let nothing_to_do = status.spec.get("suspend").flag() && completions == Some(0);
    if (finishes || status.changed("startTime")) && !nothing_to_do && !started.is_set() {
        errors.required(&started, "startTime is required for finished job");
    }
    let uncounted = status.at.get("uncountedTerminatedPods");
    let some = ["succeeded", "failed"].iter().any(|list| !uncounted.get(list).is_empty());
    if (finishes || status.changed("uncountedTerminatedPods")) && some {
        errors.invalid(&uncounted, uncounted.value(), "must be empty for finished job");
    }
}

fn index_sets(status: &Status<'_>, errors: &mut Errors) {
    let completions = status.spec.get("completions").opt_int();
    let (done, failed) = (status.at.get("completedIndexes"), status.at.get("failedIndexes"));
    let (done_changed, failed_changed) =
        (status.changed("completedIndexes"), status.changed("failedIndexes"));
    let limited = status.spec.get("backoffLimitPerIndex").is_set();
    if let Some(completions) = completions {
        if done_changed && let Err(why) = indexes::count(done.text(), completions) {
            errors.invalid(&done, done.text(), &format!("error parsing completedIndexes: {why}"));
        }
        if failed_changed
            && limited
            && let Err(why) = indexes::count(failed.text(), completions)
        {
            errors.invalid(&failed, failed.text(), &format!("error parsing failedIndexes: {why}"));
        }
    }
    if done_changed && !done.text().is_empty() && !is_indexed(&status.spec) {
        let why = "cannot set non-empty completedIndexes when non-indexed completion mode";
        errors.invalid(&done, done.text(), why);
    }
    if failed_changed && failed.is_set() && !limited {
        let why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        errors.invalid(&failed, failed.text(), why);
    }
    if let Some(completions) = completions
        && (done_changed || failed_changed)
        && let Some(index) = indexes::overlap(done.text(), failed.text(), completions)
    {
        let why = format!("failedIndexes and completedIndexes overlap at index: {index}");
        errors.invalid(&failed, failed.text(), &why);
    }
}

fn counts(status: &Status<'_>, errors: &mut Errors) {
    let (terminating, ready, active) =
        (status.at.get("terminating"), status.at.get("ready"), status.at.get("active"));
    let ended = status.finishes() || status.changed("terminating");
    if ended && status.finished() && terminating.int() > 0 {
        errors.invalid(&terminating, terminating.int(), "terminating>0 is invalid for finished job");
    }
    if (status.changed("ready") || status.changed("active")) && ready.is_set() && ready.int() > active.int() {
        errors.invalid(&ready, ready.int(), "cannot set more ready pods than active");
    }
}

fn success(status: &Status<'_>, errors: &mut Errors) {
    let met = status.is("SuccessCriteriaMet");
    if met && status.is("Failed") {
        status.refuse_conditions("cannot set SuccessCriteriaMet=True and Failed=true conditions", errors);
    }
    if met && status.is("FailureTarget") {
        let why = "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions";
        status.refuse_conditions(why, errors);
    }
    if status.spec.get("successPolicy").is_set() && !met && status.is("Complete") {
        let why = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
        status.refuse_conditions(why, errors);
    }
}

fn no_way_back(status: &Status<'_>, errors: &mut Errors) {
    for condition in ["Failed", "Complete", "FailureTarget"] {
        if status.was(condition) && !status.is(condition) {
            status.refuse_conditions(
                &format!("cannot disable the terminal {condition}=True condition"),
                errors,
            );
        }
    }
    let spec = &status.spec;
    let elastic = is_indexed(spec) && same(spec.get("completions").value(), spec.get("parallelism").value());
    for (name, grows) in [("failed", true), ("succeeded", !elastic)] {
        let count = status.at.get(name);
        if grows && count.int() < status.old.get(name).int() {
            errors.invalid(&count, count.int(), &format!("cannot decrease the {name} counter"));
        }
    }
    let completed = status.at.get("completionTime");
    if completed.is_set() && status.old.get("completionTime").is_set() && status.changed("completionTime") {
        errors.invalid(&completed, completed.value(), "field is immutable");
    }
    let started = status.at.get("startTime");
    let resumes = has(&status.old, "Suspended") && says(&status.at, "Suspended", "False");
    let moved = status.old.get("startTime").is_set() && status.changed("startTime");
    if moved && !resumes && !spec.get("suspend").flag() {
        errors.invalid(&started, started.value(), "field is immutable for unsuspended job once set");
    }
    let (met, was_met) = (status.is("SuccessCriteriaMet"), status.was("SuccessCriteriaMet"));
    if was_met && !met {
        status.refuse_conditions("cannot disable the SuccessCriteriaMet=True condition", errors);
    }
    if status.was("Complete") && !was_met && met {
        let why = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
        status.refuse_conditions(why, errors);
    }
}
