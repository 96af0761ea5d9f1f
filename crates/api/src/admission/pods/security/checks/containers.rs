//! Checks that look only at containers.

use std::collections::BTreeSet;

use super::{Subject, Violation, name, plural, quoted, security, these};
use crate::tree::Value;
use crate::{ObjectMap, fields};

const HARMLESS: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

fn listed<'a>(container: &'a ObjectMap, list: &str) -> impl Iterator<Item = &'a str> {
    let names = security(container, &["capabilities", list]).and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str)
}

/// The containers that add such capabilities, and these, sorted.
fn adding<'a>(subject: &Subject<'a>, forbidden: fn(&str) -> bool) -> (Vec<&'a str>, BTreeSet<&'a str>) {
    let mut found = BTreeSet::new();
    let mut bad = Vec::new();
    for container in subject.containers() {
        let before = bad.len();
        for capability in listed(container, "add").filter(|name| forbidden(name)) {
            found.insert(capability);
            bad.truncate(before);
            bad.push(name(container));
        }
    }
    (bad, found)
}

pub fn capabilities(subject: &Subject<'_>) -> Option<Violation> {
    let (bad, found) = adding(subject, |name| !HARMLESS.contains(&name));
    let detail =
        format!("{} must not include {} in securityContext.capabilities.add", these(&bad), quoted(found));
    (!bad.is_empty()).then(|| Violation::new("non-default capabilities", detail))
}

pub fn restricted_capabilities(subject: &Subject<'_>) -> Option<Violation> {
    if subject.is_for_windows() {
        return None;
    }
    let keeping = subject.containers_that(|container| !listed(container, "drop").any(|name| name == "ALL"));
    let (bad, found) = adding(subject, |name| name != "NET_BIND_SERVICE");
    let mut details = Vec::new();
    if !keeping.is_empty() {
        details.push(format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", these(&keeping)));
    }
    if !bad.is_empty() {
        let (bad, found) = (these(&bad), quoted(found));
        details.push(format!("{bad} must not include {found} in securityContext.capabilities.add"));
    }
    (!details.is_empty()).then(|| Violation::new("unrestricted capabilities", details.join("; ")))
}

pub fn host_ports(subject: &Subject<'_>) -> Option<Violation> {
    let ports = |container: &ObjectMap| -> Vec<i64> {
        let ports = fields::items(container, &["ports"]).iter();
        ports.filter_map(|port| port["hostPort"].as_i64()).filter(|port| *port != 0).collect()
    };
    let bad = subject.containers_that(|container| !ports(container).is_empty());
    // Sorted as texts.
    let found: BTreeSet<String> = subject.containers().flat_map(ports).map(|port| port.to_string()).collect();
    let detail = format!(
        "{} {} {} {}",
        these(&bad),
        plural(bad.len(), "uses", "use"),
        plural(found.len(), "hostPort", "hostPorts"),
        found.into_iter().collect::<Vec<_>>().join(", ")
    );
    (!bad.is_empty()).then(|| Violation::new("hostPort", detail))
}

pub fn probe_hosts(subject: &Subject<'_>) -> Option<Violation> {
    const HANDLERS: [&[&str]; 5] = [
        &["livenessProbe"],
        &["readinessProbe"],
        &["startupProbe"],
        &["lifecycle", "postStart"],
        &["lifecycle", "preStop"],
    ];
    let (mut bad, mut found) = (BTreeSet::new(), BTreeSet::new());
    for container in subject.containers() {
        let handlers = HANDLERS.iter().filter_map(|path| fields::at(container, path)?.as_object());
        for handler in handlers {
            let hosts = ["httpGet", "tcpSocket"].map(|kind| fields::text(handler, &[kind, "host"]));
            for host in hosts.into_iter().filter(|host| !host.is_empty()) {
                bad.insert(name(container));
                found.insert(host);
            }
        }
    }
    let bad: Vec<&str> = bad.into_iter().collect();
    let detail = format!(
        "{} {} {} {}",
        these(&bad),
        plural(bad.len(), "uses", "use"),
        plural(found.len(), "probe or lifecycle host", "probe or lifecycle hosts"),
        quoted(found)
    );
    (!bad.is_empty()).then(|| Violation::new("probe or lifecycle host", detail))
}

pub fn privileged(subject: &Subject<'_>) -> Option<Violation> {
    let bad = subject.containers_that(|own| security(own, &["privileged"]) == Some(&Value::Bool(true)));
    let detail = format!("{} must not set securityContext.privileged=true", these(&bad));
    (!bad.is_empty()).then(|| Violation::new("privileged", detail))
}

fn unusual_mount(container: &ObjectMap) -> Option<&str> {
    let mount = security(container, &["procMount"]).and_then(Value::as_str);
    mount.filter(|mount| *mount != "Default")
}

pub fn proc_mount(subject: &Subject<'_>) -> Option<Violation> {
    let bad = subject.containers_that(|own| unusual_mount(own).is_some());
    let found: BTreeSet<&str> = subject.containers().filter_map(unusual_mount).collect();
    let detail = format!("{} must not set securityContext.procMount to {}", these(&bad), quoted(found));
    (!bad.is_empty()).then(|| Violation::new("procMount", detail))
}

pub fn proc_mount_unless_relaxed(subject: &Subject<'_>) -> Option<Violation> {
    if subject.has_own_users() { None } else { proc_mount(subject) }
}

pub fn privilege_escalation(subject: &Subject<'_>) -> Option<Violation> {
    if subject.is_for_windows() {
        return None;
    }
    let bad = subject
        .containers_that(|own| security(own, &["allowPrivilegeEscalation"]) != Some(&Value::Bool(false)));
    let detail = format!("{} must set securityContext.allowPrivilegeEscalation=false", these(&bad));
    (!bad.is_empty()).then(|| Violation::new("allowPrivilegeEscalation != false", detail))
}
