//! Columns of HorizontalPodAutoscalers, in both versions.

use jiff::Timestamp;

use crate::kinds::behavior::columns::cell::{
    AGE, NAME, PLAIN, age, cells, integer, list, name, scalar_text, text, text_column,
};
use crate::kinds::behavior::columns::text::join;
use crate::kinds::prelude::*;

const SHOWN_METRICS: usize = 2;

const UNKNOWN: &str = "<unknown>";

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Reference", "What is scaled."),
        text_column("Targets", "Current and wanted values of the metrics."),
        text_column("MinPods", "Fewest replicas."),
        text_column("MaxPods", "Most replicas."),
        text_column("Replicas", "Current number of replicas."),
        AGE,
    ],
    cells: Some(cells),
    ..PLAIN
};

fn cells(autoscaler: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&autoscaler["spec"], &autoscaler["status"]);
    let target = &spec["scaleTargetRef"];
    cells![
        name(autoscaler),
        format!("{}/{}", text(&target["kind"]), text(&target["name"])),
        metrics(spec, status),
        spec["minReplicas"].as_i64().map_or_else(|| "<unset>".to_owned(), |least| least.to_string()),
        integer(&spec["maxReplicas"]),
        integer(&status["currentReplicas"]),
        age(autoscaler, now),
    ]
}

fn metrics(spec: &Value, status: &Value) -> String {
    let specs = list(&spec["metrics"]);
    if specs.is_empty() {
        return cpu_utilization(spec, status);
    }
    let statuses = list(&status["currentMetrics"]);
    let shown = specs.iter().take(SHOWN_METRICS).enumerate();
    let shown = join(shown.map(|(index, spec)| metric(spec, statuses.get(index))), ", ");
    match specs.len().saturating_sub(SHOWN_METRICS) {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}

/// The text of the only metric that `autoscaling/v1` has in fields.
fn cpu_utilization(spec: &Value, status: &Value) -> String {
    match percentage(&spec["targetCPUUtilizationPercentage"]) {
        Some(target) => {
            let current = percentage(&status["currentCPUUtilizationPercentage"]);
            format!("cpu: {}/{target}", current.as_deref().unwrap_or(UNKNOWN))
        }
        None => "<none>".to_owned(),
    }
}

fn metric(spec: &Value, status: Option<&Value>) -> String {
    let source = match text(&spec["type"]) {
        "External" => "external",
        "Object" => "object",
        "Pods" => "pods",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let target = &spec[source]["target"];
    let current = status.map(|status| &status[source]).filter(|status| status.is_object());
    let current = current.map(|status| &status["current"]);
    match source {
        "external" | "object" => value_of_target(target, current),
        "pods" => average_of_target(target, current),
        _ => format!("{}: {}", text(&spec[source]["name"]), resource_of_target(target, current)),
    }
}

fn value_of_target(target: &Value, current: Option<&Value>) -> String {
    if scalar_text(&target["averageValue"]).is_some() {
        let average = current.and_then(|current| scalar_text(&current["averageValue"]));
        let average = average.as_deref().unwrap_or(UNKNOWN);
        return format!("{average}/{} (avg)", quantity(&target["averageValue"]));
    }
    let value = current.map_or_else(|| UNKNOWN.to_owned(), |current| quantity(&current["value"]));
    format!("{value}/{}", quantity(&target["value"]))
}

fn average_of_target(target: &Value, current: Option<&Value>) -> String {
    let average = current.map_or_else(|| UNKNOWN.to_owned(), |current| quantity(&current["averageValue"]));
    format!("{average}/{}", quantity(&target["averageValue"]))
}

fn resource_of_target(target: &Value, current: Option<&Value>) -> String {
    if scalar_text(&target["averageValue"]).is_some() {
        return average_of_target(target, current);
    }
    let average = current.and_then(|current| percentage(&current["averageUtilization"]));
    let wanted = percentage(&target["averageUtilization"]);
    format!("{}/{}", average.as_deref().unwrap_or(UNKNOWN), wanted.as_deref().unwrap_or("<auto>"))
}

/// Go prints `<nil>` for an absent quantity.
fn quantity(value: &Value) -> String {
    scalar_text(value).unwrap_or_else(|| "<nil>".to_owned())
}

fn percentage(value: &Value) -> Option<String> {
    value.as_i64().map(|percent| format!("{percent}%"))
}
