//! Containers, init containers and ephemeral containers.

use std::collections::BTreeSet;

use crate::kinds::behavior::format::dns1123_label;
use crate::kinds::behavior::rules::resource;
use crate::kinds::behavior::rules::resource::Owner;
use crate::kinds::core::pod_spec::volume::VolumesByName;
use crate::kinds::core::pod_spec::{env, mount, probe, security};
use crate::kinds::prelude::*;

const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];

/// Facts about the pod that the rules of all containers need.
pub struct Shared<'v, 'p> {
    pub spec: At<'v, 'p>,
    pub volumes: VolumesByName<'v>,
    /// The names of the pod's resource claims.
    pub claims: BTreeSet<&'v str>,
    pub grace: i64,
    /// Whether the pod uses the host's user namespace.
    pub host_users: bool,
}

impl Shared<'_, '_> {
    fn restart_policy(&self) -> &str {
        self.spec.get("restartPolicy").text_or("Always")
    }
}

pub fn containers(shared: &Shared<'_, '_>, errors: &mut Errors) {
    let list = shared.spec.get("containers");
    if list.is_empty() {
        errors.required(&list, "");
        return;
    }
    let mut names = BTreeSet::new();
    for container in list.items() {
        common(&container, shared, errors);
        let name = container.get("name");
        errors.distinct_from(&name, &mut names);
        hooks_and_probes(&container, shared, errors);
        restart_rules(&container, errors);
    }
    let mut ports = BTreeSet::new();
    for container in list.items() {
        host_ports(&container, &mut ports, errors);
    }
}

fn hooks_and_probes(container: &At<'_, '_>, shared: &Shared<'_, '_>, errors: &mut Errors) {
    let lifecycle = container.get("lifecycle");
    if lifecycle.is_set() {
        probe::lifecycle(&lifecycle, shared.grace, &shared.spec.get("os"), errors);
    }
    probe::probes(container, shared.grace, errors);
}

pub fn init_containers(shared: &Shared<'_, '_>, errors: &mut Errors) {
    let list = shared.spec.get("initContainers");
    let running = shared.spec.get("containers");
    let mut names: BTreeSet<&str> = running.items().map(|container| container.get("name").text()).collect();
    for container in list.items() {
        common(&container, shared, errors);
        let policy = container.get("restartPolicy");
        if policy.is_set() || !container.get("restartPolicyRules").is_empty() {
            restart_rules(&container, errors);
        }
        let name = container.get("name");
        if names.contains(name.text()) {
            errors.duplicate(&name, name.text());
        } else if !name.text().is_empty() {
            names.insert(name.text());
        }
        // Init containers run one after the other, so each has its own set of ports. Upstream's errors give each the
        // index 0.
        host_ports(&list.index(0).holding(container.value()), &mut BTreeSet::new(), errors);
        let sidecar = policy.text() == "Always";
        if sidecar {
            hooks_and_probes(&container, shared, errors);
        } else {
            only_sidecars(&container, errors);
        }
    }
}

fn only_sidecars(container: &At<'_, '_>, errors: &mut Errors) {
    for name in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
        if container.get(name).is_set() {
            let why = "may not be set for init containers without restartPolicy=Always";
            errors.forbidden(&container.get(name), why);
        }
    }
    for policy in container.get("resizePolicy").items() {
        let restart = policy.get("restartPolicy");
        if restart.text() == "RestartContainer" {
            let why = "must not be set to 'RestartContainer' for non-sidecar initContainers";
            errors.invalid(&restart, restart.text(), why);
        }
    }
}

pub fn ephemeral_containers(shared: &Shared<'_, '_>, errors: &mut Errors) {
    let list = shared.spec.get("ephemeralContainers");
    let others: Vec<At<'_, '_>> = [shared.spec.get("containers"), shared.spec.get("initContainers")].to_vec();
    let lasting: BTreeSet<&str> = others
        .iter()
        .flat_map(|list| list.items().map(|c| c.get("name").text()).collect::<Vec<_>>())
        .collect();
    let mut names = lasting.clone();
    for container in list.items() {
        common(&container, shared, errors);
        trimmed_image(&container, errors);
        let (name, target) = (container.get("name"), container.get("targetContainerName"));
        errors.distinct_from(&name, &mut names);
        if !target.text().is_empty() && !lasting.contains(target.text()) {
            errors.not_found(&target, target.text());
        }
        not_for_ephemeral(&container, errors);
    }
}

fn not_for_ephemeral(container: &At<'_, '_>, errors: &mut Errors) {
    let why = "cannot be set for an Ephemeral Container";
    const FIELDS: [&str; 9] = [
        "ports",
        "resources",
        "resizePolicy",
        "restartPolicy",
        "restartPolicyRules",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "lifecycle",
    ];
    for name in FIELDS {
        let field = container.get(name);
        let empty = field.value().is_null()
            || (matches!(name, "ports" | "resources" | "resizePolicy" | "restartPolicyRules")
                && field.is_empty());
        if !empty {
            errors.forbidden(&field, why);
        }
    }
    for mount in container.get("volumeMounts").items() {
        for name in ["subPath", "subPathExpr"] {
            if !mount.get(name).text().is_empty() {
                errors.forbidden(&mount.get(name), why);
            }
        }
    }
}

