//! Columns of Pods. The status column is a small state machine over the containers.

use jiff::Timestamp;

use crate::kinds::behavior::columns::age;
use crate::kinds::behavior::columns::cell::{
    AGE, NAME, PLAIN, age as age_cell, cells, condition, deleting, flag, integer, is_true, list, name, text,
    text_column, text_or, wide,
};
use crate::kinds::prelude::*;
use crate::tree::json;

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Ready", "Containers that are ready, of all that keep running."),
        text_column("Status", "What the containers of the pod are doing, in one word."),
        text_column("Restarts", "How often containers of the pod were restarted."),
        AGE,
        wide(text_column("IP", "First IP address of the pod.")),
        wide(text_column("Node", "Node that the pod is bound to.")),
        wide(text_column("Nominated Node", "Node on which room is being made for the pod.")),
        wide(text_column("Readiness Gates", "Readiness gates that are true, of all.")),
    ],
    cells: Some(cells),
    conditions: Some(row_conditions),
    ..PLAIN
};

fn cells(pod: &Value, now: Timestamp) -> Vec<Value> {
    let summary = Summary::of(pod);
    cells![
        name(pod),
        format!("{}/{}", summary.ready, total_containers(&pod["spec"])),
        displayed_status(pod, &summary),
        summary.restarts.text(now),
        age_cell(pod, now),
        pod_ip(&pod["status"]),
        text_or(&pod["spec"]["nodeName"], "<none>"),
        text_or(&pod["status"]["nominatedNodeName"], "<none>"),
        readiness_gates(pod),
    ]
}

/// kubectl dims rows of completed pods.
fn row_conditions(pod: &Value) -> Option<Value> {
    let (reason, message) = match text(&pod["status"]["phase"]) {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

/// A pod's cells that follow from all container statuses together.
struct Summary {
    ready: usize,
    reason: String,
    restarts: Restarts,
}

impl Summary {
    fn of(pod: &Value) -> Self {
        let init = InitPhase::of(pod);
        let initialized = is_true(&pod["status"]["conditions"], "Initialized");
        match init.stopped {
            Some(reason) if !initialized => Summary { ready: init.ready, reason, restarts: init.restarts },
            stopped => {
                let before = stopped.unwrap_or_else(|| initial_reason(&pod["status"]).to_owned());
                Self::of_containers(&pod["status"], before, init.ready, init.restartable_restarts)
            }
        }
    }

    fn of_containers(status: &Value, before: String, ready: usize, restarts: Restarts) -> Self {
        let mut summary = Summary { ready, reason: before, restarts };
        let mut running = false;
        let mut failure = None;
        for container in list(&status["containerStatuses"]).iter().rev() {
            summary.restarts.add(container);
            let (waiting, terminated) = (&container["state"]["waiting"], &container["state"]["terminated"]);
            if !text(&waiting["reason"]).is_empty() {
                summary.reason = text(&waiting["reason"]).to_owned();
            } else if terminated.is_object() {
                summary.reason = termination(terminated);
                if integer(&terminated["exitCode"]) != 0 {
                    failure = Some(summary.reason.clone());
                }
            } else if flag(&container["ready"]) && container["state"]["running"].is_object() {
                running = true;
                summary.ready += 1;
            }
        }
        if summary.reason == "Completed" {
            match failure {
                _ if running && is_ready(status) => summary.reason = "Running".to_owned(),
                Some(failure) => summary.reason = failure,
                None if running => summary.reason = "NotReady".to_owned(),
                None => {}
            }
        }
        summary
    }
}

/// The progress of the init containers.
struct InitPhase {
    ready: usize,
    /// The status of the init container for which the pod is waiting.
    stopped: Option<String>,
    restarts: Restarts,
    /// The restarts of those init containers alone that keep running beside the main ones.
    restartable_restarts: Restarts,
}

impl InitPhase {
    fn of(pod: &Value) -> Self {
        let mut phase = InitPhase {
            ready: 0,
            stopped: None,
            restarts: Restarts::default(),
            restartable_restarts: Restarts::default(),
        };
        for (index, status) in list(&pod["status"]["initContainerStatuses"]).iter().enumerate() {
            let restartable = is_restartable_init(&pod["spec"], text(&status["name"]));
            phase.restarts.add(status);
            if restartable {
                phase.restartable_restarts.add(status);
            }
            let terminated = &status["state"]["terminated"];
            if terminated.is_object() && integer(&terminated["exitCode"]) == 0 {
                continue;
            }
            if restartable && flag(&status["started"]) {
                phase.ready += usize::from(flag(&status["ready"]));
                continue;
            }
            phase.stopped = Some(init_status(status, index, list(&pod["spec"]["initContainers"]).len()));
            break;
        }
        phase
    }
}

/// The number of restarts, and the time of the last one.
#[derive(Default)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, container_status: &Value) {
        self.count = self.count.saturating_add(integer(&container_status["restartCount"]));
        let finished = age::timestamp(&container_status["lastState"]["terminated"]["finishedAt"]);
        self.last = self.last.max(finished);
    }

    fn text(&self, now: Timestamp) -> String {
        match self.last {
            Some(last) if self.count != 0 => {
                format!("{} ({} ago)", self.count, age::text(now.duration_since(last)))
            }
            _ => self.count.to_string(),
        }
    }
}

