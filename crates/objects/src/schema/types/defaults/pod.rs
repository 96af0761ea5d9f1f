//! Pods and what they are made of (`pkg/apis/core/v1/defaults.go` and `conversion.go`).

use super::image;
use super::set::{complete, empty, if_absent, if_zero, is_absent, is_zero, part, structs, text};
use crate::fields::{self, ObjectMap};
use crate::tree::{Value, json};

const GRACE_SECONDS: i64 = 30;
const FILE_MODE: i64 = 0o644;
const TOKEN_SECONDS: i64 = 3600;

/// Defaults of pods themselves, which pod templates do not get.
pub(super) fn pod(pod: &mut ObjectMap) {
    let Some(spec) = part(pod, "spec") else { return };
    for list in ["containers", "initContainers"] {
        structs(spec, list).for_each(requests_from_limits);
    }
    if_absent(spec, "enableServiceLinks", true);
    if spec.get("hostNetwork") == Some(&Value::Bool(true)) {
        for list in ["containers", "initContainers"] {
            structs(spec, list).for_each(host_ports);
        }
    }
    let grace = spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64);
    if grace.is_some_and(|grace| grace < 0) {
        spec.insert("terminationGracePeriodSeconds", 1.into());
    }
}

fn requests_from_limits(container: &mut ObjectMap) {
    let Some(resources) = part(container, "resources") else { return };
    let Some(limits) = fields::object(resources, "limits").cloned() else { return };
    complete(fields::object_mut(resources, "requests"), &limits);
}

fn host_ports(container: &mut ObjectMap) {
    for port in structs(container, "ports") {
        let number = port.get("containerPort").cloned().filter(|number| *number != 0);
        if let Some(number) = number {
            if_zero(port, "hostPort", number);
        }
    }
}

pub(super) fn spec(spec: &mut ObjectMap) {
    if_zero(spec, "dnsPolicy", "ClusterFirst");
    if_zero(spec, "restartPolicy", "Always");
    if_absent(spec, "securityContext", empty());
    if_absent(spec, "terminationGracePeriodSeconds", GRACE_SECONDS);
    if_zero(spec, "schedulerName", "default-scheduler");
    let account = match text(spec, "serviceAccountName") {
        "" => text(spec, "serviceAccount"),
        name => name,
    };
    if !account.is_empty() {
        let account = Value::from(account);
        spec.insert("serviceAccountName", account.clone());
        spec.insert("serviceAccount", account);
    }
}

/// `podIP` and the first entry of `podIPs` are kept equal.
pub(super) fn status(status: &mut ObjectMap) {
    let first =
        fields::items(status, &["podIPs"]).first().map(|first| first.get("ip").cloned().unwrap_or_default());
    match (text(status, "podIP"), first) {
        ("", Some(Value::String(first))) if !first.is_empty() => {
            status.insert("podIP", first.into());
        }
        ("", _) => {}
        (own, first) if first.as_ref().and_then(Value::as_str) != Some(own) => {
            let own = json!([{"ip": own}]);
            status.insert("podIPs", own);
        }
        _ => {}
    }
}

pub(super) fn container(container: &mut ObjectMap) {
    if is_zero(container, "imagePullPolicy") {
        let policy = pull_policy(text(container, "image"));
        container.insert("imagePullPolicy", policy.into());
    }
    if_zero(container, "terminationMessagePath", "/dev/termination-log");
    if_zero(container, "terminationMessagePolicy", "File");
}

fn pull_policy(image: &str) -> &'static str {
    if image::is_latest(image) { "Always" } else { "IfNotPresent" }
}

pub(super) fn probe(probe: &mut ObjectMap) {
    for (name, default) in
        [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
    {
        if_zero(probe, name, default);
    }
}

pub(super) fn http_get(action: &mut ObjectMap) {
    if_zero(action, "path", "/");
    if_zero(action, "scheme", "HTTP");
}

pub(super) fn volume(volume: &mut ObjectMap) {
    let has_source = volume.iter().any(|(name, source)| name != "name" && !source.is_null());
    if !has_source {
        volume.insert("emptyDir", empty());
    }
    let Some(image) = part(volume, "image") else { return };
    if is_zero(image, "pullPolicy") {
        let policy = pull_policy(text(image, "reference"));
        image.insert("pullPolicy", policy.into());
    }
}

pub(super) fn file_mode(source: &mut ObjectMap) {
    if_absent(source, "defaultMode", FILE_MODE);
}

pub(super) fn token_projection(source: &mut ObjectMap) {
    if_absent(source, "expirationSeconds", TOKEN_SECONDS);
}

pub(super) fn host_path(source: &mut ObjectMap) {
    if is_absent(source, "type") {
        source.insert("type", "".into());
    }
}

pub(super) fn field_selector(selector: &mut ObjectMap) {
    if_zero(selector, "apiVersion", "v1");
}
