//! The checks of the levels, each since a version (`pod-security-admission/policy`).

mod containers;
mod pod;

use super::policy::{Level, Rule, Version};
use crate::tree::Value;
use crate::{ObjectMap, fields};

/// The newest version of any check; later ones are like it.
const NEWEST: u64 = 37;

/// Why a check fails.
#[derive(Debug)]
pub struct Violation {
    pub reason: String,
    pub detail: String,
}

impl Violation {
    fn new(reason: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { reason: reason.into(), detail: detail.into() }
    }
}

/// A Pod, or what a template says of one, as the checks of a minor version see it.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    pub metadata: Option<&'a ObjectMap>,
    pub spec: &'a ObjectMap,
    minor: u64,
}

struct Check {
    level: Level,
    since: u64,
    /// The version from which on a check of the level `restricted` stands in for this one at that level.
    replaced_since: Option<u64>,
    run: fn(&Subject<'_>) -> Option<Violation>,
}

const fn baseline(run: fn(&Subject<'_>) -> Option<Violation>) -> Check {
    Check { level: Level::Baseline, since: 0, replaced_since: None, run }
}

const fn replaced(since: u64, run: fn(&Subject<'_>) -> Option<Violation>) -> Check {
    Check { replaced_since: Some(since), ..baseline(run) }
}

const fn restricted(since: u64, run: fn(&Subject<'_>) -> Option<Violation>) -> Check {
    Check { level: Level::Restricted, since, replaced_since: None, run }
}

/// The checks in the order in which violations are told.
static CHECKS: [Check; 19] = [
    baseline(pod::app_armor),
    replaced(22, containers::capabilities),
    baseline(pod::host_namespaces),
    replaced(0, pod::host_paths),
    baseline(containers::host_ports),
    Check { since: 34, ..baseline(containers::probe_hosts) },
    baseline(containers::privileged),
    replaced(35, containers::proc_mount_unless_relaxed),
    baseline(pod::selinux),
    replaced(19, pod::seccomp),
    baseline(pod::sysctls),
    baseline(pod::windows_host_process),
    restricted(8, containers::privilege_escalation),
    restricted(22, containers::restricted_capabilities),
    restricted(35, containers::proc_mount),
    restricted(0, pod::volumes),
    restricted(0, pod::run_as_non_root),
    restricted(23, pod::run_as_user),
    restricted(19, pod::restricted_seccomp),
];

/// The violations of a rule by a Pod.
pub fn violations(rule: Rule, metadata: Option<&ObjectMap>, spec: &ObjectMap) -> Vec<Violation> {
    let minor = match rule.version {
        Version::Latest => NEWEST,
        Version::Minor(minor) => minor.min(NEWEST),
    };
    let subject = Subject { metadata, spec, minor };
    let applies = |check: &&Check| {
        let is_replaced =
            rule.level == Level::Restricted && check.replaced_since.is_some_and(|since| since <= minor);
        check.level <= rule.level && check.since <= minor && !is_replaced
    };
    CHECKS.iter().filter(applies).filter_map(|check| (check.run)(&subject)).collect()
}

impl<'a> Subject<'a> {
    /// Init containers, containers and ephemeral ones, in this order.
    fn containers(&self) -> impl Iterator<Item = &'a ObjectMap> {
        let spec = self.spec;
        let lists = ["initContainers", "containers", "ephemeralContainers"].into_iter();
        lists.flat_map(move |list| fields::items(spec, &[list]).iter().filter_map(Value::as_object))
    }

    /// The names of the containers of which this is true.
    fn containers_that(&self, are: impl Fn(&ObjectMap) -> bool) -> Vec<&'a str> {
        self.containers().filter(|container| are(container)).map(name).collect()
    }

    fn is_since(&self, minor: u64) -> bool {
        self.minor >= minor
    }

    /// Whether the Pod is for Windows, which some checks know since 1.25.
    fn is_for_windows(&self) -> bool {
        self.is_since(25) && fields::text(self.spec, &["os", "name"]) == "windows"
    }

    /// Whether the Pod has users of its own, which some checks know since 1.35.
    fn has_own_users(&self) -> bool {
        self.is_since(35) && self.spec.get("hostUsers") == Some(&Value::Bool(false))
    }
}

fn name(container: &ObjectMap) -> &str {
    fields::text(container, &["name"])
}

/// The value at a path below a container's or a Pod's `securityContext`.
fn security<'a>(holder: &'a ObjectMap, path: &[&str]) -> Option<&'a Value> {
    let context = fields::object(holder, "securityContext")?;
    fields::at(context, path).filter(|value| !value.is_null())
}

fn plural<'a>(number: usize, one: &'a str, several: &'a str) -> &'a str {
    if number == 1 { one } else { several }
}

/// The names in quotes, separated by commas. The quotes escape nothing.
fn quoted<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("\"{}\"", name.as_ref())).collect();
    quoted.join(", ")
}

/// `container "a"` or `containers "a", "b"`.
fn these(containers: &[&str]) -> String {
    format!("{} {}", plural(containers.len(), "container", "containers"), quoted(containers))
}

/// The setters of a field in words: the Pod, containers, or both. `None` if nobody sets it.
fn setters(pod: bool, containers: &[&str]) -> Option<String> {
    let containers = Some(containers).filter(|names| !names.is_empty()).map(these);
    let setters: Vec<String> = pod.then(|| "pod".to_owned()).into_iter().chain(containers).collect();
    (!setters.is_empty()).then(|| setters.join(" and "))
}
