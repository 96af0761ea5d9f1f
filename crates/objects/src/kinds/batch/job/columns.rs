//! Columns of Jobs.

use jiff::Timestamp;

use crate::kinds::behavior::columns::age;
use crate::kinds::behavior::columns::cell::{
    AGE, NAME, PLAIN, SELECTOR, age as age_cell, cells, deleting, integer, is_true, name, text_column, wide,
};
use crate::kinds::behavior::columns::text::{CONTAINERS, IMAGES, containers, selector};
use crate::kinds::prelude::*;

pub static COLUMNS: Printer = Printer {
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
    cells: Some(cells),
    ..PLAIN
};

fn cells(job: &Value, now: Timestamp) -> Vec<Value> {
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
