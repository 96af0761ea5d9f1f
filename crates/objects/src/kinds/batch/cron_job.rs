//! CronJobs.

pub mod schedule;

use jiff::Timestamp;

use crate::kinds::batch::job;
use crate::kinds::batch::job::warnings::job_spec;
use crate::kinds::behavior::columns::age;
use crate::kinds::behavior::columns::cell::{
    AGE, NAME, PLAIN, SELECTOR, age as age_cell, boolean_column, cells, integer_column, list, name,
    optional_text, text, text_column, wide,
};
use crate::kinds::behavior::columns::text::{CONTAINERS, IMAGES, containers, optional_flag, selector};
use crate::kinds::behavior::gated_fields::Node::Under;
use crate::kinds::behavior::warnings::label_name;
use crate::kinds::core::pod_template::warnings::{IN_PODS, changed};
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("cronjobs", "CronJob")
        .short(&["cj"])
        .category("all")
        .sub(&["status"])
        .generation(),
    strategy: Strategy {
        gated_fields: &[Under("spec", &[Under("jobTemplate", &[Under("spec", job::GATED_SPEC)])])],
        ..Strategy::PLAIN
    },
    rules: Rules::new(create, update),
    warnings: KindWarnings::new(warn, warn_update),
    columns: &COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

/// The names of its Jobs are eleven characters longer, and must be valid labels.
const NAME_MAX: usize = 52;

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    spec(&At::member(object, "spec"), None, errors);
    let metadata = At::member(object, "metadata");
    let name = metadata.get("name");
    if name.text().len() > NAME_MAX {
        errors.invalid(&name, name.text(), "must be no more than 52 characters");
    }
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    spec(&At::member(new, "spec"), Some(&At::member(old, "spec")), errors);
}

fn spec(spec: &At<'_, '_>, old: Option<&At<'_, '_>>, errors: &mut Errors) {
    let (schedule, zone) = (spec.get("schedule"), spec.get("timeZone"));
    if !schedule.text().is_empty() {
        let zoned = old.is_some_and(|old| old.get("schedule").text().contains("TZ"));
        schedule_text(&schedule, zoned, zone.is_set(), errors);
    }
    errors.not_negative(&spec.get("startingDeadlineSeconds"));
    if old.is_none_or(|old| old.get("timeZone").opt_text() != zone.opt_text()) {
        time_zone(&zone, errors);
    }
    let concurrency = spec.get("concurrencyPolicy");
    errors.one_of(&concurrency, concurrency.text_or("Allow"), &["Allow", "Forbid", "Replace"]);
    job::template(&spec.get("jobTemplate"), errors);
    errors.not_negative(&spec.get("successfulJobsHistoryLimit"));
    errors.not_negative(&spec.get("failedJobsHistoryLimit"));
}

/// Validates the schedule. With `zoned`, a time zone in the schedule is accepted, since the old one had one.
fn schedule_text(at: &At<'_, '_>, zoned: bool, zone: bool, errors: &mut Errors) {
    let text = at.text();
    if let Err(why) = schedule::check(text) {
        errors.invalid(at, text, &why);
    }
    if !text.contains("TZ") {
        return;
    }
    if !zoned {
        errors.invalid(at, text, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
    } else if zone {
        errors.invalid(at, text, "cannot use both timeZone field and TZ or CRON_TZ in schedule");
    }
}

fn time_zone(at: &At<'_, '_>, errors: &mut Errors) {
    let Some(name) = at.opt_text() else { return };
    if name.is_empty() {
        return errors.invalid(at, name, "timeZone must be nil or non-empty string");
    }
    let known = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'+');
    let part = |part: &str| {
        !matches!(part, "." | "..")
            && !part.starts_with('-')
            && (1..=14).contains(&part.len())
            && part.bytes().all(known)
    };
    let unknown = format!("unknown time zone {name}");
    if !name.split('/').all(part) {
        return errors.invalid(at, name, &unknown);
    }
    if name.eq_ignore_ascii_case("local") {
        let why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        errors.invalid(at, name, why);
    }
    if name != "Local" && !schedule::is_zone(name) {
        errors.invalid(at, name, &unknown);
    }
}

pub fn warn(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    label_name(object, IN_PODS, remarks);
    job_spec(&At::member(object, "spec").dig(&["jobTemplate", "spec"]), remarks);
}

pub fn warn_update(new: &ObjectMap, old: &ObjectMap, remarks: &mut Remarks<'_>) {
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

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Schedule", "When jobs are started, in cron format."),
        text_column("Timezone", "Time zone that the schedule is read in."),
        boolean_column("Suspend", "Whether new jobs are held back."),
        integer_column("Active", "Jobs that are running."),
        text_column("Last Schedule", "Time since a job was last started."),
        AGE,
        wide(CONTAINERS),
        wide(IMAGES),
        wide(SELECTOR),
    ],
    cells: Some(cells),
    ..PLAIN
};

fn cells(cron_job: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&cron_job["spec"], &cron_job["status"]);
    let job_spec = &spec["jobTemplate"]["spec"];
    let (names, images) = containers(&job_spec["template"]["spec"]);
    cells![
        name(cron_job),
        text(&spec["schedule"]),
        optional_text(&spec["timeZone"], "<none>"),
        optional_flag(&spec["suspend"]),
        list(&status["active"]).len(),
        last_schedule(status, now),
        age_cell(cron_job, now),
        names,
        images,
        selector(&job_spec["selector"]),
    ]
}

fn last_schedule(status: &Value, now: Timestamp) -> String {
    match &status["lastScheduleTime"] {
        time @ Value::String(_) => age::since(time, now),
        _ => "<none>".to_owned(),
    }
}