/// The phase, unless there is a more specific reason.
fn initial_reason(status: &Value) -> &str {
    let gated = list(&status["conditions"])
        .iter()
        .any(|condition| condition["type"] == "PodScheduled" && condition["reason"] == "SchedulingGated");
    if gated { "SchedulingGated" } else { text_or(&status["reason"], text(&status["phase"])) }
}

fn displayed_status(pod: &Value, summary: &Summary) -> String {
    let status = &pod["status"];
    if deleting(pod) && status["reason"] == "NodeLost" {
        "Unknown".to_owned()
    } else if deleting(pod) && !matches!(text(&status["phase"]), "Succeeded" | "Failed") {
        "Terminating".to_owned()
    } else {
        summary.reason.clone()
    }
}

fn init_status(status: &Value, index: usize, total: usize) -> String {
    let state = &status["state"];
    if state["terminated"].is_object() {
        return format!("Init:{}", termination(&state["terminated"]));
    }
    match text(&state["waiting"]["reason"]) {
        "" | "PodInitializing" => format!("Init:{index}/{total}"),
        reason => format!("Init:{reason}"),
    }
}

/// Why a container ended: its reason, otherwise the signal, otherwise the exit code.
fn termination(terminated: &Value) -> String {
    match (text(&terminated["reason"]), integer(&terminated["signal"])) {
        ("", 0) => format!("ExitCode:{}", integer(&terminated["exitCode"])),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn is_restartable(init_container: &Value) -> bool {
    init_container["restartPolicy"] == "Always"
}

fn is_restartable_init(spec: &Value, name: &str) -> bool {
    list(&spec["initContainers"])
        .iter()
        .any(|container| container["name"] == name && is_restartable(container))
}

fn total_containers(spec: &Value) -> usize {
    let restartable = list(&spec["initContainers"]).iter().filter(|container| is_restartable(container));
    list(&spec["containers"]).len() + restartable.count()
}

fn is_ready(status: &Value) -> bool {
    list(&status["conditions"])
        .iter()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn pod_ip(status: &Value) -> &str {
    let first = text_or(&status["podIPs"][0]["ip"], "<none>");
    text_or(&status["podIP"], first)
}

fn readiness_gates(pod: &Value) -> String {
    let gates = list(&pod["spec"]["readinessGates"]);
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let conditions = &pod["status"]["conditions"];
    let open = gates.iter().filter(|gate| {
        condition(conditions, text(&gate["conditionType"])).is_some_and(|found| found["status"] == "True")
    });
    format!("{}/{}", open.count(), gates.len())
}
