//! Security contexts on Windows, and fields that Windows does not support.

use crate::kinds::behavior::format::dns1123_subdomain;
use crate::kinds::core::pod_spec::visit;
use crate::kinds::prelude::*;

const CREDENTIALS_MAX: usize = 64 * 1024;

const DOMAIN_MAX: usize = 256;

const USER_MAX: usize = 104;

pub fn options(at: &At<'_, '_>, errors: &mut Errors) {
    let name = at.get("gmsaCredentialSpecName");
    errors.in_format_if_set(&name, dns1123_subdomain);
    let spec = at.get("gmsaCredentialSpec");
    match spec.opt_text() {
        Some("") => errors.invalid(&spec, "", "gmsaCredentialSpec cannot be an empty string"),
        Some(text) if text.len() > CREDENTIALS_MAX => {
            errors.invalid(&spec, text, "gmsaCredentialSpec size must be under 64 KiB");
        }
        _ => {}
    }
    let user = at.get("runAsUserName");
    if let Some(text) = user.opt_text() {
        user_name(&user, text, errors);
    }
}

/// Validates a user name: `user` or `domain\user`.
fn user_name(at: &At<'_, '_>, text: &str, errors: &mut Errors) {
    let mut refuse = |why: &str| errors.invalid(at, text, &format!("runAsUserName{why}"));
    if text.is_empty() {
        return refuse(" cannot be an empty string");
    }
    if text.contains(|c: char| c.is_ascii_control()) {
        return refuse(" cannot contain control characters");
    }
    if text.matches('\\').count() > 1 {
        return refuse(" cannot contain more than one backslash");
    }
    let (domain, user) = match text.split_once('\\') {
        Some((domain, user)) => (Some(domain), user),
        None => (None, text),
    };
    if domain.is_some_and(|domain| domain.len() >= DOMAIN_MAX) {
        refuse("'s Domain length must be under 256 characters");
    }
    if domain.is_some_and(|domain| !is_net_bios(domain) && !is_domain(domain)) {
        refuse("'s Domain doesn't match the NetBios nor the DNS format");
    }
    if user.is_empty() {
        refuse("'s User cannot be empty");
    } else if user.len() > USER_MAX {
        refuse("'s User length must not be longer than 104 characters");
    }
    if !user.is_empty() && user.chars().all(|c| matches!(c, '.' | ' ')) {
        refuse("'s User cannot contain only periods or spaces");
    }
    if user.contains(|c| "\"/\\:;|=,+*?<>@[]".contains(c)) {
        refuse("'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]");
    }
}

fn is_net_bios(domain: &str) -> bool {
    (1..=15).contains(&domain.chars().count())
        && !domain.starts_with('.')
        && !domain.contains(|c| "\\/:*?\"<>|".contains(c))
}

fn is_domain(domain: &str) -> bool {
    let label = |label: &str| {
        let bytes = label.as_bytes();
        (1..=63).contains(&bytes.len())
            && bytes[0].is_ascii_alphanumeric()
            && bytes[bytes.len() - 1].is_ascii_alphanumeric()
            && bytes.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-')
    };
    domain.split('.').all(label)
}

/// HostProcess containers: all containers of a pod must be, or none.
pub fn host_process(spec: &At<'_, '_>, errors: &mut Errors) {
    let path = ["securityContext", "windowsOptions", "hostProcess"];
    let pod = spec.dig(&path).opt_flag();
    let (mut all, mut host) = (0, 0);
    visit(spec, &mut |container| {
        all += 1;
        let at = container.dig(&path);
        let own = at.opt_flag();
        if let (Some(pod), Some(own)) = (pod, own)
            && pod != own
        {
            let why = format!("pod hostProcess value must be identical if both are specified, was {pod}");
            errors.invalid(&at, own, &why);
        }
        host += usize::from(own.or(pod) == Some(true));
    });
    if host == 0 {
        return;
    }
    if host != all {
        let why =
            "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        errors.invalid(spec, "", why);
    }
    if !spec.get("hostNetwork").flag() {
        let why = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.invalid(&spec.get("hostNetwork"), false, why);
    }
}

/// Validates the pod's operating system, and refuses fields that it does not support.
pub fn operating_system(spec: &At<'_, '_>, errors: &mut Errors) {
    let os = spec.get("os");
    if !os.is_set() {
        return;
    }
    match os.get("name").text() {
        "" => errors.required(&os.get("name"), ""),
        "linux" => linux(spec, errors),
        "windows" => windows(spec, errors),
        other => errors.not_supported(&os, other, &["linux", "windows"]),
    }
}

fn linux(spec: &At<'_, '_>, errors: &mut Errors) {
    let mut check = |holder: &At<'_, '_>| {
        let context = holder.get("securityContext");
        if context.get("windowsOptions").is_set() {
            let why = "windows options cannot be set for a linux pod";
            errors.forbidden(&context.get("windowsOptions"), why);
        }
    };
    check(spec);
    visit(spec, &mut |container| check(container));
}

fn windows(spec: &At<'_, '_>, errors: &mut Errors) {
    let why = "cannot be set for a windows pod";
    const POD: [(&str, &str); 15] = [
        ("securityContext", "appArmorProfile"),
        ("securityContext", "seLinuxOptions"),
        ("", "hostUsers"),
        ("", "hostPID"),
        ("", "hostIPC"),
        ("securityContext", "seccompProfile"),
        ("securityContext", "fsGroup"),
        ("securityContext", "fsGroupChangePolicy"),
        ("securityContext", "sysctls"),
        ("", "shareProcessNamespace"),
        ("securityContext", "runAsUser"),
        ("securityContext", "runAsGroup"),
        ("securityContext", "supplementalGroups"),
        ("securityContext", "supplementalGroupsPolicy"),
        ("securityContext", "seLinuxChangePolicy"),
    ];
    for (holder, name) in POD {
        let path = [holder, name];
        let field = if holder.is_empty() { spec.get(name) } else { spec.dig(&path) };
        let unset = match name {
            "hostPID" | "hostIPC" => !field.flag(),
            "sysctls" => field.is_empty(),
            _ => !field.is_set(),
        };
        if !unset {
            errors.forbidden(&field, why);
        }
    }
    const CONTAINER: [&str; 10] = [
        "appArmorProfile",
        "seLinuxOptions",
        "seccompProfile",
        "capabilities",
        "readOnlyRootFilesystem",
        "privileged",
        "allowPrivilegeEscalation",
        "procMount",
        "runAsUser",
        "runAsGroup",
    ];
    visit(spec, &mut |container| {
        let context = container.get("securityContext");
        for field in CONTAINER.iter().map(|name| context.get(name)).filter(At::is_set) {
            errors.forbidden(&field, why);
        }
    });
}
