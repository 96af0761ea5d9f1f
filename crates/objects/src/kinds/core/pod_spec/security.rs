//! Security contexts of pods and containers.

use std::collections::BTreeSet;

use crate::gotext;
use crate::kinds::behavior::rules::errors::Verbatim;
use crate::kinds::behavior::rules::path_text::descending;
use crate::kinds::core::pod_spec::windows;
use crate::kinds::prelude::*;

const PROFILE_TYPES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];

const ID_MAX: i64 = i32::MAX as i64;

pub fn container(at: &At<'_, '_>, host_users: bool, errors: &mut Errors) {
    if !at.is_set() {
        return;
    }
    ids(at, &["runAsUser", "runAsGroup"], errors);
    let proc = at.get("procMount");
    if let Some(kind) = proc.opt_text() {
        errors.one_of(&proc, kind, &["Default", "Unmasked"]);
        if host_users && kind == "Unmasked" {
            errors.invalid(&proc, kind, "`hostUsers` must be false to use `Unmasked`");
        }
    }
    seccomp(&at.get("seccompProfile"), errors);
    if at.get("allowPrivilegeEscalation").opt_flag() == Some(false) {
        escalation(at, errors);
    }
    windows::options(&at.get("windowsOptions"), errors);
    app_armor(&at.get("appArmorProfile"), errors);
}

fn escalation(at: &At<'_, '_>, errors: &mut Errors) {
    if at.get("privileged").flag() {
        let why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        errors.invalid(at, internal(at), why);
    }
    for _ in at.dig(&["capabilities", "add"]).texts().filter(|name| *name == "CAP_SYS_ADMIN") {
        let why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
        errors.invalid(at, internal(at), why);
    }
}

/// The security context as upstream prints its internal struct: fields with its names, in its order.
fn internal(at: &At<'_, '_>) -> Verbatim {
    const FIELDS: [(&str, &str); 12] = [
        ("Capabilities", "capabilities"),
        ("Privileged", "privileged"),
        ("SELinuxOptions", "seLinuxOptions"),
        ("WindowsOptions", "windowsOptions"),
        ("RunAsUser", "runAsUser"),
        ("RunAsGroup", "runAsGroup"),
        ("RunAsNonRoot", "runAsNonRoot"),
        ("ReadOnlyRootFilesystem", "readOnlyRootFilesystem"),
        ("AllowPrivilegeEscalation", "allowPrivilegeEscalation"),
        ("ProcMount", "procMount"),
        ("SeccompProfile", "seccompProfile"),
        ("AppArmorProfile", "appArmorProfile"),
    ];
    let member = |(name, field): &(&str, &str)| {
        let value = at.get(field);
        let text = match *field {
            "capabilities" if value.is_set() => {
                let list = |name| gotext::json(value.get(name).value());
                format!("{{\"Add\":{},\"Drop\":{}}}", list("add"), list("drop"))
            }
            _ => gotext::json(value.value()),
        };
        format!("\"{name}\":{text}")
    };
    let members: Vec<String> = FIELDS.iter().map(member).collect();
    Verbatim(format!("{{{}}}", members.join(",")))
}

fn ids(at: &At<'_, '_>, names: &[&str], errors: &mut Errors) {
    for name in names {
        if at.get(name).is_set() {
            errors.within(&at.get(name), 0, ID_MAX);
        }
    }
}

/// Validates a pod's `securityContext`; `spec` has further fields that upstream counts to it.
pub fn pod(at: &At<'_, '_>, spec: &At<'_, '_>, errors: &mut Errors) {
    ids(at, &["fsGroup", "runAsUser", "runAsGroup"], errors);
    for group in at.get("supplementalGroups").items() {
        errors.within(&group, 0, ID_MAX);
    }
    if spec.get("shareProcessNamespace").flag() && spec.get("hostPID").flag() {
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.invalid(&at.get("shareProcessNamespace"), true, why);
    }
    sysctls(&at.get("sysctls"), spec, errors);
    optional(&at.get("fsGroupChangePolicy"), &["Always", "OnRootMismatch"], errors);
    seccomp(&at.get("seccompProfile"), errors);
    windows::options(&at.get("windowsOptions"), errors);
    app_armor(&at.get("appArmorProfile"), errors);
    optional(&at.get("supplementalGroupsPolicy"), &["Merge", "Strict"], errors);
    optional(&at.get("seLinuxChangePolicy"), &["MountOption", "Recursive"], errors);
}

