//! Checks that look at the Pod, too.

use std::collections::BTreeSet;

use super::{Subject, Violation, name, plural, quoted, security, setters, these};
use crate::gotext::quote;
use crate::tree::Value;
use crate::{ObjectMap, fields};

const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
/// The sources of volumes that any Pod may use.
const HARMLESS: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];
const RESTRICTED: [&str; 21] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
];
/// Sysctls that are safe, each since a version.
const SYSCTLS: [(u64, &str); 14] = [
    (0, "kernel.shm_rmid_forced"),
    (0, "net.ipv4.ip_local_port_range"),
    (0, "net.ipv4.tcp_syncookies"),
    (0, "net.ipv4.ping_group_range"),
    (0, "net.ipv4.ip_unprivileged_port_start"),
    (27, "net.ipv4.ip_local_reserved_ports"),
    (29, "net.ipv4.tcp_keepalive_time"),
    (29, "net.ipv4.tcp_fin_timeout"),
    (29, "net.ipv4.tcp_keepalive_intvl"),
    (29, "net.ipv4.tcp_keepalive_probes"),
    (32, "net.ipv4.tcp_rmem"),
    (32, "net.ipv4.tcp_wmem"),
    (37, "net.ipv4.tcp_slow_start_after_idle"),
    (37, "net.ipv4.tcp_notsent_lowat"),
];

/// The type of a profile, if there is one and it is not allowed.
fn bad_profile<'a>(holder: &'a ObjectMap, profile: &str) -> Option<&'a str> {
    let profile = security(holder, &[profile])?.as_object()?;
    Some(fields::text(profile, &["type"])).filter(|kind| !matches!(*kind, "RuntimeDefault" | "Localhost"))
}

fn annotations<'a>(subject: &Subject<'a>) -> impl Iterator<Item = (&'a str, &'a str)> {
    let annotations = subject.metadata.and_then(|metadata| fields::object(metadata, "annotations"));
    annotations.into_iter().flatten().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
}

pub fn app_armor(subject: &Subject<'_>) -> Option<Violation> {
    let of_pod = bad_profile(subject.spec, "appArmorProfile");
    let bad = subject.containers_that(|own| bad_profile(own, "appArmorProfile").is_some());
    let of_containers = subject.containers().filter_map(|own| bad_profile(own, "appArmorProfile"));
    let values: BTreeSet<&str> = of_pod.into_iter().chain(of_containers).collect();
    let allowed =
        |value: &str| value.is_empty() || value == "runtime/default" || value.starts_with("localhost/");
    let annotated =
        annotations(subject).filter(|(name, value)| name.starts_with(APP_ARMOR) && !allowed(value));
    let mut annotated: Vec<String> =
        annotated.map(|(name, value)| format!("{name}={}", quote(value))).collect();
    annotated.sort_unstable();
    let annotation =
        (!annotated.is_empty()).then(|| plural(annotated.len(), "annotation", "annotations").to_owned());
    let who: Vec<String> = setters(of_pod.is_some(), &bad).into_iter().chain(annotation).collect();
    let values: Vec<String> = values.into_iter().map(str::to_owned).chain(annotated).collect();
    let reason = plural(values.len(), "forbidden AppArmor profile", "forbidden AppArmor profiles");
    let detail = format!("{} must not set AppArmor profile type to {}", who.join(" and "), quoted(values));
    (!who.is_empty()).then(|| Violation::new(reason, detail))
}

pub fn host_namespaces(subject: &Subject<'_>) -> Option<Violation> {
    let names = ["hostNetwork", "hostPID", "hostIPC"].into_iter();
    let set = names.filter(|name| subject.spec.get(name) == Some(&Value::Bool(true)));
    let set: Vec<String> = set.map(|name| format!("{name}=true")).collect();
    (!set.is_empty()).then(|| Violation::new("host namespaces", set.join(", ")))
}

