//! `certificates.k8s.io`.

use jiff::SignedDuration;

use super::super::Printer;
use super::super::age;
use super::super::cell::{
    AGE, NAME, PLAIN, age as age_cell, cells, condition, list, name, text, text_column, text_or,
};
use crate::tree::Value;

pub static SIGNING_REQUEST: Printer = Printer {
    columns: &[
        NAME,
        AGE,
        text_column("SignerName", "Signer that is asked."),
        text_column("Requestor", "User who asks."),
        text_column("RequestedDuration", "How long the certificate should be valid."),
        text_column("Condition", "Where the request stands."),
    ],
    cells: |object, now| {
        let spec = &object["spec"];
        cells![
            name(object),
            age_cell(object, now),
            text_or(&spec["signerName"], "<none>"),
            text(&spec["username"]),
            requested_duration(&spec["expirationSeconds"]),
            signing_state(&object["status"]),
        ]
    },
    ..PLAIN
};

pub static CLUSTER_TRUST_BUNDLE: Printer = Printer {
    columns: &[NAME, text_column("SignerName", "Signer whose roots the bundle holds.")],
    cells: |object, _| cells![name(object), text_or(&object["spec"]["signerName"], "<none>")],
    ..PLAIN
};

pub static POD_CERTIFICATE_REQUEST: Printer = Printer {
    columns: &[
        NAME,
        text_column("PodName", "Pod that the certificate is for."),
        text_column("ServiceAccountName", "Service account of the pod."),
        text_column("NodeName", "Node that the pod runs on."),
        text_column("SignerName", "Signer that is asked."),
        text_column("State", "Whether the request is pending, issued, denied or failed."),
    ],
    cells: |object, _| {
        let spec = &object["spec"];
        cells![
            name(object),
            text(&spec["podName"]),
            text(&spec["serviceAccountName"]),
            text(&spec["nodeName"]),
            text(&spec["signerName"]),
            pod_request_state(&object["status"]),
        ]
    },
    ..PLAIN
};

fn requested_duration(seconds: &Value) -> String {
    match seconds.as_i64() {
        Some(seconds) => age::text(SignedDuration::from_secs(seconds)),
        None => "<none>".to_owned(),
    }
}

/// `Approved,Issued`; the mere presence of a condition counts, its status does not.
fn signing_state(status: &Value) -> String {
    let has = |type_| condition(&status["conditions"], type_).is_some();
    let decision = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    };
    let failed = if has("Failed") { ",Failed" } else { "" };
    let issued = if text(&status["certificate"]).is_empty() { "" } else { ",Issued" };
    format!("{decision}{failed}{issued}")
}

fn pod_request_state(status: &Value) -> &str {
    let types = list(&status["conditions"]).iter().map(|condition| text(&condition["type"]));
    types.rev().find(|type_| matches!(*type_, "Issued" | "Denied" | "Failed")).unwrap_or("Pending")
}