fn optional(at: &At<'_, '_>, supported: &[&str], errors: &mut Errors) {
    if let Some(text) = at.opt_text() {
        errors.one_of(at, text, supported);
    }
}

fn sysctls(list: &At<'_, '_>, spec: &At<'_, '_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for sysctl in list.items() {
        let name = sysctl.get("name");
        let text = name.text();
        if text.is_empty() {
            errors.required(&name, "");
        } else if !is_sysctl(text) {
            let why = "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
            errors.invalid(&name, text, why);
        } else if seen.contains(text) {
            errors.duplicate(&name, text);
        }
        match sysctl_namespace(text) {
            Some(Namespace::Net) if spec.get("hostNetwork").flag() => {
                errors.invalid(&name, text, "may not be specified when 'hostNetwork' is true");
            }
            Some(Namespace::Ipc) if spec.get("hostIPC").flag() => {
                errors.invalid(&name, text, "may not be specified when 'hostIPC' is true");
            }
            _ => {}
        }
        seen.insert(text);
    }
}

fn is_sysctl(name: &str) -> bool {
    let segment = |segment: &str| {
        let edge = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let bytes = segment.as_bytes();
        bytes.first().is_some_and(edge)
            && bytes.last().is_some_and(edge)
            && bytes.iter().all(|b| edge(b) || matches!(b, b'-' | b'_'))
    };
    name.len() <= 253 && name.split(['.', '/']).all(segment)
}

enum Namespace {
    Net,
    Ipc,
}

/// The kernel namespace to which a setting belongs (component-helpers `sysctl.GetNamespace`).
fn sysctl_namespace(name: &str) -> Option<Namespace> {
    // The first separator decides; the other one then belongs to the name.
    let name = match name.find(['.', '/']) {
        Some(at) if name.as_bytes()[at] == b'/' => name
            .chars()
            .map(|c| {
                if c == '/' {
                    '.'
                } else if c == '.' {
                    '/'
                } else {
                    c
                }
            })
            .collect(),
        _ => name.to_owned(),
    };
    const IPC: [&str; 10] = [
        "kernel.sem",
        "kernel.shmall",
        "kernel.shmmax",
        "kernel.shmmni",
        "kernel.shm_rmid_forced",
        "kernel.shm",
        "kernel.msgmax",
        "kernel.msgmnb",
        "kernel.msgmni",
        "kernel.msg",
    ];
    if IPC.contains(&&*name) || name.starts_with("fs.mqueue.") {
        Some(Namespace::Ipc)
    } else {
        name.starts_with("net.").then_some(Namespace::Net)
    }
}

fn seccomp(at: &At<'_, '_>, errors: &mut Errors) {
    if !at.is_set() {
        return;
    }
    let (kind, profile) = (at.get("type"), at.get("localhostProfile"));
    if errors.present(&kind, "type is required when seccompProfile is set") {
        errors.one_of(&kind, kind.text(), &PROFILE_TYPES);
    }
    match (kind.text(), profile.opt_text()) {
        ("Localhost", None) => errors.required(&profile, "must be set when seccomp type is Localhost"),
        ("Localhost", Some(path)) => descending(&profile, path, errors),
        (kind, Some(path)) => {
            let json = |text: &str| gotext::json(&text.into());
            let shown = format!("{{\"Type\":{},\"LocalhostProfile\":{}}}", json(kind), json(path));
            errors.invalid(&profile, Verbatim(shown), "can only be set when seccomp type is Localhost");
        }
        (_, None) => {}
    }
}

fn app_armor(at: &At<'_, '_>, errors: &mut Errors) {
    if !at.is_set() {
        return;
    }
    let (kind, profile) = (at.get("type"), at.get("localhostProfile"));
    match (kind.text(), profile.opt_text()) {
        ("Localhost", None) => errors.required(&profile, "must be set when AppArmor type is Localhost"),
        ("Localhost", Some(name)) => {
            if name.trim() != name {
                errors.invalid(&profile, name, "must not be padded with whitespace");
            } else if name.is_empty() {
                errors.required(&profile, "must be set when AppArmor type is Localhost");
            }
            if name.len() > 4095 {
                errors.too_long(&profile, 4095);
            }
        }
        ("RuntimeDefault" | "Unconfined", Some(name)) => {
            errors.invalid(&profile, name, "can only be set when AppArmor type is Localhost");
        }
        ("RuntimeDefault" | "Unconfined", None) => {}
        ("", _) => errors.required(&kind, "type is required when appArmorProfile is set"),
        (other, _) => errors.not_supported(&kind, other, &PROFILE_TYPES),
    }
}