fn all_volumes<'a>(subject: &Subject<'a>) -> impl Iterator<Item = &'a ObjectMap> {
    fields::items(subject.spec, &["volumes"]).iter().filter_map(Value::as_object)
}

fn has_source(volume: &ObjectMap, source: &str) -> bool {
    fields::object(volume, source).is_some()
}

pub fn host_paths(subject: &Subject<'_>) -> Option<Violation> {
    let bad: Vec<&str> =
        all_volumes(subject).filter(|volume| has_source(volume, "hostPath")).map(name).collect();
    let detail = format!("{} {}", plural(bad.len(), "volume", "volumes"), quoted(&bad));
    (!bad.is_empty()).then(|| Violation::new("hostPath volumes", detail))
}

pub fn volumes(subject: &Subject<'_>) -> Option<Violation> {
    let is_bad = |volume: &&ObjectMap| !HARMLESS.iter().any(|source| has_source(volume, source));
    let bad: Vec<&str> = all_volumes(subject).filter(is_bad).map(name).collect();
    let found: BTreeSet<&str> = all_volumes(subject)
        .filter(is_bad)
        .map(|volume| RESTRICTED.into_iter().find(|source| has_source(volume, source)).unwrap_or("unknown"))
        .collect();
    let detail = format!(
        "{} {} {} {} {}",
        plural(bad.len(), "volume", "volumes"),
        quoted(&bad),
        plural(bad.len(), "uses", "use"),
        plural(found.len(), "restricted volume type", "restricted volume types"),
        quoted(found)
    );
    (!bad.is_empty()).then(|| Violation::new("restricted volume types", detail))
}

fn selinux_options(holder: &ObjectMap) -> Option<&ObjectMap> {
    security(holder, &["seLinuxOptions"]).and_then(Value::as_object)
}

pub fn selinux(subject: &Subject<'_>) -> Option<Violation> {
    let allows = |kind: &str| {
        let always = ["", "container_t", "container_init_t", "container_kvm_t"].contains(&kind);
        always || (kind == "container_engine_t" && subject.is_since(31))
    };
    let is_bad = |holder: &ObjectMap| {
        selinux_options(holder).is_some_and(|options| {
            let text = |name| fields::text(options, &[name]);
            !allows(text("type")) || !text("user").is_empty() || !text("role").is_empty()
        })
    };
    let who = setters(is_bad(subject.spec), &subject.containers_that(is_bad))?;
    let options: Vec<&ObjectMap> =
        std::iter::once(subject.spec).chain(subject.containers()).filter_map(selinux_options).collect();
    let types: BTreeSet<&str> =
        options.iter().map(|own| fields::text(own, &["type"])).filter(|kind| !allows(kind)).collect();
    let sets = |name: &str| options.iter().any(|own| !fields::text(own, &[name]).is_empty());
    let mut data = Vec::new();
    if !types.is_empty() {
        data.push(format!("{} {}", plural(types.len(), "type", "types"), quoted(&types)));
    }
    for name in ["user", "role"].into_iter().filter(|name| sets(name)) {
        data.push(format!("{name} may not be set"));
    }
    let data = data.join("; ");
    Some(Violation::new(
        "seLinuxOptions",
        format!("{who} set forbidden securityContext.seLinuxOptions: {data}"),
    ))
}

pub fn seccomp(subject: &Subject<'_>) -> Option<Violation> {
    if subject.is_since(19) { explicit_seccomp(subject) } else { annotated_seccomp(subject) }
}

fn annotated_seccomp(subject: &Subject<'_>) -> Option<Violation> {
    let allowed = |value: &str| {
        matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/")
    };
    let concerns = |key: &str| {
        let container = key.strip_prefix(SECCOMP_CONTAINER);
        key == SECCOMP_POD
            || container.is_some_and(|container| subject.containers().any(|own| name(own) == container))
    };
    let bad = annotations(subject).filter(|(key, value)| concerns(key) && !allowed(value));
    let bad: BTreeSet<String> = bad.map(|(key, value)| format!("{key}={}", quote(value))).collect();
    let what = plural(bad.len(), "annotation", "annotations");
    let detail =
        || format!("forbidden {what} {}", bad.iter().map(String::as_str).collect::<Vec<_>>().join(", "));
    (!bad.is_empty()).then(|| Violation::new("seccompProfile", detail()))
}

