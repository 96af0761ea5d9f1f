//! Jobs and the schedules that start them.

use jiff::Timestamp;

use super::super::Printer;
use super::super::age;
use super::super::cell::{
    AGE, CONTAINERS, IMAGES, NAME, PLAIN, SELECTOR, age as age_cell, boolean_column, cells, deleting,
    integer, integer_column, is_true, list, name, optional_text, text, text_column, wide,
};
use super::super::text::{containers, optional_flag, selector};
use crate::tree::Value;

pub static JOB: Printer = Printer {
    columns: &[
        NAME,
        text_column("Status", "Where the job stands."),
        text_column("Completions", "Pods that succeeded, of those that are wanted."),
        text_column("Duration", "Time from the start of the job to its end, or until now."),
        AGE,
        wide(CONTAINERS),
        wide(IMAGES),
        wide(SELECTOR),
    ],
    cells: job_cells,
    ..PLAIN
};

pub static CRON_JOB: Printer = Printer {
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
    cells: cron_job_cells,
    ..PLAIN
};

fn job_cells(job: &Value, now: Timestamp) -> Vec<Value> {
    let spec = &job["spec"];
    let (names, images) = containers(&spec["template"]["spec"]);
    cells![
        name(job),
        job_status(job),
        completions(job),
        duration(&job["status"], now),
        age_cell(job, now),
        names,
        images,
        selector(&spec["selector"]),
    ]
}

fn cron_job_cells(cron_job: &Value, now: Timestamp) -> Vec<Value> {
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

fn job_status(job: &Value) -> &'static str {
    let conditions = &job["status"]["conditions"];
    let first_of = |types: &[&'static str]| types.iter().find(|type_| is_true(conditions, type_)).copied();
    first_of(&["Complete", "Failed"])
        .or(deleting(job).then_some("Terminating"))
        .or_else(|| first_of(&["Suspended", "FailureTarget", "SuccessCriteriaMet"]))
        .unwrap_or("Running")
}

fn completions(job: &Value) -> String {
    let spec = &job["spec"];
    let succeeded = integer(&job["status"]["succeeded"]);
    match (spec["completions"].as_i64(), integer(&spec["parallelism"])) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallelism) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn duration(status: &Value, now: Timestamp) -> String {
    let Some(start) = age::timestamp(&status["startTime"]) else {
        return String::new();
    };
    let end = age::timestamp(&status["completionTime"]).unwrap_or(now);
    age::text(end.duration_since(start))
}

fn last_schedule(status: &Value, now: Timestamp) -> String {
    match &status["lastScheduleTime"] {
        time @ Value::String(_) => age::since(time, now),
        _ => "<none>".to_owned(),
    }
}
