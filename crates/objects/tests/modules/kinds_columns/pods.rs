//! The status, readiness and restarts of pods.

use rowplane_values::tree::{Value, json};

use super::{HOUR_AGO, assert_cells, now, printer_for};

/// Checks the cells Ready, Status and Restarts.
fn assert_pod(pod: Value, expected: [&str; 3]) {
    let cells = printer_for("", "Pod").cells(&pod, now());
    assert_eq!(cells[1..4], expected, "{pod}");
}

fn running(restarts: i64) -> Value {
    json!({"ready": true, "restartCount": restarts, "state": {"running": {}}})
}

fn terminated(reason: &str, exit_code: i64) -> Value {
    json!({"state": {"terminated": {"reason": reason, "exitCode": exit_code}}})
}

fn with_containers(statuses: Value) -> Value {
    let count = statuses.as_array().map_or(0, Vec::len);
    json!({"spec": {"containers": vec![json!({}); count]},
        "status": {"phase": "Running", "containerStatuses": statuses,
            "conditions": [{"type": "Ready", "status": "True"}]}})
}

#[test]
fn containers_from_last_to_first() {
    let waiting = json!({"restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}}});
    let signal = json!({"state": {"terminated": {"signal": 9, "exitCode": 137}}});
    let code = json!({"state": {"terminated": {"exitCode": 3}}});
    let cases = [
        (json!([running(0)]), ["1/1", "Running", "0"]),
        (json!([running(1), waiting]), ["1/2", "CrashLoopBackOff", "3"]),
        (json!([terminated("Error", 1), waiting]), ["0/2", "Error", "2"]),
        (json!([signal]), ["0/1", "Signal:9", "0"]),
        (json!([code]), ["0/1", "ExitCode:3", "0"]),
        (json!([terminated("Completed", 0)]), ["0/1", "Completed", "0"]),
        (json!([terminated("Completed", 0), running(0)]), ["1/2", "Running", "0"]),
        (json!([terminated("Completed", 0), terminated("OOMKilled", 137)]), ["0/2", "OOMKilled", "0"]),
    ];
    for (statuses, expected) in cases {
        assert_pod(with_containers(statuses), expected);
    }
    let mut unready = with_containers(json!([terminated("Completed", 0), running(0)]));
    unready["status"]["conditions"] = json!([]);
    assert_pod(unready, ["1/2", "NotReady", "0"]);
}

#[test]
fn status_without_containers() {
    let cases = [
        (json!({"status": {"phase": "Pending"}}), "Pending"),
        (json!({"status": {"phase": "Failed", "reason": "Evicted"}}), "Evicted"),
        (
            json!({"status": {"phase": "Pending", "reason": "Other",
                "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}}),
            "SchedulingGated",
        ),
        (json!({"metadata": {"deletionTimestamp": HOUR_AGO}, "status": {"phase": "Running"}}), "Terminating"),
        (json!({"metadata": {"deletionTimestamp": HOUR_AGO}, "status": {"phase": "Succeeded"}}), "Succeeded"),
        (
            json!({"metadata": {"deletionTimestamp": HOUR_AGO}, "status": {"phase": "Failed", "reason": "NodeLost"}}),
            "Unknown",
        ),
    ];
    for (pod, expected) in cases {
        assert_pod(pod, ["0/0", expected, "0"]);
    }
}

#[test]
fn init_containers() {
    let spec = json!({
        "initContainers": [{"name": "one"}, {"name": "side", "restartPolicy": "Always"}, {"name": "two"}],
        "containers": [{"name": "main"}],
    });
    let done = json!({"name": "one", "restartCount": 1, "state": {"terminated": {"exitCode": 0}}});
    let side =
        json!({"name": "side", "restartCount": 2, "started": true, "ready": true, "state": {"running": {}}});
    let state = |state: Value| json!({"name": "two", "restartCount": 4, "state": state});
    let cases = [
        (json!([]), ["0/2", "Pending", "0"]),
        (json!([done]), ["0/2", "Pending", "0"]),
        (json!([state(json!({"waiting": {"reason": "PodInitializing"}}))]), ["0/2", "Init:0/3", "4"]),
        (json!([done, side, state(json!({"running": {}}))]), ["1/2", "Init:2/3", "7"]),
        (
            json!([done, side, state(json!({"waiting": {"reason": "ErrImagePull"}}))]),
            ["1/2", "Init:ErrImagePull", "7"],
        ),
        (json!([done, state(json!({"terminated": {"exitCode": 2}}))]), ["0/2", "Init:ExitCode:2", "5"]),
        (
            json!([done, state(json!({"terminated": {"exitCode": 2, "signal": 6}}))]),
            ["0/2", "Init:Signal:6", "5"],
        ),
        (
            json!([state(json!({"terminated": {"exitCode": 2, "reason": "Error"}}))]),
            ["0/2", "Init:Error", "4"],
        ),
        (json!([done, side]), ["1/2", "Pending", "2"]),
    ];
    for (statuses, expected) in cases {
        let status = json!({"phase": "Pending", "initContainerStatuses": statuses});
        assert_pod(json!({"spec": spec, "status": status}), expected);
    }
    // A pod that once was initialized is judged by its containers, whatever its init containers do.
    let status = json!({"phase": "Running", "conditions": [{"type": "Initialized", "status": "True"}],
        "initContainerStatuses": [side, state(json!({"running": {}}))], "containerStatuses": [running(3)]});
    assert_pod(json!({"spec": spec, "status": status}), ["2/2", "Init:1/3", "5"]);
}

#[test]
fn restarts_tell_when_the_last_one_was() {
    let ended = |time: &str, restarts: i64| {
        json!({"ready": true, "restartCount": restarts, "state": {"running": {}},
            "lastState": {"terminated": {"finishedAt": time}}})
    };
    let statuses = json!([ended(HOUR_AGO, 2), ended("2026-07-01T11:55:00Z", 1)]);
    assert_pod(with_containers(statuses), ["2/2", "Running", "3 (5m ago)"]);
    assert_pod(with_containers(json!([ended(HOUR_AGO, 0)])), ["1/1", "Running", "0"]);
}

#[test]
fn wide_columns() {
    let pod = json!({
        "spec": {"nodeName": "n1", "readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}]},
        "status": {"podIPs": [{"ip": "10.0.0.1"}], "nominatedNodeName": "n2",
            "conditions": [{"type": "a", "status": "True"}, {"type": "b", "status": "False"}]},
    });
    assert_cells(
        "",
        "Pod",
        &[
            (pod, json!(["x", "0/0", "", "0", "60m", "10.0.0.1", "n1", "n2", "1/2"])),
            (json!({}), json!(["x", "0/0", "", "0", "60m", "<none>", "<none>", "<none>", "<none>"])),
        ],
    );
}

#[test]
fn finished_pods_have_a_condition() {
    let conditions = |phase: &str| {
        let pod = json!({"status": {"phase": phase}});
        printer_for("", "Pod").conditions(&pod)
    };
    let completed = |reason, message| {
        Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
    };
    assert_eq!(conditions("Running"), None);
    assert_eq!(conditions("Succeeded"), completed("Succeeded", "The pod has completed successfully."));
    assert_eq!(conditions("Failed"), completed("Failed", "The pod failed."));
}