fn explicit_seccomp(subject: &Subject<'_>) -> Option<Violation> {
    let bad = |own: &ObjectMap| bad_profile(own, "seccompProfile").is_some();
    let who = setters(bad(subject.spec), &subject.containers_that(bad))?;
    let holders = std::iter::once(subject.spec).chain(subject.containers());
    let values: BTreeSet<&str> = holders.filter_map(|own| bad_profile(own, "seccompProfile")).collect();
    let detail = format!("{who} must not set securityContext.seccompProfile.type to {}", quoted(values));
    Some(Violation::new("seccompProfile", detail))
}

pub fn restricted_seccomp(subject: &Subject<'_>) -> Option<Violation> {
    if subject.is_for_windows() {
        return None;
    }
    if let Some(violation) = explicit_seccomp(subject) {
        return Some(violation);
    }
    let sets = |own: &ObjectMap| security(own, &["seccompProfile"]).is_some();
    if sets(subject.spec) {
        return None;
    }
    let bad = subject.containers_that(|own| !sets(own));
    let detail = format!(
        "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"",
        these(&bad)
    );
    (!bad.is_empty()).then(|| Violation::new("seccompProfile", detail))
}

pub fn sysctls(subject: &Subject<'_>) -> Option<Violation> {
    let set = security(subject.spec, &["sysctls"]).and_then(Value::as_array).into_iter().flatten();
    let names = set.filter_map(|sysctl| sysctl["name"].as_str());
    let allows = |name: &str| SYSCTLS.iter().any(|(since, own)| *own == name && subject.is_since(*since));
    let bad: Vec<&str> = names.filter(|name| !allows(name)).collect();
    (!bad.is_empty()).then(|| Violation::new("forbidden sysctls", bad.join(", ")))
}

pub fn windows_host_process(subject: &Subject<'_>) -> Option<Violation> {
    let sets =
        |own: &ObjectMap| security(own, &["windowsOptions", "hostProcess"]) == Some(&Value::Bool(true));
    let who = setters(sets(subject.spec), &subject.containers_that(sets))?;
    let detail = format!("{who} must not set securityContext.windowsOptions.hostProcess=true");
    Some(Violation::new("hostProcess", detail))
}

pub fn run_as_non_root(subject: &Subject<'_>) -> Option<Violation> {
    if subject.has_own_users() {
        return None;
    }
    let set = |own: &ObjectMap| security(own, &["runAsNonRoot"]).and_then(Value::as_bool);
    let refuses = |own: &ObjectMap| set(own) == Some(false);
    if let Some(who) = setters(refuses(subject.spec), &subject.containers_that(refuses)) {
        let detail = format!("{who} must not set securityContext.runAsNonRoot=false");
        return Some(Violation::new("runAsNonRoot != true", detail));
    }
    if set(subject.spec) == Some(true) {
        return None;
    }
    let bad = subject.containers_that(|own| set(own).is_none());
    let detail = format!("pod or {} must set securityContext.runAsNonRoot=true", these(&bad));
    (!bad.is_empty()).then(|| Violation::new("runAsNonRoot != true", detail))
}

pub fn run_as_user(subject: &Subject<'_>) -> Option<Violation> {
    if subject.has_own_users() {
        return None;
    }
    let is_root = |own: &ObjectMap| security(own, &["runAsUser"]).and_then(Value::as_i64) == Some(0);
    let who = setters(is_root(subject.spec), &subject.containers_that(is_root))?;
    Some(Violation::new("runAsUser=0", format!("{who} must not set runAsUser=0")))
}