/// Rules for images in pods; images in templates may be padded with blanks.
pub fn trimmed_image(container: &At<'_, '_>, errors: &mut Errors) {
    let image = container.get("image");
    if image.text().trim().len() != image.text().len() {
        errors.invalid(&image, image.text(), "must not have leading or trailing whitespace");
    }
}

fn common(container: &At<'_, '_>, shared: &Shared<'_, '_>, errors: &mut Errors) {
    let (name, image) = (container.get("name"), container.get("image"));
    errors.required_in_format(&name, dns1123_label);
    errors.present(&image, "");
    let message = container.get("terminationMessagePolicy");
    errors.one_of(&message, message.text_or("File"), &["File", "FallbackToLogsOnError"]);
    ports(&container.get("ports"), errors);
    env::env(&container.get("env"), errors);
    env::env_from(&container.get("envFrom"), errors);
    mount::mounts(container, &shared.volumes, errors);
    mount::devices(container, &shared.volumes, errors);
    let pull = container.get("imagePullPolicy");
    errors.one_of(&pull, pull.text_or("Always"), &PULL_POLICIES);
    resource::requirements(&container.get("resources"), Owner::Container, &shared.claims, errors);
    resize_policy(&container.get("resizePolicy"), shared.restart_policy(), errors);
    security::container(&container.get("securityContext"), shared.host_users, errors);
}

fn ports(list: &At<'_, '_>, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for port in list.items() {
        let (name, number, host) = (port.get("name"), port.get("containerPort"), port.get("hostPort"));
        if !name.text().is_empty() {
            let messages = crate::kinds::behavior::rules::format::port_name(name.text());
            if messages.is_empty() && !names.insert(name.text()) {
                errors.duplicate(&name, name.text());
            }
            errors.invalid_each(&name, name.text(), messages);
        }
        if number.int() == 0 {
            errors.required(&number, "");
        } else {
            errors.port(&number);
        }
        if host.int() != 0 {
            errors.port(&host);
        }
        let protocol = port.get("protocol");
        errors.one_of(&protocol, protocol.text_or("TCP"), &["SCTP", "TCP", "UDP"]);
    }
}

/// No two containers may use the same port of the host.
fn host_ports(container: &At<'_, '_>, seen: &mut BTreeSet<String>, errors: &mut Errors) {
    for port in container.get("ports").items() {
        let host = port.get("hostPort");
        if host.int() == 0 {
            continue;
        }
        let protocol = port.get("protocol").text_or("TCP");
        let text = format!("{protocol}/{}/{}", port.get("hostIP").text(), host.int());
        if seen.contains(&text) {
            errors.duplicate(&host, &*text);
        } else {
            seen.insert(text);
        }
    }
}

fn resize_policy(list: &At<'_, '_>, restart_policy: &str, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for policy in list.items() {
        let resource = policy.get("resourceName").text();
        if !seen.insert(resource) {
            errors.duplicate(&policy, resource);
        }
        match resource {
            "" => errors.required(list, ""),
            _ => _ = errors.one_of(list, resource, &["cpu", "memory"]),
        }
        let restart = policy.get("restartPolicy").text();
        match restart {
            "" => errors.required(list, ""),
            _ => _ = errors.one_of(list, restart, &["NotRequired", "RestartContainer"]),
        }
        if restart_policy == "Never" && restart != "NotRequired" {
            errors.invalid(list, restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'");
        }
    }
}

fn restart_rules(container: &At<'_, '_>, errors: &mut Errors) {
    let (policy, rules) = (container.get("restartPolicy"), container.get("restartPolicyRules"));
    match policy.opt_text() {
        None if rules.is_empty() => return,
        None => errors.required(&policy, "must specify restartPolicy when restart rules are used"),
        Some(text) => _ = errors.one_of(&policy, text, &["Always", "Never", "OnFailure"]),
    }
    if rules.len() > 20 {
        errors.too_many(&rules, rules.len(), 20);
    }
    for rule in rules.items() {
        let action = rule.get("action");
        errors.one_of(&action, action.text(), &["Restart", "RestartAllContainers"]);
        let codes = rule.get("exitCodes");
        if !codes.is_set() {
            errors.required(&codes, "must be specified");
            continue;
        }
        let (operator, values) = (codes.get("operator"), codes.get("values"));
        errors.one_of(&operator, operator.text(), &["In", "NotIn"]);
        if values.len() > 255 {
            errors.too_many(&values, values.len(), 255);
        }
    }
}
